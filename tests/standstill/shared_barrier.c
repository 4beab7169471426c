// SPDX-License-Identifier: Apache-2.0
// Rank 2 waits at a condition that no thread signals, and does not come to the barrier in shared
// memory.
#include <pthread.h>

#include "ranks.h"

struct Page {
  pthread_barrier_t barrier;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t filled = PTHREAD_COND_INITIALIZER;
static int batches = 0;

static void SetUp(void* memory, const struct Arguments* args) {
  struct Page* page = memory;
  pthread_barrierattr_t attributes;
  pthread_barrierattr_init(&attributes);
  pthread_barrierattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  pthread_barrier_init(&page->barrier, &attributes, (unsigned)args->ranks);
}

// The thread that reads batches. It forgets one signal on rank 2.
static void* ReadBatches(void* argument) {
  const struct Arguments* args = argument;
  for (int round = 0; round < args->rounds; ++round) {
    Compute(args->pause);
    if (round == 3 && args->rank == 2 && !args->fixed) return NULL;
    pthread_mutex_lock(&mutex);
    ++batches;
    pthread_cond_signal(&filled);
    pthread_mutex_unlock(&mutex);
  }
  return NULL;
}

static void TakeBatch(void) {
  pthread_mutex_lock(&mutex);
  while (batches == 0) pthread_cond_wait(&filled, &mutex);  // hangs: shared_barrier
  --batches;
  pthread_mutex_unlock(&mutex);
}

int main(int argc, char** argv) {
  struct Arguments args = ParseArguments(argc, argv);
  struct Page* page = SharedPage(&args, sizeof(*page), SetUp);
  pthread_t reader;
  Check(pthread_create(&reader, NULL, ReadBatches, &args) == 0, "pthread_create");
  for (int round = 0; round < args.rounds; ++round) {
    TakeBatch();
    pthread_barrier_wait(&page->barrier);
  }
  pthread_join(reader, NULL);
  return Done(&args);
}
