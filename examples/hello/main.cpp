void greet(const char *name);
int main() { greet("world"); }
