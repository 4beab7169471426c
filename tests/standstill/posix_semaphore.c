// SPDX-License-Identifier: Apache-2.0
// Rank 1 leaves its turn without a post to the next rank's semaphore. All ranks then wait, each at
// its own one.
#include <semaphore.h>

#include "ranks.h"

enum { kMostRanks = 8 };

struct Page {
  sem_t turns[kMostRanks];
};

static void SetUp(void* memory, const struct Arguments* args) {
  struct Page* page = memory;
  for (int rank = 0; rank < args->ranks; ++rank) sem_init(&page->turns[rank], 1, rank == 0);
}

static void TakeTurn(struct Page* page, const struct Arguments* args, int round) {
  sem_wait(&page->turns[args->rank]);  // hangs: posix_semaphore
  Compute(args->pause / args->ranks);
  if (round == 3 && args->rank == 1 && !args->fixed) return;
  sem_post(&page->turns[(args->rank + 1) % args->ranks]);
}

int main(int argc, char** argv) {
  const struct Arguments args = ParseArguments(argc, argv);
  struct Page* page = SharedPage(&args, sizeof(*page), SetUp);
  for (int round = 0; round < args.rounds; ++round) TakeTurn(page, &args, round);
  return Done(&args);
}
