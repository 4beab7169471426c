// SPDX-License-Identifier: Apache-2.0
// Trains by replaying a CUDA graph that holds five calls. WRONG in the environment is
// the fault of the last rank in the sixth step: nothing, skips_launch, calls_directly,
// captures, stays_inside, sums_less.
#include <string.h>

#include "tests/e2e/victims/victim.h"

namespace {

constexpr int kCalls = 5;
constexpr int kSteps = 12;
constexpr int kWrongStep = 5;

bool Is(const char* wrong) {
  const char* wanted = getenv("WRONG");
  return wanted != nullptr && strcmp(wanted, wrong) == 0;
}

void SleepInside(void*) {
  static int launches = 0;
  if (++launches > kWrongStep) sleep(3600);
}

class Trainer : public victim::Rank {
 public:
  // The graph of a step; `held` after its third call waits for the host.
  cudaGraphExec_t Capture(bool held, size_t count) {
    cudaGraph_t graph;
    cudaGraphExec_t executable;
    CHECK_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    for (int i = 0; i < kCalls; ++i) {
      if (held && i == 3) CHECK_CUDA(cudaLaunchHostFunc(stream, SleepInside, nullptr));
      AllReduce(i == 3 ? count : victim::kCount);
    }
    CHECK_CUDA(cudaStreamEndCapture(stream, &graph));
    CHECK_CUDA(cudaGraphInstantiate(&executable, graph, 0));
    CHECK_CUDA(cudaGraphDestroy(graph));
    return executable;
  }

  void Step(cudaGraphExec_t graph) {
    CHECK_CUDA(cudaGraphLaunch(graph, stream));
    Wait();
  }
};

}  // namespace

int main() {
  Trainer self;
  const bool last = self.rank == self.world - 1;
  self.Train(2);
  cudaGraphExec_t graph = self.Capture(last && Is("stays_inside"), victim::kCount);
  for (int step = 0; step < kSteps; ++step) {
    const bool wrong = last && step == kWrongStep;
    if (wrong && Is("skips_launch")) {
      for (;;) pause();
    }
    if (wrong && Is("sums_less")) graph = self.Capture(false, victim::kCount - 1);
    if (wrong && Is("calls_directly")) {
      self.Train(kCalls);
    } else {
      self.Step(graph);
    }
    // All but the last make a call at once, which that has captured and never launches.
    if (step == kWrongStep && Is("captures")) {
      if (last) self.Capture(false, victim::kCount);
      if (last)
        for (;;) pause();
      self.Train(1);
    }
  }
  CHECK_CUDA(cudaGraphExecDestroy(graph));
  self.Finish();
}
