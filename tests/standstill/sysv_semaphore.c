// SPDX-License-Identifier: Apache-2.0
// A child of rank 2 dies while it holds a System V semaphore, without SEM_UNDO. Then the children
// of all ranks wait for the semaphore, and all ranks for their children.
#include <signal.h>
#include <sys/ipc.h>
#include <sys/sem.h>
#include <sys/wait.h>

#include "ranks.h"

struct Page {
  int semaphore;
};

static void Change(int semaphore, int by) {
  struct sembuf operation = {0, (short)by, 0};
  Check(semop(semaphore, &operation, 1) == 0, "semop");  // hangs: sysv_semaphore
}

static void SetUp(void* memory, const struct Arguments* args) {
  struct Page* page = memory;
  (void)args;
  page->semaphore = semget(IPC_PRIVATE, 1, 0600);
  Check(page->semaphore >= 0, "semget");
  Change(page->semaphore, 1);
}

// The child that holds the semaphore writes the log.
static void WriteLog(const struct Arguments* args, int semaphore, int round) {
  const pid_t child = fork();
  if (child == 0) {
    Change(semaphore, -1);
    Compute(args->pause / args->ranks);
    if (round == 3 && args->rank == 2 && !args->fixed) raise(SIGKILL);
    Change(semaphore, 1);
    _exit(0);
  }
  waitpid(child, NULL, 0);  // hangs: sysv_semaphore
}

int main(int argc, char** argv) {
  const struct Arguments args = ParseArguments(argc, argv);
  const struct Page* page = SharedPage(&args, sizeof(*page), SetUp);
  for (int round = 0; round < args.rounds; ++round) WriteLog(&args, page->semaphore, round);
  return Done(&args);
}
