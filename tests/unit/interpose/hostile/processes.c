// SPDX-License-Identifier: Apache-2.0
// Processes that multiply, become others, are stopped, and lose their rights and their place.
#include "hostile.h"

#include <fcntl.h>
#include <grp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

extern char** environ;

static void wait_for(pid_t child, int code) {
  int status = -1;
  CHECK(child > 0 && waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == code);
}
static void again(const char* name, const char* argument) {
  char* const arguments[] = {"again", (char*)name, (char*)argument, 0};
  execv("/proc/self/exe", arguments);
  CHECK(0);
}

static atomic_int stop;
static void* create_for_long(void* unused) {
  for (int i = 0; i < 200 && !stop; ++i) CHECK(ncclCommDestroy(create()) == ncclSuccess);
  return unused;
}
static int fork_storm(void) {
  pthread_t threads[4];
  for (int i = 0; i < 4; ++i) pthread_create(&threads[i], 0, create_for_long, 0);
  for (int i = 0; i < 15; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(20);
      join_job();
      comm = create();
      reduce();
      _exit(3);
    }
    wait_for(child, 3);
  }
  stop = 1;
  for (int i = 0; i < 4; ++i) pthread_join(threads[i], 0);
  return 7;
}

// As fork, but the C library does not know.
static pid_t raw_fork(void) { return (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0); }
static int raw_clone(void) {
  join_job();
  for (int i = 0; i < 10; ++i) {
    const pid_t child = raw_fork();
    if (child == 0) {
      reduce();
      join_job();
      exit(3);
    }
    wait_for(child, 3);
    reduce();
  }
  return 7;
}
// Leaves its parent's segment with what it says of the parent: read by the test.
static int raw_clone_exits(void) {
  join_job();
  const pid_t child = raw_fork();
  if (child == 0) exit(3);
  wait_for(child, 3);
  fflush(stdout);
  _exit(7);
}

static int in_shared_memory(void* unused) {
  (void)unused;
  reduce();
  comm = create();
  reduce();
  _exit(3);
}
static int clone_with_memory(void) {
  static char stack[64 << 10] __attribute__((aligned(16)));
  join_job();
  for (int i = 0; i < 20; ++i) {
    const int flags = CLONE_VM | CLONE_VFORK | SIGCHLD | (i % 2 == 0 ? CLONE_FILES : 0);
    wait_for(clone(in_shared_memory, stack + sizeof(stack), flags, 0), 3);
    reduce();
  }
  return 7;
}

static void* exec_here(void* unused) {
  join_job();
  again("ends", 0);
  return unused;
}
static int exec_in_a_thread(void) {
  pthread_t thread;
  join_job();
  pthread_create(&thread, 0, exec_here, 0);
  pthread_join(thread, 0);
  return 1;
}
static int ends(void) {
  join_job();
  return 7;
}
static int exec_many_times(void) {
  const char* text = getenv("HOSTILE_LEFT");
  const int left = text == 0 ? 20 : atoi(text);
  char next[16];
  join_job();
  if (left == 0) return 7;
  snprintf(next, sizeof(next), "%d", left - 1);
  setenv("HOSTILE_LEFT", next, 1);
  again("exec_many_times", 0);
  return 1;
}

static pid_t forked;
static void fork_here(void) { forked = fork(); }
static int fork_within_a_call(void) {
  join_job();
  for (int i = 0; i < 10; ++i) {
    hostile_call_back(fork_here);
    CHECK(ncclAllReduce(0, 0, 8, ncclFloat, ncclSum, comm, 0) == ncclSuccess);
    hostile_call_back(0);
    if (forked == 0) {
      join_job();
      exit(3);
    }
    wait_for(forked, 3);
  }
  return 7;
}

static int spawn(void) {
  char* const arguments[] = {"true", 0};
  join_job();
  for (int i = 0; i < 20; ++i) {
    pid_t child = 0;
    CHECK(posix_spawn(&child, "/bin/true", 0, 0, arguments, environ) == 0);
    wait_for(child, 0);
    reduce();
  }
  return 7;
}

static int generations(void) {  // each forks the next, with its parent's communicators open
  int left = 12;
  join_job();
  for (; left > 0; --left) {
    const pid_t child = fork();
    if (child != 0) {
      wait_for(child, 3);
      reduce();
      if (left == 12) return 7;
      exit(3);
    }
    join_job();
  }
  exit(3);
}

static void reduce_in_child(void) { reduce(); }
static int calls_in_fork_handlers(void) {
  pthread_atfork(reduce_in_child, reduce_in_child, join_job);
  join_job();
  for (int i = 0; i < 10; ++i) {
    const pid_t child = fork();
    if (child == 0) exit(3);
    wait_for(child, 3);
  }
  return 7;
}

static int stop_and_go(void) {
  const pid_t child = fork();
  if (child == 0) {
    for (int i = 0; i < 20; ++i) join_job();
    for (int i = 0; i < 20000; ++i) reduce();
    _exit(3);
  }
  for (int i = 0; i < 30; ++i) {
    usleep(300);
    kill(child, SIGSTOP);
    usleep(100);
    kill(child, SIGCONT);
  }
  wait_for(child, 3);
  return 7;
}

