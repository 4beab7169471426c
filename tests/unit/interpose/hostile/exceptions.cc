// SPDX-License-Identifier: Apache-2.0
// C++ exceptions thrown through calls.
#include "hostile.h"

#include <pthread.h>

#include <stdexcept>

namespace {

void Throw() { throw std::runtime_error("thrown in a call"); }

int ThrownThroughCalls() {
  join_job();
  int caught = 0;
  for (int i = 0; i < 200; ++i) {
    hostile_call_back(&Throw);
    try {
      ncclAllReduce(nullptr, nullptr, 8, ncclFloat, ncclSum, comm, nullptr);
    } catch (const std::runtime_error&) {
      ++caught;
    }
    hostile_call_back(nullptr);
    reduce();
    comm = create();
  }
  printf("caught %d\n", caught);
  return 7;
}

struct AtEnd {
  ~AtEnd() {
    if (comm != nullptr) reduce();
  }
};
AtEnd at_end;
thread_local AtEnd at_thread_end;

void* EndThread(void*) {
  static_cast<void>(&at_thread_end);
  reduce();
  return nullptr;
}
int CallsInDestructors() {
  join_job();
  for (int i = 0; i < 20; ++i) {
    pthread_t thread;
    pthread_create(&thread, nullptr, &EndThread, nullptr);
    pthread_join(thread, nullptr);
  }
  return 7;
}

const Program programs[] = {{"thrown_through_calls", &ThrownThroughCalls},
                            {"calls_in_cpp_destructors", &CallsInDestructors},
                            {nullptr, nullptr}};

}  // namespace

RUN_NAMED(programs)
