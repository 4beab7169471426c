// SPDX-License-Identifier: Apache-2.0
// Programs whose allocator is their own: it looks the real one up, locks, or has nothing to give.
#include "hostile.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <sys/wait.h>

static void* (*real_malloc)(size_t);
static void (*real_free)(void*);
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static volatile int failing;
static __thread int inside;

// What dlsym itself may ask for before there is a real allocator.
static char first_memory[1 << 16] __attribute__((aligned(16)));
static size_t first_used;

static void find(void) {
  if (real_malloc == 0 && !inside) {
    inside = 1;
    void* found = dlsym(RTLD_NEXT, "malloc");
    real_free = (void (*)(void*))dlsym(RTLD_NEXT, "free");
    real_malloc = (void* (*)(size_t))found;
    inside = 0;
  }
}
void* malloc(size_t size) {
  find();
  if (failing) {
    errno = ENOMEM;
    return 0;
  }
  if (real_malloc == 0) {
    void* given = first_memory + first_used;
    first_used += (size + 15) & ~(size_t)15;
    return first_used <= sizeof(first_memory) ? given : 0;
  }
  pthread_mutex_lock(&lock);
  void* given = real_malloc(size);
  pthread_mutex_unlock(&lock);
  return given;
}
void free(void* memory) {
  find();
  if ((char*)memory >= first_memory && (char*)memory < first_memory + sizeof(first_memory)) return;
  if (real_free == 0 || memory == 0) return;
  pthread_mutex_lock(&lock);
  real_free(memory);
  pthread_mutex_unlock(&lock);
}
void* calloc(size_t count, size_t size) {
  void* given = malloc(count * size);
  return given == 0 ? 0 : memset(given, 0, count * size);
}

static void acquire(void) { pthread_mutex_lock(&lock); }
static void release(void) { pthread_mutex_unlock(&lock); }

static int looks_up_itself(void) {
  free(malloc(100));
  join_job();
  comm = create();
  reduce();
  return 7;
}
static int has_nothing(void) {
  static char buffer[BUFSIZ];
  setvbuf(stdout, buffer, _IOFBF, sizeof(buffer));
  failing = 1;
  join_job();
  comm = create();
  reduce();
  failing = 0;
  return 7;
}
static volatile int stop;
static void* allocate(void* unused) {
  while (!stop) free(malloc(64));
  return unused;
}
static int locks_in_fork(void) {
  pthread_t thread;
  pthread_atfork(acquire, release, release);
  join_job();
  pthread_create(&thread, 0, allocate, 0);
  for (int i = 0; i < 20; ++i) {
    int status = -1;
    const pid_t child = fork();
    if (child == 0) {
      join_job();
      _exit(3);
    }
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 3);
  }
  stop = 1;
  pthread_join(thread, 0);
  return 7;
}

static const struct Program programs[] = {
    {"looks_up_itself", looks_up_itself},
    {"has_nothing", has_nothing},
    {"locks_in_fork", locks_in_fork},
    {0, 0},
};
RUN_NAMED(programs)
