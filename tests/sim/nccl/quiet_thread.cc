// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/nccl/quiet_thread.h"

#include <pthread.h>
#include <signal.h>

namespace rollcall::sim {

std::thread QuietThread(std::function<void()> body) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread thread([body = std::move(body)] {
    pthread_setname_np(pthread_self(), "sim-nccl");
    body();
  });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return thread;
}

}  // namespace rollcall::sim
