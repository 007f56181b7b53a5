// Two system calls of Linux on x86-64.
static long call(long number, long first, const void *second, long third) {
  long result;
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "a"(number), "D"(first), "S"(second), "d"(third)
                   : "rcx", "r11", "memory");
  return result;
}

void print(const char *text) {
  long length = 0;
  while (text[length])
    length++;
  call(1, 1, text, length);
}

_Noreturn void leave(int code) {
  call(60, code, 0, 0);
  __builtin_unreachable();
}
