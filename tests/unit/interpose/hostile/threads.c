// SPDX-License-Identifier: Apache-2.0
// Threads that are cancelled, end, are tiny or many, or are not the kernel's.
#include "hostile.h"

#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>

static void run_thread(void* (*body)(void*), size_t stack_bytes) {
  pthread_attr_t attributes;
  pthread_t thread;
  pthread_attr_init(&attributes);
  if (stack_bytes != 0) CHECK(pthread_attr_setstacksize(&attributes, stack_bytes) == 0);
  CHECK(pthread_create(&thread, &attributes, body, 0) == 0);
  pthread_join(thread, 0);
  pthread_attr_destroy(&attributes);
}

static atomic_int passed;

static void* create_with_pending_cancel(void* unused) {
  pthread_cancel(pthread_self());
  join_job();
  comm = create();
  passed = 1;
  pthread_testcancel();
  passed = 2;
  return unused;
}
static int pending_cancel(void) {
  run_thread(create_with_pending_cancel, 0);
  CHECK(passed == 1);
  join_job();
  return 7;
}

static void* create_for_ever(void* unused) {
  pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, 0);
  passed = 1;
  for (;;) comm = create();
  return unused;
}
// NCCL promises nothing to a thread cancelled so; that the others go on is what counts.
static int cancelled_at_once(void) {
  struct timespec begin, end;
  for (int i = 0; i < 20; ++i) {
    pthread_t thread;
    passed = 0;
    pthread_create(&thread, 0, create_for_ever, 0);
    while (passed == 0) sched_yield();
    if (i % 2 == 1) usleep(i * 10);
    pthread_cancel(thread);
    pthread_join(thread, 0);
  }
  clock_gettime(CLOCK_MONOTONIC, &begin);
  for (int i = 0; i < 100; ++i) {
    CHECK(ncclGroupStart() == ncclSuccess && ncclGroupEnd() == ncclSuccess);
  }
  clock_gettime(CLOCK_MONOTONIC, &end);
  CHECK(end.tv_sec - begin.tv_sec < 3);
  join_job();
  return 7;
}

static void* group_for_ever(void* unused) {
  pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, 0);
  passed = 1;
  for (;;) CHECK(ncclGroupStart() == ncclSuccess && ncclGroupEnd() == ncclSuccess);
  return unused;
}
static void* start_for_ever(void* unused) {
  pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, 0);
  passed = 1;
  for (;;) CHECK(ncclCommDestroy(create()) == ncclSuccess);
  return unused;
}
static void cancel_the_first_call(void* (*calls)(void*), int wait) {
  pthread_t thread;
  alarm(10);  // ends this process if its next call waits for the cancelled thread
  passed = 0;
  CHECK(pthread_create(&thread, 0, calls, 0) == 0);
  while (passed == 0) sched_yield();
  for (volatile int i = 0; i < wait; ++i) continue;
  pthread_cancel(thread);
  pthread_join(thread, 0);
  CHECK(ncclGroupStart() == ncclSuccess && ncclGroupEnd() == ncclSuccess);
  _exit(7);
}
// The library looks NCCL up in a process's first call, so each cancellation has a process of its
// own.
static int cancel_first_calls(void* (*calls)(void*), int wait) {
  for (int i = 0; i < 400; ++i) {
    int status = 0;
    const pid_t child = fork();
    if (child == 0) cancel_the_first_call(calls, i * wait);
    CHECK(child > 0 && waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7);
  }
  return 7;
}
static int cancelled_in_first_calls(void) { return cancel_first_calls(group_for_ever, 100); }
static int cancelled_in_first_creations(void) { return cancel_first_calls(start_for_ever, 1000); }

static void* reduce_for_ever(void* unused) {
  pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, 0);
  for (;;) CHECK(ncclAllReduce(0, 0, 8, ncclFloat, ncclSum, comm, 0) == ncclSuccess);
  return unused;
}
static int cancelled_in_calls(void) {
  join_job();
  for (int i = 0; i < 100; ++i) {
    pthread_t thread;
    void* result = 0;
    pthread_create(&thread, 0, reduce_for_ever, 0);
    usleep(50);
    pthread_cancel(thread);
    pthread_join(thread, &result);
    CHECK(result == PTHREAD_CANCELED);
    reduce();
  }
  return 7;
}

static void end_thread(void) { pthread_exit(0); }
static void* end_in_call(void* unused) {
  hostile_call_back(end_thread);
  reduce();
  CHECK(0);
  return unused;
}
static int threads_end_in_calls(void) {
  join_job();
  for (int i = 0; i < 400; ++i) run_thread(end_in_call, 0);
  reduce();
  return 7;
}

static void* join_and_reduce(void* unused) {
  join_job();
  return unused;
}
static void* only_reduce(void* unused) {
  reduce();
  return unused;
}
static int tiny_stacks(void) {
  run_thread(join_and_reduce, PTHREAD_STACK_MIN);
  for (int i = 0; i < 50; ++i) run_thread(only_reduce, PTHREAD_STACK_MIN);
  return 7;
}

static pthread_barrier_t barrier;
static void* reduce_together(void* unused) {
  reduce();
  pthread_barrier_wait(&barrier);
  reduce();
  return unused;
}
static int many_threads(void) {
  enum { kThreads = 4096 };
  static pthread_t threads[kThreads];
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 64 << 10);
  pthread_barrier_init(&barrier, 0, kThreads);
  join_job();
  for (int i = 0; i < kThreads; ++i) {
    CHECK(pthread_create(&threads[i], &attributes, reduce_together, 0) == 0);
  }
  for (int i = 0; i < kThreads; ++i) pthread_join(threads[i], 0);
  reduce();
  return 7;
}

