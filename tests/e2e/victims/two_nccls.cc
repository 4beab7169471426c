// SPDX-License-Identifier: Apache-2.0
// Uses two NCCLs, as a serving framework does that brings one of its own beside PyTorch's: the one
// that it is linked with, and a copy of that at SECOND_NCCL in the environment. The last rank stops
// making calls with the second one.
#include <dlfcn.h>

#include "tests/e2e/victims/victim.h"

namespace {

constexpr int kSteps = 12;
constexpr int kLastStep = 5;

__attribute__((noinline)) void Rest() {
  for (;;) pause();
}

template <typename Function>
Function* Get(void* library, const char* name, Function*) {
  void* found = dlsym(library, name);
  if (found == nullptr) {
    fprintf(stderr, "%s\n", dlerror());
    exit(1);
  }
  return reinterpret_cast<Function*>(found);
}
#define GET(library, name) Get(library, #name, &(name))

}  // namespace

int main() {
  victim::Rank self;
  self.Train(3);
  void* second = dlopen(getenv("SECOND_NCCL"), RTLD_NOW | RTLD_LOCAL);
  if (second == nullptr) {
    fprintf(stderr, "%s\n", dlerror());
    return 1;
  }
  const ncclUniqueId id = ShareUniqueIdFrom(GET(second, ncclGetUniqueId), 1);
  auto* const all_reduce = GET(second, ncclAllReduce);
  if (all_reduce == GET(RTLD_DEFAULT, ncclAllReduce)) return 2;
  ncclComm_t comm;
  CHECK_NCCL(GET(second, ncclCommInitRank)(&comm, self.world, id, self.rank));
  for (int step = 0; step < kSteps; ++step) {
    if (step == kLastStep && self.rank == self.world - 1) Rest();
    CHECK_NCCL(all_reduce(self.send.data(), self.recv.data(), victim::kCount, ncclFloat, ncclSum,
                          comm, self.stream));
    self.Wait();
  }
}
