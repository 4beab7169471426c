// SPDX-License-Identifier: Apache-2.0
// Rank 0 reads a pipe without a writer, while it holds a mutex in shared memory. The others wait
// for the mutex.
#include <pthread.h>

#include "ranks.h"

struct Page {
  pthread_mutex_t mutex;
  long steps;
};

static void SetUp(void* memory, const struct Arguments* args) {
  struct Page* page = memory;
  pthread_mutexattr_t attributes;
  (void)args;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  pthread_mutex_init(&page->mutex, &attributes);
}

static void ReadSettings(void) {
  int ends[2];
  char byte;
  Check(pipe(ends) == 0, "pipe");
  Check(read(ends[0], &byte, 1) == 1, "read");  // hangs: shared_mutex
}

static void CountStep(struct Page* page, const struct Arguments* args, int round) {
  pthread_mutex_lock(&page->mutex);
  if (round == 3 && args->rank == 0 && !args->fixed) ReadSettings();
  Compute(args->pause / args->ranks);
  ++page->steps;
  pthread_mutex_unlock(&page->mutex);
  Sleep(0.02);
}

int main(int argc, char** argv) {
  const struct Arguments args = ParseArguments(argc, argv);
  struct Page* page = SharedPage(&args, sizeof(*page), SetUp);
  for (int round = 0; round < args.rounds; ++round) CountStep(page, &args, round);
  return Done(&args);
}
