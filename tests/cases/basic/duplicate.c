// One symbol defined twice.
//# fails: duplicate symbol: same
//--- main.c
int same(void) { return 1; }
int main(void) { return same(); }
//--- other.c
int same(void) { return 2; }
