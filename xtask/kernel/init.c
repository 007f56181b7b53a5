// The first and only process of the kernel that `cargo xtask kernel` boots: loads all modules of /modules, says how many, and
// ends the machine. A module that needs another one is tried again, as long as any is loaded.
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/reboot.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { MOST = 64 };

static int load(const char *name) {
  char path[300];
  snprintf(path, sizeof path, "/modules/%s", name);
  int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0 || syscall(SYS_finit_module, file, "", 0) != 0) {
    int why = errno;
    if (file >= 0)
      close(file);
    return why ? why : EIO;
  }
  close(file);
  return 0;
}

int main(void) {
  char names[MOST][256];
  int count = 0, loaded = 0, before = -1;
  DIR *directory = opendir("/modules");
  for (struct dirent *entry; directory && (entry = readdir(directory)) && count < MOST;)
    if (entry->d_name[0] != '.')
      strcpy(names[count++], entry->d_name);
  printf("distlto: the kernel runs programs\n");
  while (loaded > before) {
    before = loaded;
    for (int i = 0; i < count; i++) {
      if (!names[i][0] || load(names[i]) != 0)
        continue;
      printf("distlto: %s is loaded\n", names[i]);
      names[i][0] = 0;
      loaded++;
    }
  }
  for (int i = 0; i < count; i++)
    if (names[i][0])
      printf("distlto: %s is refused: %s\n", names[i], strerror(load(names[i])));
  printf("distlto: %d of %d modules are loaded\n", loaded, count);
  fflush(stdout);
  sync();
  reboot(RB_AUTOBOOT);
  return 1;
}
