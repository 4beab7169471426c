// SPDX-License-Identifier: Apache-2.0
// Limits, locked memory, memory that is thrown away, and filters of system calls.
#include "hostile.h"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
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
    {0, 0},
};
RUN_NAMED(programs)
