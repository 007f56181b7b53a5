// Another one there.
int leafy(int x) { return x + 700; }
