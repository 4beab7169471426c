// SPDX-License-Identifier: Apache-2.0
// A rank of a job that makes steps until the test ends it. It goes wrong when the test says so.
// Files in $CHAOS_DIR:
//
//   fault.<rank>   holds how this rank goes wrong: stop_calling, exit, other_operation, other_count
//   end            all ranks leave in good order after the same step
//   gaps.<rank>    this rank adds a line for each long time between two of its steps: its beginning
//                  and its end, in seconds of CLOCK_MONOTONIC
#include <fstream>
#include <string>

#include "tests/e2e/victims/victim.h"

namespace {

constexpr int kStepMicroseconds = 20'000;
constexpr double kLongSeconds = 0.3;

std::string FileOfRank(const char* name, int rank) {
  return std::string(getenv("CHAOS_DIR")) + "/" + name + "." + std::to_string(rank);
}

std::string ReadFault(int rank) {
  std::string fault;
  std::ifstream(FileOfRank("fault", rank)) >> fault;
  return fault;
}

double MonotonicSeconds() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

// The truth about the job: when it has stood still.
class Gaps {
 public:
  explicit Gaps(int rank) : file_(FileOfRank("gaps", rank)), last_(MonotonicSeconds()) {
    file_ << std::fixed;
  }

  void AddStep() {
    const double now = MonotonicSeconds();
    if (now - last_ > kLongSeconds) file_ << last_ << " " << now << std::endl;
    last_ = now;
  }

 private:
  std::ofstream file_;
  double last_;
};

__attribute__((noinline)) void StopCalling() {
  for (;;) pause();
}

void GoWrong(const std::string& fault, victim::Rank* self) {
  if (fault == "stop_calling") StopCalling();
  if (fault == "exit") exit(0);
  if (fault == "other_operation") self->Broadcast();
  if (fault == "other_count") self->AllReduce(victim::kCount / 2);
}

// One step. True if some rank has seen the file `end`: all ranks learn it by the same call.
bool Step(ncclComm_t half, victim::Rank* self) {
  const std::string end = std::string(getenv("CHAOS_DIR")) + "/end";
  const float ends = access(end.c_str(), F_OK) == 0 ? 1 : 0;
  float sum = 0;
  CHECK_CUDA(cudaMemcpy(self->send.data(), &ends, sizeof(ends), cudaMemcpyHostToDevice));
  self->AllReduce();
  CHECK_NCCL(ncclAllReduce(self->send.data() + 1, self->recv.data() + 1, 64, ncclFloat, ncclSum,
                           half, self->stream));
  self->Wait();
  CHECK_CUDA(cudaMemcpy(&sum, self->recv.data(), sizeof(sum), cudaMemcpyDeviceToHost));
  return sum > 0;
}

}  // namespace

int main() {
  victim::Rank self;
  ncclComm_t half = nullptr;
  CHECK_NCCL(ncclCommSplit(self.comm, self.rank % 2, self.rank, &half, nullptr));
  Gaps gaps(self.rank);
  while (!Step(half, &self)) {
    gaps.AddStep();
    usleep(kStepMicroseconds);
    GoWrong(ReadFault(self.rank), &self);
  }
  CHECK_NCCL(ncclCommDestroy(half));
  self.Finish();
}
