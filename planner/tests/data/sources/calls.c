int twice(int);
int more(int);
extern int counter;
int main(int argc, char **argv) {
    (void)argv;
    counter += argc;
    return twice(argc) + more(argc);
}
