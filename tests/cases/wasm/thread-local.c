// Variables of each thread.
//# for: wasm
//# modules: 2
//# flags: -matomics -mbulk-memory
//# link: %objects -Wl,--shared-memory,--max-memory=1048576
//--- main.c
extern _Thread_local int counter;
int next(void);
int main(void) { return next() + counter; }
//--- part.c
_Thread_local int counter = 3;
static _Thread_local int calls;
int next(void) { return ++calls + ++counter; }
