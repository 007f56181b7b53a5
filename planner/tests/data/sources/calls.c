int twice(int);
int more(int);
extern int counter;
#ifndef BIAS
#define BIAS 0
#endif
int main(int argc, char **argv) {
    (void)argv;
    counter += argc + BIAS;
    return twice(argc) + more(argc);
}
