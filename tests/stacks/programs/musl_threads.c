// SPDX-License-Identifier: Apache-2.0
// Idle threads on musl, whose functions have no unwind information.
#include <pthread.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

__attribute__((noinline)) static int wait_in_epoll(int size) {
  volatile char room[size];
  struct epoll_event event;
  room[0] = (char)epoll_wait(epoll_create1(0), &event, 1, -1);
  return room[0];
}

static void* poll_forever(void* unused) {
  (void)unused;
  while (wait_in_epoll(2000) >= 0) {
  }
  return NULL;
}

static void* lock_forever(void* unused) {
  (void)unused;
  pthread_mutex_lock(&mutex);
  return NULL;
}

static void* sleep_forever(void* unused) {
  (void)unused;
  while (1) sleep(86400);
  return NULL;
}

int main(void) {
  void* (*const run[])(void*) = {poll_forever, lock_forever, sleep_forever};
  pthread_mutex_lock(&mutex);
  for (int i = 0; i < 3; ++i) {
    pthread_t thread;
    pthread_create(&thread, NULL, run[i], NULL);
  }
  usleep(100000);
  puts("ready");
  fflush(stdout);
  return getchar();
}
