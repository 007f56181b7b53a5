// In a directory of objects; imported by main.c.
int branch(int x) { return x + 600; }
