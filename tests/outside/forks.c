// A thread looks at the loader's list while another one forks; the children end without their parent's locks.
#define _GNU_SOURCE
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static int each(struct dl_phdr_info *info, size_t size, void *data) { return 0; }

static void *look(void *data) {
  for (;;)
    dl_iterate_phdr(each, NULL);
}

int main(int count, char **words) {
  pthread_t thread;
  pthread_create(&thread, NULL, look, NULL);
  int ended = 0;
  for (int i = 0; i < 300; i++) {
    pid_t child = fork();
    if (child == 0) {
      if (count > 1)
        execv(words[1], words + 1);
      _exit(0);
    }
    int status = -1;
    waitpid(child, &status, 0);
    ended += status == 0;
  }
  printf("%d\n", ended);
  fflush(stdout);
  _exit(0);
}
