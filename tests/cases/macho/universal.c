// An object and an archive with a slice for each of two processors.
//# for: macho
//# modules: 3
//# step: %clang --target=x86_64-apple-macos13 -O2 -flto=thin -c part.c -o part.x86
//# step: %clang --target=x86_64-apple-macos13 -O2 -flto=thin -c helper.c -o helper.x86
//# step: %lipo -create part.o part.x86 -output part.universal
//# step: %ar rcs liba.a helper.o
//# step: %ar rcs libb.a helper.x86
//# step: %lipo -create liba.a libb.a -output libx.a
//# link: main.o part.universal libx.a
//--- main.c
int part(int);
int main(void) { return part(3); }
//--- part.c
int helper(int);
int part(int x) { return helper(x) * 7; }
//--- helper.c
int helper(int x) { return x + 1; }
//--- unused.c
int unused(int x) { return x - 1; }
