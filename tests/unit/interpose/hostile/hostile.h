// SPDX-License-Identifier: Apache-2.0
// Shared by the hostile programs. Each file has several programs in a table at its end, and runs
// the program that its first argument names. A program has the same output and end in each run.
#pragma once
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <nccl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifdef __cplusplus
extern "C"
#endif
    void hostile_call_back(void (*function)(void));

static ncclComm_t comm;

#define CHECK(what)                                     \
  do {                                                  \
    if (!(what)) {                                      \
      printf("%s:%d: %s\n", __FILE__, __LINE__, #what); \
      fflush(stdout);                                   \
      _exit(1);                                         \
    }                                                   \
  } while (0)

static inline ncclComm_t create(void) {
  ncclUniqueId id;
  ncclComm_t created;
  CHECK(ncclGetUniqueId(&id) == ncclSuccess);
  CHECK(ncclCommInitRank(&created, 2, id, 0) == ncclSuccess);
  return created;
}
static inline void reduce(void) {
  errno = 4711;
  CHECK(ncclAllReduce(0, 0, 8, ncclFloat, ncclSum, comm, 0) == ncclSuccess);
  CHECK(errno == 4711);
}
static inline void join_job(void) {
  errno = 4712;
  comm = create();
  CHECK(errno == 4712);
  reduce();
}

struct Program {
  const char* name;
  int (*run)(void);  // gives the exit code
};

static inline int run_named(const struct Program* programs, int count, char** arguments) {
  for (; count > 1 && programs->name != 0; ++programs) {
    if (strcmp(programs->name, arguments[1]) != 0) continue;
    const int code = programs->run();
    printf("%s ends with %d\n", programs->name, code);
    return code;
  }
  return 99;
}
#define RUN_NAMED(programs) \
  int main(int count, char** arguments) { return run_named(programs, count, arguments); }