static ucontext_t main_context, contexts[4];
static char stacks[4][64 << 10];
static int current;
static void leave_call(void) { swapcontext(&contexts[current], &main_context); }
static void user_thread(void) {
  for (int i = 0; i < 10; ++i) {
    join_job();
    hostile_call_back(leave_call);
    CHECK(ncclAllReduce(0, 0, 8, ncclFloat, ncclSum, comm, 0) == ncclSuccess);
    hostile_call_back(0);
  }
  for (;;) leave_call();
}
static int user_threads(void) {
  for (int i = 0; i < 4; ++i) {
    getcontext(&contexts[i]);
    contexts[i].uc_stack.ss_sp = stacks[i];
    contexts[i].uc_stack.ss_size = sizeof(stacks[i]);
    makecontext(&contexts[i], user_thread, 0);
  }
  for (int i = 0; i < 80; ++i) {
    current = i % 4;
    swapcontext(&main_context, &contexts[current]);
  }
  return 7;
}

static void* create_and_destroy(void* unused) {
  for (int i = 0; i < 40; ++i) {
    ncclComm_t own = create();
    CHECK(ncclAllReduce(0, 0, 8, ncclFloat, ncclSum, own, 0) == ncclSuccess);
    CHECK(ncclCommDestroy(own) == ncclSuccess);
  }
  return unused;
}
static int eight_creators(void) {
  pthread_t threads[8];
  for (int i = 0; i < 8; ++i) pthread_create(&threads[i], 0, create_and_destroy, 0);
  for (int i = 0; i < 8; ++i) pthread_join(threads[i], 0);
  return 7;
}

static void* create_and_keep_every_other(void* number) {
  ncclComm_t own = create();
  CHECK(ncclAllReduce(0, 0, 8, ncclFloat, ncclSum, own, 0) == ncclSuccess);
  if (*(int*)number % 2 == 0) CHECK(ncclCommDestroy(own) == ncclSuccess);
  return 0;
}
static int thousand_creators(void) {
  enum { kThreads = 1500 };
  static pthread_t threads[kThreads];
  static int numbers[kThreads];
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 128 << 10);
  for (int i = 0; i < kThreads; ++i) {
    numbers[i] = i;
    CHECK(pthread_create(&threads[i], &attributes, create_and_keep_every_other, &numbers[i]) == 0);
  }
  for (int i = 0; i < kThreads; ++i) pthread_join(threads[i], 0);
  return 7;
}

static int many_communicators(void) {
  const char* wanted = getenv("HOSTILE_COMMUNICATORS");
  const int count = wanted == 0 ? 1500 : atoi(wanted);
  for (int i = 0; i < count; ++i) {
    comm = create();
    reduce();
    CHECK(ncclCommDestroy(comm) == ncclSuccess);
  }
  return 7;
}
static int too_many_communicators(void) {
  for (int i = 0; i < 1100; ++i) comm = create();
  reduce();
  return 7;
}

static atomic_int stop;
static void* set_variables(void* unused) {
  char name[32];
  for (int i = 0; !stop; ++i) {
    snprintf(name, sizeof(name), "HOSTILE_%d", i % 64);
    setenv(name, "value", 1);
  }
  return unused;
}
static int variables_change(void) {
  pthread_t thread;
  for (int i = 0; i < 100; ++i) setenv("HOSTILE_ROOM", "1", 1);
  pthread_create(&thread, 0, set_variables, 0);
  for (int i = 0; i < 20; ++i) join_job();
  stop = 1;
  pthread_join(thread, 0);
  return 7;
}

static void* end_process(void* main_thread) {
  pthread_join(*(pthread_t*)main_thread, 0);
  join_job();
  printf("after main\n");
  exit(7);
}
static int main_thread_ends(void) {
  static pthread_t main_thread;
  pthread_t thread;
  main_thread = pthread_self();
  join_job();
  pthread_create(&thread, 0, end_process, &main_thread);
  pthread_exit(0);
}

static void recurse(void) {
  hostile_call_back(0);
  comm = create();
  reduce();
  CHECK(ncclGroupStart() == ncclSuccess && ncclGroupEnd() == ncclSuccess);
}
static int calls_within_a_call(void) {
  join_job();
  for (int i = 0; i < 100; ++i) {
    hostile_call_back(recurse);
    reduce();
  }
  return 7;
}

static int open_groups(void) {
  for (int i = 0; i < 3000; ++i) CHECK(ncclGroupStart() == ncclSuccess);
  comm = create();
  for (int i = 0; i < 3000; ++i) CHECK(ncclGroupEnd() == ncclSuccess);
  CHECK(ncclGroupEnd() == ncclSuccess);
  reduce();
  return 7;
}

static const struct Program programs[] = {
    {"pending_cancel", pending_cancel},
    {"cancelled_at_once", cancelled_at_once},
    {"cancelled_in_first_calls", cancelled_in_first_calls},
    {"cancelled_in_first_creations", cancelled_in_first_creations},
    {"cancelled_in_calls", cancelled_in_calls},
    {"threads_end_in_calls", threads_end_in_calls},
    {"tiny_stacks", tiny_stacks},
    {"many_threads", many_threads},
    {"user_threads", user_threads},
    {"eight_creators", eight_creators},
    {"thousand_creators", thousand_creators},
    {"many_communicators", many_communicators},
    {"too_many_communicators", too_many_communicators},
    {"variables_change", variables_change},
    {"main_thread_ends", main_thread_ends},
    {"calls_within_a_call", calls_within_a_call},
    {"open_groups", open_groups},
    {0, 0},
};
RUN_NAMED(programs)
