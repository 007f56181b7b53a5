__attribute__((weak)) int both(void) { return 1; }
__attribute__((weak)) int value = 1;
#ifdef FIRST
int other(void);
int main(void) { return both() + value + other(); }
#else
int other(void) { return both() + value; }
#endif
