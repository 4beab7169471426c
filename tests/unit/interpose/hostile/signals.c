// SPDX-License-Identifier: Apache-2.0
// Signals that come in calls, are blocked, are taken, or leave calls for good; and a stderr that
// must not be written to.
#include "hostile.h"

#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>

static void handle(int number, void (*handler)(int), int flags) {
  struct sigaction action;
  memset(&action, 0, sizeof(action));
  action.sa_handler = handler;
  action.sa_flags = flags;
  CHECK(sigaction(number, &action, 0) == 0);
}
static void every(int microseconds) {
  const struct itimerval often = {{0, microseconds}, {0, microseconds}};
  setitimer(ITIMER_REAL, &often, 0);
}

static int all_blocked(void) {
  sigset_t all, left;
  sigfillset(&all);
  CHECK(sigprocmask(SIG_SETMASK, &all, 0) == 0);
  join_job();
  comm = create();
  reduce();
  CHECK(sigpending(&left) == 0);
  for (int number = 1; number < 64; ++number) CHECK(sigismember(&left, number) != 1);
  CHECK(sigprocmask(SIG_SETMASK, 0, &left) == 0 && sigismember(&left, SIGTERM) == 1);
  return 7;
}

static volatile sig_atomic_t taken;
static void take(int number) { taken = number; }
static int takes_the_last_signal(void) {
  join_job();
  handle(SIGRTMAX, take, 0);
  comm = create();
  for (int i = 0; i < 100; ++i) {
    taken = 0;
    raise(SIGRTMAX);
    CHECK(taken == SIGRTMAX);
    reduce();
  }
  return 7;
}
static int takes_all_signals_first(void) {
  for (int number = 1; number <= SIGRTMAX; ++number) {
    if (number != SIGKILL && number != SIGSTOP && (number < 32 || number >= SIGRTMIN)) {
      handle(number, take, 0);
    }
  }
  join_job();
  for (int number = SIGRTMIN; number <= SIGRTMAX; ++number) {
    raise(number);
    CHECK(taken == number);
  }
  raise(SIGQUIT);
  CHECK(taken == SIGQUIT);
  return 7;
}
static int dies_by_the_last_signal(void) {
  join_job();
  fflush(stdout);
  raise(SIGRTMAX);
  return 1;
}
static int child_dies_by_any_signal(void) {
  join_job();
  for (int number = SIGRTMIN; number <= SIGRTMAX; number += 10) {
    const pid_t child = fork();
    if (child == 0) {
      raise(number);
      _exit(1);
    }
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == number);
  }
  return 7;
}

static void reduce_in_handler(int number) {
  const int saved_errno = errno;
  taken += number == SIGALRM;
  CHECK(ncclAllReduce(0, 0, 8, ncclFloat, ncclSum, comm, 0) == ncclSuccess);
  errno = saved_errno;
}
static int calls_in_handlers(void) {
  join_job();
  handle(SIGALRM, reduce_in_handler, 0);
  every(100);
  while (taken < 300) reduce();
  every(0);
  return 7;
}
static int creates_while_interrupted(void) {
  handle(SIGALRM, reduce_in_handler, 0);
  comm = create();
  every(50);
  for (int i = 0; i < 300 && taken < 300; ++i) CHECK(create() != 0);
  every(0);
  return 7;
}

static sigjmp_buf before;
static void leave(int number) {
  (void)number;
  siglongjmp(before, 1);
}
static void wait_in_call(void) { pause(); }
static int leaves_calls_by_signal(void) {
  join_job();
  handle(SIGALRM, leave, 0);
  for (volatile int i = 0; i < 20; ++i) {
    if (sigsetjmp(before, 1) == 0) {
      hostile_call_back(wait_in_call);
      every(500);
      for (;;) CHECK(ncclAllReduce(0, 0, 8, ncclFloat, ncclSum, comm, 0) == ncclSuccess);
    }
    every(0);
    hostile_call_back(0);
    reduce();
    comm = create();
  }
  return 7;
}
static jmp_buf outside;
static void jump_out(void) { longjmp(outside, 1); }
static int leaves_calls_by_jump(void) {
  join_job();
  for (volatile int i = 0; i < 200; ++i) {
    hostile_call_back(jump_out);
    if (setjmp(outside) == 0) {
      ncclAllReduce(0, 0, 8, ncclFloat, ncclSum, comm, 0);
      CHECK(0);
    }
    hostile_call_back(0);
    reduce();
  }
  return 7;
}

