// SPDX-License-Identifier: Apache-2.0
// Preloaded into a target: a thread reads the clock every 100 us and writes the longest gap between
// two readings to the file TICKER_FILE. A tool that stops the process causes a gap.
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include <atomic>

namespace {

std::atomic<uint64_t>* longest_ns = nullptr;  // measure.py resets it to 0

uint64_t Now() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1000000000 + static_cast<uint64_t>(now.tv_nsec);
}

void* Tick(void*) {
  pthread_setname_np(pthread_self(), "ticker");
  prctl(PR_SET_TIMERSLACK, 1);
  uint64_t last = Now();
  while (true) {
    const timespec pause = {0, 100000};
    nanosleep(&pause, nullptr);
    const uint64_t now = Now();
    if (now - last > longest_ns->load()) longest_ns->store(now - last);
    last = now;
  }
}

__attribute__((constructor)) void StartTicker() {
  const char* path = getenv("TICKER_FILE");
  if (path == nullptr) return;
  // In a job only one rank has a ticker. The children of a single process have none.
  const char* wanted = getenv("TICKER_RANK");
  const char* rank = getenv("RANK");
  if (wanted != nullptr && (rank == nullptr || strcmp(rank, wanted) != 0)) return;
  unsetenv("TICKER_FILE");
  const int fd = open(path, O_RDWR | O_CLOEXEC);
  void* memory = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  if (memory == MAP_FAILED) return;
  longest_ns = static_cast<std::atomic<uint64_t>*>(memory);
  pthread_t thread;
  pthread_create(&thread, nullptr, Tick, nullptr);
}

}  // namespace
