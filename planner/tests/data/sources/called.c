int counter;
static int half(int x) { return x / 2 + counter; }
int twice(int x) { return x * 2 + half(x); }
int more(int x) { return twice(x) + 3; }