static int smallest_signal_stack(void) {
  static char memory[2048];  // MINSIGSTKSZ of old
  stack_t stack;
  memset(&stack, 0, sizeof(stack));
  stack.ss_sp = memory;
  stack.ss_size = sizeof(memory);
  join_job();
  const int set = sigaltstack(&stack, 0);  // a kernel may ask for more
  CHECK(set == 0 || errno == ENOMEM);
  comm = create();
  reduce();
  return 7;
}

static void full_pipe_as_stderr(void) {
  static char noise[4096];
  int ends[2];
  CHECK(pipe(ends) == 0 && fcntl(ends[1], F_SETFL, O_NONBLOCK) == 0);
  while (write(ends[1], noise, sizeof(noise)) > 0) {
  }
  CHECK(fcntl(ends[1], F_SETFL, 0) == 0 && dup2(ends[1], 2) == 2);
}
static int nobody_reads_stderr(void) {
  full_pipe_as_stderr();
  join_job();
  comm = create();
  reduce();
  return 7;
}
static int reader_of_stderr_ended(void) {
  int ends[2];
  CHECK(pipe(ends) == 0 && dup2(ends[1], 2) == 2);
  close(ends[0]);
  close(ends[1]);
  join_job();
  comm = create();
  reduce();
  return 7;
}
static int stderr_may_not_grow(void) {
  const struct rlimit nothing = {0, 0};
  FILE* file = tmpfile();
  CHECK(file != 0 && dup2(fileno(file), 2) == 2 && setrlimit(RLIMIT_FSIZE, &nothing) == 0);
  join_job();
  comm = create();
  reduce();
  return 7;  // stdout is a pipe
}
// After what it says, one asks for the stacks by hand.
static int quit_with_broken_stderr(void) {
  join_job();
  handle(SIGPIPE, take, 0);
  reader_of_stderr_ended();
  if (getenv("ROLLCALL_DIR") != 0 && getenv("LD_PRELOAD") != 0) raise(SIGQUIT);
  CHECK(taken == 0);
  return 7;
}

static atomic_int stop;
static void* signal_often(void* thread) {
  while (!stop) pthread_kill(*(pthread_t*)thread, SIGUSR1);
  return 0;
}
static int signal_flood(void) {
  static pthread_t self;
  pthread_t sender;
  self = pthread_self();
  handle(SIGUSR1, take, 0);
  pthread_create(&sender, 0, signal_often, &self);
  for (int i = 0; i < 20; ++i) {
    comm = create();
    reduce();
  }
  stop = 1;
  pthread_join(sender, 0);
  return 7;
}

static void reduce_at_exit(void) {
  reduce();
  printf("at exit\n");
  fflush(stdout);
}
static int calls_at_exit(void) {
  atexit(reduce_at_exit);
  join_job();
  atexit(reduce_at_exit);
  return 7;
}
static int starts_at_exit(void) {
  atexit(join_job);
  return 7;
}
static int quick_exits(void) {
  at_quick_exit(reduce_at_exit);
  join_job();
  quick_exit(7);
}
static int aborts(void) {
  const struct rlimit nothing = {0, 0};
  setrlimit(RLIMIT_CORE, &nothing);
  join_job();
  abort();
}
static void exit_here(void) { exit(7); }
static void* exit_in_call(void* unused) {
  hostile_call_back(exit_here);
  reduce();
  return unused;
}
static int exits_in_a_call(void) {
  pthread_t thread;
  join_job();
  atexit(reduce_at_exit);
  pthread_create(&thread, 0, exit_in_call, 0);
  for (;;) pause();
  return 1;
}

static const struct Program programs[] = {
    {"all_blocked", all_blocked},
    {"takes_the_last_signal", takes_the_last_signal},
    {"takes_all_signals_first", takes_all_signals_first},
    {"dies_by_the_last_signal", dies_by_the_last_signal},
    {"child_dies_by_any_signal", child_dies_by_any_signal},
    {"calls_in_handlers", calls_in_handlers},
    {"creates_while_interrupted", creates_while_interrupted},
    {"leaves_calls_by_signal", leaves_calls_by_signal},
    {"leaves_calls_by_jump", leaves_calls_by_jump},
    {"smallest_signal_stack", smallest_signal_stack},
    {"nobody_reads_stderr", nobody_reads_stderr},
    {"reader_of_stderr_ended", reader_of_stderr_ended},
    {"stderr_may_not_grow", stderr_may_not_grow},
    {"quit_with_broken_stderr", quit_with_broken_stderr},
    {"signal_flood", signal_flood},
    {"calls_at_exit", calls_at_exit},
    {"starts_at_exit", starts_at_exit},
    {"quick_exits", quick_exits},
    {"aborts", aborts},
    {"exits_in_a_call", exits_in_a_call},
    {0, 0},
};
RUN_NAMED(programs)
