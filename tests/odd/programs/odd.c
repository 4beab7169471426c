// SPDX-License-Identifier: Apache-2.0
// Jobs that use the kernel in ways that are rare: in the form of tests/unit/interpose/hostile/.
#include "hostile.h"

#include <linux/io_uring.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

static void wait_for(pid_t child, int code) {
  int status = -1;
  CHECK(child > 0 && waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == code);
}
static int work(void) {
  join_job();
  for (int i = 0; i < 3; ++i) comm = create();
  for (int i = 0; i < 1000; ++i) reduce();
  return 7;
}

static int works(void) { return work(); }

static int in_new_namespaces(uint64_t flags) {
  work();
  struct clone_args arguments;
  memset(&arguments, 0, sizeof(arguments));
  arguments.flags = flags;
  arguments.exit_signal = SIGCHLD;
  const pid_t child = (pid_t)syscall(SYS_clone3, &arguments, sizeof(arguments));
  if (child == 0) {
    reduce();
    comm = create();
    reduce();
    _exit(3);
  }
  if (child < 0) printf("not here: %s\n", strerror(errno));
  if (child > 0) wait_for(child, 3);
  reduce();
  return 7;
}
static int clone3_alone(void) { return in_new_namespaces(0); }
static int clone3_with_a_user(void) { return in_new_namespaces(CLONE_NEWUSER); }
static int clone3_with_all(void) {
  return in_new_namespaces(CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWNET |
                           CLONE_NEWIPC | CLONE_NEWUTS);
}

// Reads a file by io_uring, without liburing.
static int uses_io_uring(void) {
  struct io_uring_params about;
  static char text[64];
  memset(&about, 0, sizeof(about));
  work();
  const int ring = (int)syscall(SYS_io_uring_setup, 4, &about);
  if (ring < 0) {
    printf("not here: %s\n", strerror(errno));
    return 7;
  }
  const size_t ring_bytes = about.sq_off.array + about.sq_entries * sizeof(unsigned);
  const size_t done_bytes = about.cq_off.cqes + about.cq_entries * sizeof(struct io_uring_cqe);
  const int rights = PROT_READ | PROT_WRITE;
  char* submitted = (char*)mmap(0, ring_bytes, rights, MAP_SHARED, ring, IORING_OFF_SQ_RING);
  char* done = (char*)mmap(0, done_bytes, rights, MAP_SHARED, ring, IORING_OFF_CQ_RING);
  struct io_uring_sqe* entry =
      (struct io_uring_sqe*)mmap(0, 4 * sizeof(*entry), rights, MAP_SHARED, ring, IORING_OFF_SQES);
  CHECK(submitted != MAP_FAILED && done != MAP_FAILED && entry != MAP_FAILED);
  FILE* file = tmpfile();
  CHECK(file != 0 && fputs("by io_uring\n", file) >= 0 && fflush(file) == 0);
  for (int i = 0; i < 100; ++i) {
    memset(entry, 0, sizeof(*entry));
    entry->opcode = IORING_OP_READ;
    entry->fd = fileno(file);
    entry->addr = (uintptr_t)text;
    entry->len = sizeof(text);
    *(unsigned*)(submitted + about.sq_off.array) = 0;
    ++*(unsigned*)(submitted + about.sq_off.tail);
    CHECK(syscall(SYS_io_uring_enter, ring, 1, 1, IORING_ENTER_GETEVENTS, 0, 0) == 1);
    const struct io_uring_cqe* result =
        (struct io_uring_cqe*)(done + about.cq_off.cqes) + i % (int)about.cq_entries;
    CHECK(result->res == 12);
    ++*(unsigned*)(done + about.cq_off.head);
    reduce();
  }
  printf("%s", text);
  return 7;
}

static int forks_a_tree(void) {  // 63 processes, each with communicators
  for (int left = 5; left > 0; --left) {
    const pid_t one = fork();
    const pid_t other = one == 0 ? 0 : fork();
    if (one != 0 && other != 0) {
      join_job();
      wait_for(one, 3);
      wait_for(other, 3);
      if (left == 5) return 7;
      exit(3);
    }
  }
  join_job();
  exit(3);
}

static int closes_a_range(void) {
  work();
  CHECK(syscall(SYS_close_range, 3, ~0u, 0) == 0);
  work();
  CHECK(dup(1) == 3);  // no process holds a number
  return 7;
}

static int runs_itself(char* const* environment) {
  work();
  fflush(stdout);
  char* const arguments[] = {"odd", "works", 0};
  execve("/proc/self/exe", arguments, environment);
  return 1;
}
static int runs_with_an_empty_environment(void) {
  char path[4096];  // without it the program would not start
  snprintf(path, sizeof(path), "LD_LIBRARY_PATH=%s", getenv("LD_LIBRARY_PATH"));
  char* const environment[] = {path, 0};
  return runs_itself(environment);
}

// Ends by exit() in the memory of its parent, which nothing allows, and all that do it survive.
static int vforks_and_exits(void) {
  work();
  fflush(stdout);
  const pid_t child = vfork();
  if (child == 0) exit(3);
  wait_for(child, 3);
  reduce();
  return 7;
}
static int vforks_and_execs(void) {
  work();
  for (int i = 0; i < 50; ++i) {
    const pid_t child = vfork();
    if (child == 0) {
      execl("/bin/true", "true", (char*)0);
      _exit(1);
    }
    wait_for(child, 0);
    reduce();
  }
  return 7;
}

static int changes_its_user(void) {
  work();
  CHECK(setresuid(65534, 65534, 65534) == 0);
  for (int i = 0; i < 100; ++i) reduce();
  return 7;
}

static const struct Program programs[] = {
    {"works", works},
    {"clone3_alone", clone3_alone},
    {"clone3_with_a_user", clone3_with_a_user},
    {"clone3_with_all", clone3_with_all},
    {"uses_io_uring", uses_io_uring},
    {"forks_a_tree", forks_a_tree},
    {"closes_a_range", closes_a_range},
    {"runs_with_an_empty_environment", runs_with_an_empty_environment},
    {"vforks_and_exits", vforks_and_exits},
    {"vforks_and_execs", vforks_and_execs},
    {"changes_its_user", changes_its_user},
    {0, 0},
};
RUN_NAMED(programs)
