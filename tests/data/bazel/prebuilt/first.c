// A member of the archive; imported by main.c.
int first(int x) { return x + 100; }
