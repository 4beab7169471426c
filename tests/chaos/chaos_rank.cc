// SPDX-License-Identifier: Apache-2.0
// A rank of a job that makes steps until the test ends it. It goes wrong when the test says so.
// Files in $CHAOS_DIR:
//
//   fault.<rank>   holds how this rank goes wrong: stop_calling, exit, other_operation, other_count
//   end            all ranks leave in good order after the same step
//   gap.<rank>     this rank writes here the longest time between two of its steps, in milliseconds
#include <fstream>
#include <string>

#include "tests/e2e/victim.h"

namespace {

constexpr int kStepMicroseconds = 20'000;
constexpr int64_t kMillisecond = 1'000'000;

std::string FileOfRank(const char* name, int rank) {
  return std::string(getenv("CHAOS_DIR")) + "/" + name + "." + std::to_string(rank);
}

std::string ReadFault(int rank) {
  std::string fault;
  std::ifstream(FileOfRank("fault", rank)) >> fault;
  return fault;
}

int64_t MonotonicNs() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1'000'000'000 + now.tv_nsec;
}

// The truth about the job: how long it has stood still.
class Gap {
 public:
  explicit Gap(int rank) : path_(FileOfRank("gap", rank)), last_ns_(MonotonicNs()) {}

  void AddStep() {
    const int64_t now_ns = MonotonicNs();
    if (now_ns - last_ns_ > longest_ns_) {
      longest_ns_ = now_ns - last_ns_;
      std::ofstream(path_) << longest_ns_ / kMillisecond << "\n";
    }
    last_ns_ = now_ns;
  }

 private:
  const std::string path_;
  int64_t last_ns_;
  int64_t longest_ns_ = 0;
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
  Gap gap(self.rank);
  while (!Step(half, &self)) {
    gap.AddStep();
    usleep(kStepMicroseconds);
    GoWrong(ReadFault(self.rank), &self);
  }
  CHECK_NCCL(ncclCommDestroy(half));
  self.Finish();
}
