// An object without an archive around it.
int object(int x) { return x + 300; }
