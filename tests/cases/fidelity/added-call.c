// LTO adds a call that nothing refers to before: the member is loaded by the final link.
//# modules: 2
//# flags mine.c: -fno-lto -fno-builtin
//# step: %ar rcs libmine.a mine.o
//# link: main.o fill.o libmine.a -nostdlib -static -Wl,-e,start
//# run: %out
//# flags: -fno-stack-protector -ffreestanding -fno-pic
//# remote: -fno-pic
//--- main.c
void fill(char *, unsigned long);
static void say(const char *text, unsigned long size) {
  long result;
  __asm__ volatile("syscall" : "=a"(result) : "a"(1L), "D"(1L), "S"(text), "d"(size) : "rcx", "r11", "memory");
}
void start(void) {
  static char text[64];
  __asm__ volatile("andq $-16, %%rsp" ::: "memory");
  fill(text, sizeof text - 1);
  text[63] = '\n';
  say(text, sizeof text);
  __asm__ volatile("syscall" ::"a"(60L), "D"(0L));
}
//--- fill.c
__attribute__((noinline)) void fill(char *text, unsigned long size) {
  for (unsigned long at = 0; at < size; at++)
    text[at] = 'x';
}
//--- mine.c
void *memset(void *to, int byte, unsigned long size) {
  for (volatile char *at = to; size; at++, size--)
    *at = byte;
  return to;
}
