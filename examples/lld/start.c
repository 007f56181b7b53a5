// The entry point of a program without a C library.
void print(const char *text);
_Noreturn void leave(int code);

_Noreturn __attribute__((force_align_arg_pointer)) void _start(void) {
  print("hello without a C library\n");
  leave(0);
}
