// SPDX-License-Identifier: Apache-2.0
// What the C programs of this folder share: their arguments, a page that all ranks map, slow but
// healthy work.
//
//   launch.py -n RANKS -- PROGRAM --work FOLDER [--fixed] [--for SECONDS]
#ifndef TESTS_STANDSTILL_RANKS_H_
#define TESTS_STANDSTILL_RANKS_H_

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

struct Arguments {
  int rank, ranks, fixed, rounds;
  double seconds, pause;
};

static inline void Check(int good, const char* what) {
  if (good) return;
  perror(what);
  exit(1);
}

// Some quick rounds before a hang, slow ones of 3 s if fixed.
static inline struct Arguments ParseArguments(int argc, char** argv) {
  struct Arguments args = {atoi(getenv("RANK")), atoi(getenv("WORLD_SIZE")), 0, 6, 30, 0.05};
  for (int i = 1; i < argc; ++i) {
    if (strcmp(argv[i], "--fixed") == 0) args.fixed = 1;
    if (strcmp(argv[i], "--for") == 0) args.seconds = atof(argv[++i]);
    if (strcmp(argv[i], "--work") == 0) Check(chdir(argv[++i]) == 0, "chdir");
  }
  if (args.fixed) {
    args.pause = 3;
    args.rounds = (int)(args.seconds / args.pause) + 2;
  }
  return args;
}

static inline double Now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec + now.tv_nsec * 1e-9;
}

static inline void Sleep(double seconds) {
  const struct timespec time = {(time_t)seconds, (long)((seconds - (time_t)seconds) * 1e9)};
  nanosleep(&time, NULL);
}

// Uses a fifth of a core.
static inline void Compute(double seconds) {
  const double end = Now() + seconds;
  while (Now() < end) {
    const double burst = Now() + 0.02;
    while (Now() < burst) {
    }
    Sleep(0.08);
  }
}

static inline void WaitForFile(const char* name) {
  while (access(name, F_OK) != 0) Sleep(0.1);
}

// Rank 0 makes the page, and calls `set_up` before the others see it.
static inline void* SharedPage(const struct Arguments* args, size_t size,
                               void (*set_up)(void*, const struct Arguments*)) {
  if (args->rank != 0) WaitForFile("page");
  const int file = open(args->rank == 0 ? "page.new" : "page", O_RDWR | O_CREAT, 0600);
  Check(file >= 0 && ftruncate(file, (off_t)size) == 0, "page");
  void* page = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  Check(page != MAP_FAILED, "mmap");
  close(file);
  if (args->rank == 0) {
    set_up(page, args);
    Check(rename("page.new", "page") == 0, "rename");
  }
  return page;
}

static inline int Done(const struct Arguments* args) {
  printf("rank %d done\n", args->rank);
  return 0;
}

#endif  // TESTS_STANDSTILL_RANKS_H_
