// SPDX-License-Identifier: Apache-2.0
// 64 threads, each blocked some 24 calls deep, and a communicator.
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <unistd.h>

#include "tests/support/job.h"

#define NOINLINE __attribute__((noinline))

namespace {

sem_t never;
constexpr int kThreads = 64;

NOINLINE void StandInLeaf() {
  sem_wait(&never);
  __asm__ volatile("");
}

NOINLINE void Descend(int depth) {
  if (depth == 0) {
    StandInLeaf();
  } else {
    Descend(depth - 1);
  }
  __asm__ volatile("");
}

void* Run(void*) {
  Descend(20);
  return nullptr;
}

}  // namespace

int main() {
  ncclUniqueId id;
  ncclComm_t comm;
  CHECK_NCCL(ncclGetUniqueId(&id));
  CHECK_NCCL(ncclCommInitRank(&comm, 1, id, 0));
  sem_init(&never, 0, 0);
  for (int i = 0; i < kThreads; ++i) {
    pthread_t thread;
    pthread_create(&thread, nullptr, Run, nullptr);
  }
  sleep(1);
  puts("ready");
  fflush(stdout);
  pause();
}
