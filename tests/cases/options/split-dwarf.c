// Debug information in files of its own, written by the backends.
//# modules: 2
//# flags: -g -gsplit-dwarf
//# otherwise: lld numbers .dwo files
//# link: %objects -g -gsplit-dwarf
//# without dtlto: lld drops split DWARF on the way to its distributor
//# after: sh -c "ls %dir/program-dwo/*.dwo | wc -l > %dir/count"
//# run: %out
//# run: cat %dir/count
//--- main.c
#include <stdio.h>
int part(int);
int main(void) {
  printf("%d\n", part(6));
  return 0;
}
//--- part.c
int part(int x) { return x * 7; }