static int traced(void) {
  const pid_t child = fork();
  if (child == 0) {
    ptrace(PTRACE_TRACEME, 0, 0, 0);
    raise(SIGSTOP);
    join_job();
    reduce();
    _exit(3);
  }
  int status = 0;
  while (waitpid(child, &status, 0) == child && WIFSTOPPED(status)) {
    const int signal = WSTOPSIG(status);
    ptrace(PTRACE_SYSCALL, child, 0, signal == SIGTRAP || signal == SIGSTOP ? 0 : signal);
  }
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 3);
  return 7;
}

static int not_dumpable(void) {
  CHECK(prctl(PR_SET_DUMPABLE, 0) == 0);
  join_job();
  comm = create();
  reduce();
  return 7;
}

static int become_nobody(int start_first) {
  if (start_first) join_job();
  CHECK(setgroups(0, 0) == 0 && setgid(65534) == 0 && setuid(65534) == 0);
  join_job();
  comm = create();
  reduce();
  return 7;
}
static int nobody_after_start(void) { return become_nobody(1); }
static int nobody_before_start(void) { return become_nobody(0); }

static int another_root(void) {
  join_job();
  CHECK(mkdir("root", 0700) == 0);
  CHECK(chroot("root") == 0 && chdir("/") == 0);
  join_job();
  comm = create();
  reduce();
  CHECK(chroot(".") == 0);
  return 7;
}

static int leave_namespace(int flags) {
  join_job();
  CHECK(unshare(flags) == 0);
  join_job();
  const pid_t child = fork();
  if (child == 0) {
    join_job();
    comm = create();
    exit(3);
  }
  wait_for(child, 3);
  reduce();
  return 7;
}
static int new_mounts(void) { return leave_namespace(CLONE_NEWNS); }
static int new_users(void) { return leave_namespace(CLONE_NEWUSER | CLONE_NEWNS); }
static int new_pids(void) { return leave_namespace(CLONE_NEWPID); }

static int without_proc(void) {
  CHECK(unshare(CLONE_NEWNS) == 0);
  CHECK(mount("none", "/", 0, MS_REC | MS_PRIVATE, 0) == 0);
  CHECK(mount("none", "/proc", "tmpfs", 0, 0) == 0);
  join_job();
  comm = create();
  reduce();
  return 7;
}
static int hidden_proc(void) {
  CHECK(unshare(CLONE_NEWNS) == 0);
  CHECK(mount("none", "/", 0, MS_REC | MS_PRIVATE, 0) == 0);
  CHECK(mount("proc", "/proc", "proc", 0, "hidepid=invisible") == 0);
  CHECK(setgid(65534) == 0 && setuid(65534) == 0);
  join_job();
  return 7;
}

static int folder_deleted(void) {
  char folder[] = "/tmp/rollcall-hostile-XXXXXX";
  CHECK(mkdtemp(folder) != 0 && chdir(folder) == 0 && rmdir(folder) == 0);
  join_job();
  comm = create();
  reduce();
  return 7;
}
static int moves_about(void) {
  join_job();
  CHECK(chdir("/") == 0);
  for (int i = 0; i < 5; ++i) comm = create();
  reduce();
  return 7;
}

static int no_environment(void) {
  environ = 0;
  join_job();
  return 7;
}
static int cleared_environment(void) {
  clearenv();
  join_job();
  return 7;
}

static int all_closed(void) {
  char out[64];
  const int output = dup(1);
  join_job();
  for (int fd = 0; fd < 64; ++fd) {
    if (fd != output) close(fd);
  }
  for (int i = 0; i < 5; ++i) comm = create();
  reduce();
  CHECK(open("/dev/null", O_RDWR) == 0);
  const int length = snprintf(out, sizeof(out), "all closed\n");
  CHECK(write(output, out, (size_t)length) == length);
  _exit(7);
}
static int closed_before_start(void) {
  const int output = dup(1);
  for (int fd = 0; fd < 64; ++fd) {
    if (fd != output) close(fd);
  }
  join_job();
  for (int fd = 0; fd < 64; ++fd) {
    if (fd != output && fcntl(fd, F_GETFD) != -1) _exit(2);
  }
  CHECK(write(output, "none left open\n", 15) == 15);
  _exit(7);
}

static const struct Program programs[] = {
    {"fork_storm", fork_storm},
    {"raw_clone", raw_clone},
    {"raw_clone_exits", raw_clone_exits},
    {"clone_with_memory", clone_with_memory},
    {"exec_in_a_thread", exec_in_a_thread},
    {"ends", ends},
    {"exec_many_times", exec_many_times},
    {"fork_within_a_call", fork_within_a_call},
    {"spawn", spawn},
    {"generations", generations},
    {"calls_in_fork_handlers", calls_in_fork_handlers},
    {"stop_and_go", stop_and_go},
    {"traced", traced},
    {"not_dumpable", not_dumpable},
    {"nobody_after_start", nobody_after_start},
    {"nobody_before_start", nobody_before_start},
    {"another_root", another_root},
    {"new_mounts", new_mounts},
    {"new_users", new_users},
    {"new_pids", new_pids},
    {"without_proc", without_proc},
    {"hidden_proc", hidden_proc},
    {"folder_deleted", folder_deleted},
    {"moves_about", moves_about},
    {"no_environment", no_environment},
    {"cleared_environment", cleared_environment},
    {"all_closed", all_closed},
    {"closed_before_start", closed_before_start},
    {0, 0},
};
RUN_NAMED(programs)
