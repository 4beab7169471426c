// SPDX-License-Identifier: Apache-2.0
// Limits, locked memory, memory that is thrown away, and filters of system calls.
#include "hostile.h"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

static void limit(int what, rlim_t value) {
  const struct rlimit both = {value, value};
  CHECK(setrlimit(what, &both) == 0);
}
static int work(void) {
  join_job();
  comm = create();
  reduce();
  return 7;
}

static int no_file_may_grow(void) {
  limit(RLIMIT_FSIZE, 0);
  return work();
}
static int files_stay_small(void) {
  limit(RLIMIT_FSIZE, 100 << 10);
  return work();
}
static int few_descriptors(void) {
  while (dup(0) >= 0) {
  }
  return work();
}
static int no_descriptors_later(void) {
  join_job();
  limit(RLIMIT_NOFILE, 3);
  comm = create();
  reduce();
  return 7;
}
static int no_stack_to_grow(void) {
  limit(RLIMIT_STACK, 256 << 10);
  return work();
}
static int no_locked_memory(void) {
  limit(RLIMIT_MEMLOCK, 0);
  return work();
}
// What the program itself locks and maps is as much as it may.
static int locks_all_it_has(void) {
  limit(RLIMIT_MEMLOCK, 256 << 20);
  CHECK(setgid(65534) == 0 && setuid(65534) == 0);
  CHECK(mlockall(MCL_CURRENT | MCL_FUTURE) == 0);
  work();
  CHECK(mmap(0, 200 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
             0) != MAP_FAILED);
  return 7;
}
static int locks_all_after_start(void) {
  work();
  CHECK(mlockall(MCL_CURRENT | MCL_FUTURE) == 0);
  comm = create();
  reduce();
  return 7;
}
static int uses_its_address_space(void) {
  limit(RLIMIT_AS, 400 << 20);
  work();
  CHECK(mmap(0, 380 << 20, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0) !=
        MAP_FAILED);
  return 7;
}

// Gives `advice` for all shared files that are mapped.
static void advise(int advice) {
  char line[512];
  FILE* maps = fopen("/proc/self/maps", "r");
  CHECK(maps != 0);
  while (fgets(line, sizeof(line), maps) != 0) {
    unsigned long begin, end;
    char rights[5];
    if (sscanf(line, "%lx-%lx %4s", &begin, &end, rights) == 3 && rights[3] == 's') {
      CHECK(madvise((void*)begin, end - begin, advice) == 0);
    }
  }
  fclose(maps);
}
static int forks_without_mappings(void) {
  work();
  advise(MADV_DONTFORK);
  for (int i = 0; i < 5; ++i) {
    int status = -1;
    const pid_t child = fork();
    if (child == 0) {
      work();
      exit(3);
    }
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 3);
  }
  return 7;
}
static int throws_pages_away(void) {
  for (int i = 0; i < 5; ++i) {
    work();
    advise(MADV_DONTNEED);
    reduce();
  }
  return 7;
}

static void filter(const int* calls, int count, unsigned answer) {
  struct sock_filter code[64];
  int at = 0;
  code[at++] =
      (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
  for (int i = 0; i < count; ++i) {
    code[at++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)calls[i], 0, 1);
    code[at++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, answer);
  }
  code[at++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  const struct sock_fprog program = {(unsigned short)at, code};
  CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
  CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0);
}
#define COUNT(array) ((int)(sizeof(array) / sizeof((array)[0])))

// Not one of these may be in the way of a job, or needed.
static const int kNotNeeded[] = {SYS_ioctl,        SYS_utimensat, SYS_socket,    SYS_connect,
                                 SYS_clone,        SYS_clone3,    SYS_ptrace,    SYS_eventfd2,
                                 SYS_timer_create, SYS_sysinfo,   SYS_getrandom, SYS_memfd_create,
                                 SYS_truncate};
static int killed_for_unusual_calls(void) {
  printf("before\n");  // asks what stdout is
  fflush(stdout);
  filter(kNotNeeded, COUNT(kNotNeeded), SECCOMP_RET_KILL_PROCESS);
  return work();
}
static const int kNeeded[] = {SYS_fallocate, SYS_statfs,        SYS_fstatfs,   SYS_fcntl,
                              SYS_flock,     SYS_statx,         SYS_ftruncate, SYS_gettid,
                              SYS_tgkill,    SYS_rt_sigaction,  SYS_nanosleep, SYS_mkdirat,
                              SYS_unlinkat,  SYS_readlinkat,    SYS_prlimit64, SYS_uname,
                              SYS_getpid,    SYS_clock_gettime, SYS_ppoll,     SYS_rt_sigtimedwait};
