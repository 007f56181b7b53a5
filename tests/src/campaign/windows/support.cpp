// The C runtime of the random programs for Windows, which need no SDK: constructors, output, memory.
extern "C" {
__declspec(dllimport) void *GetStdHandle(unsigned);
__declspec(dllimport) int WriteFile(void *, const void *, unsigned, unsigned *, void *);
__declspec(dllimport) void ExitProcess(unsigned);
int main(void);
typedef void (*Function)(void);
#pragma section(".CRT$XCA", read)
#pragma section(".CRT$XCZ", read)
__declspec(allocate(".CRT$XCA")) Function first[1] = {0};
__declspec(allocate(".CRT$XCZ")) Function last[1] = {0};
#pragma comment(linker, "/merge:.CRT=.rdata")
static Function ending[64];
static unsigned ends;
int atexit(Function function) { ending[ends++] = function; return 0; }
void *memset(void *to, int value, unsigned long long size) {
  for (unsigned long long at = 0; at < size; ++at) ((volatile char *)to)[at] = (char)value;
  return to;
}
void *memcpy(void *to, const void *from, unsigned long long size) {
  for (unsigned long long at = 0; at < size; ++at) ((volatile char *)to)[at] = ((const char *)from)[at];
  return to;
}
static void put(const char *text) {
  unsigned size = 0, written;
  while (text[size]) ++size;
  WriteFile(GetStdHandle(-11), text, size, &written, 0);
}
int puts(const char *text) { put(text); put("\n"); return 0; }
// Knows %s and %u.
int printf(const char *format, ...) {
  __builtin_va_list list;
  __builtin_va_start(list, format);
  for (; *format; ++format) {
    char text[12] = {*format};
    if (*format == '%' && *++format == 's') { put(__builtin_va_arg(list, const char *)); continue; }
    if (*format == 'u') {
      unsigned value = __builtin_va_arg(list, unsigned), at = 11;
      text[11] = 0;
      do text[--at] = '0' + value % 10; while (value /= 10);
      put(text + at);
      continue;
    }
    put(text);
  }
  __builtin_va_end(list);
  return 0;
}
void start(void) {
  for (Function *at = first; at != last; ++at) if (*at) (*at)();
  unsigned code = main();
  while (ends) ending[--ends]();
  ExitProcess(code);
}
}
static char heap[4096];
static unsigned taken;
void *operator new(unsigned long long size) { taken += 64; return heap + taken - 64; }
void operator delete(void *) noexcept {}
void operator delete(void *, unsigned long long) noexcept {}
void operator delete[](void *) noexcept {}
void operator delete[](void *, unsigned long long) noexcept {}
