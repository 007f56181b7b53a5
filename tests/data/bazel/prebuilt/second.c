// Another member.
int second(int x) { return x + 200; }