static int forbidden_with(int error) {
  printf("before\n");
  fflush(stdout);
  filter(kNeeded, COUNT(kNeeded), SECCOMP_RET_ERRNO | (unsigned)error);
  return work();
}
static int calls_not_permitted(void) { return forbidden_with(EPERM); }
static int calls_unknown(void) { return forbidden_with(ENOSYS); }
static int no_files_at_all(void) {
  static const int files[] = {SYS_openat};
  printf("before\n");
  fflush(stdout);
  filter(files, COUNT(files), SECCOMP_RET_ERRNO | EACCES);
  return work();
}
static int no_files_later(void) {
  work();
  return no_files_at_all();
}
static int no_new_memory(void) {
  static const int memory[] = {SYS_mmap, SYS_brk};
  printf("before\n");
  fflush(stdout);
  free(malloc(64 << 10));
  filter(memory, COUNT(memory), SECCOMP_RET_ERRNO | ENOMEM);
  return work();
}

// Kills the process for every system call but those that a program needs to write and to end.
static void lock_in_by_filter(void) {
  static const int allowed[] = {SYS_write, SYS_exit, SYS_exit_group, SYS_futex};
  struct sock_filter code[16];
  int at = 0;
  code[at++] =
      (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
  for (int i = 0; i < COUNT(allowed); ++i) {
    code[at++] =
        (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)allowed[i], 0, 1);
    code[at++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  }
  code[at++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
  const struct sock_fprog program = {(unsigned short)at, code};
  CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
  CHECK(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) == 0);
}
static int locked_in(void) {
  printf("before\n");  // asks what stdout is
  fflush(stdout);
  work();
  lock_in_by_filter();
  for (int i = 0; i < 100; ++i) reduce();
  return 7;
}
static int locked_in_without_another_call(void) {
  printf("before\n");
  fflush(stdout);
  work();
  lock_in_by_filter();
  return 7;
}

// Threads that start before the process locks itself in, and make their first calls after it.
static atomic_int is_locked, started;
static void* call_once_locked(void* ended) {
  atomic_fetch_add(&started, 1);
  while (!is_locked) continue;
  for (int i = 0; i < 10; ++i) reduce();
  CHECK(ncclGroupStart() == ncclSuccess);
  reduce();
  CHECK(ncclGroupEnd() == ncclSuccess);
  atomic_fetch_add((atomic_int*)ended, 1);
  for (;;) continue;  // the end of a thread takes other system calls
  return 0;
}
static int threads_locked_in(void) {
  static atomic_int ended;
  pthread_t thread;
  printf("before\n");
  fflush(stdout);
  work();
  CHECK(ncclGroupStart() == ncclSuccess && ncclGroupEnd() == ncclSuccess);
  for (int i = 0; i < 3; ++i) pthread_create(&thread, 0, call_once_locked, &ended);
  while (started != 3) continue;
  lock_in_by_filter();
  is_locked = 1;
  while (ended != 3) continue;
  return 7;
}
// The strictest mode knows exit() for one thread only, and kills for the C library's exit_group().
static int locked_in_strictly(void) {
  static const char last[] = "calls went well\n";
  work();
  CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) == 0);
  for (int i = 0; i < 100; ++i) reduce();
  if (write(1, last, sizeof(last) - 1) < 0) return 1;
  syscall(SYS_exit, 7);
  return 1;
}

// The C library's clock_gettime() reads the counter, too.
static int forbids_the_counter(int start_first) {
  if (start_first) work();
  CHECK(prctl(PR_SET_TSC, PR_TSC_SIGSEGV) == 0);
  work();
  reduce();
  CHECK(prctl(PR_SET_TSC, PR_TSC_ENABLE) == 0);
  reduce();
  return 7;
}
static int forbids_the_counter_first(void) { return forbids_the_counter(0); }
static int forbids_the_counter_later(void) { return forbids_the_counter(1); }

static const struct Program programs[] = {
    {"no_file_may_grow", no_file_may_grow},
    {"files_stay_small", files_stay_small},
    {"few_descriptors", few_descriptors},
    {"no_descriptors_later", no_descriptors_later},
    {"no_stack_to_grow", no_stack_to_grow},
    {"no_locked_memory", no_locked_memory},
    {"locks_all_it_has", locks_all_it_has},
    {"locks_all_after_start", locks_all_after_start},
    {"uses_its_address_space", uses_its_address_space},
    {"forks_without_mappings", forks_without_mappings},
    {"throws_pages_away", throws_pages_away},
    {"killed_for_unusual_calls", killed_for_unusual_calls},
    {"calls_not_permitted", calls_not_permitted},
    {"calls_unknown", calls_unknown},
    {"no_files_at_all", no_files_at_all},
    {"no_files_later", no_files_later},
    {"no_new_memory", no_new_memory},
    {"locked_in", locked_in},
    {"locked_in_without_another_call", locked_in_without_another_call},
    {"threads_locked_in", threads_locked_in},
    {"locked_in_strictly", locked_in_strictly},
    {"forbids_the_counter_first", forbids_the_counter_first},
    {"forbids_the_counter_later", forbids_the_counter_later},
    {0, 0},
};
RUN_NAMED(programs)
