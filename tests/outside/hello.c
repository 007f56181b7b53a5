// Says how many descriptors it has, and starts what it is given.
#include <dirent.h>
#include <stdio.h>
#include <unistd.h>

int main(int count, char **words) {
  int found = 0;
  DIR *folder = opendir("/proc/self/fd");
  while (folder && readdir(folder))
    found++;
  printf("%d words, %d descriptors\n", count, found);
  fflush(stdout);
  if (count > 1)
    execv(words[1], words + 1);
  return 5;
}
