// SPDX-License-Identifier: Apache-2.0
// A healthy job of all-reduces that are large enough for many transfers, to which a test does
// something. It has a gate: before step GATE_STEP (20) each rank writes "rank N (pid P) is at the
// gate" and waits until the file GATE is there. No GATE, no gate.
//
//   trains_past_a_gate [STEPS]      100
//
// SPIN_RANK: a kernel of SPIN_SECONDS (3600) is in front of this rank's all-reduce behind the gate.
#include "tests/e2e/victims/spinning_kernel.h"
#include "tests/e2e/victims/victim.h"

namespace {

constexpr size_t kElements = 1 << 20;
constexpr useconds_t kPauseUs = 20'000;  // of a step

int NumberOr(const char* name, int otherwise) {
  const char* value = getenv(name);
  return value == nullptr ? otherwise : atoi(value);
}

void PassGate(int rank) {
  const char* gate = getenv("GATE");
  if (gate == nullptr) return;
  fprintf(stderr, "rank %d (pid %d) is at the gate\n", rank, static_cast<int>(getpid()));
  while (access(gate, F_OK) != 0) usleep(10'000);
}

}  // namespace

int main(int argc, char** argv) {
  const int steps = argc > 1 ? atoi(argv[1]) : 100;
  const int gate_step = NumberOr("GATE_STEP", 20);
  victim::Rank self;
  DeviceBuffer<float> send(kElements), recv(kElements);
  for (int step = 0; step < steps; ++step) {
    if (step == gate_step) PassGate(self.rank);
    if (step == gate_step && self.rank == NumberOr("SPIN_RANK", -1)) {
      victim::Spin(self.stream, static_cast<unsigned long long>(NumberOr("SPIN_SECONDS", 3600)));
    }
    CHECK_NCCL(ncclAllReduce(send.data(), recv.data(), kElements, ncclFloat, ncclSum, self.comm,
                             self.stream));
    self.Wait();
    usleep(kPauseUs);
  }
  self.Finish();
}
