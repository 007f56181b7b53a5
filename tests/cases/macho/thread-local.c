// Variables of each thread.
//# for: macho
//# modules: 2
//--- main.c
extern _Thread_local int counter;
int next(void);
int main(void) { return next() + counter; }
//--- part.c
_Thread_local int counter = 3;
static _Thread_local int calls;
int next(void) { return ++calls + ++counter; }
