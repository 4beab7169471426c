// SPDX-License-Identifier: Apache-2.0
// Measures the cost of a diagnosis of jobs of 1,000, 10,000 and 100,000 ranks with ten
// communicators each: a full pass, and a tick in which one rank in a hundred
// has moved, in a healthy job and in a job where one rank is missing and all others
// wait. Uses one core. Prints medians, and the memory of the state.
//
//   diagnose_cost [ROUNDS]
#include <malloc.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "daemon/diagnosis/diagnose.h"
#include "daemon/model/job_model.h"
#include "interpose/segment.h"

namespace rollcall {
namespace {

constexpr int64_t kSecond = 1'000'000'000;
constexpr int64_t kStart = 1'700'000'000 * kSecond;
constexpr int kMissing = 3;  // the rank that does not come
constexpr uint64_t kCalls = 1000;

double Milliseconds(std::chrono::steady_clock::time_point since) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - since)
      .count();
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

size_t HeapBytes() { return mallinfo2().uordblks; }

// Sizes of a rank's communicators: tensor, pipeline, data, expert and context
// parallel ones, and the whole world twice.
std::vector<int> Sizes(int ranks) { return {ranks, ranks, ranks / 8, 8, 64, 16, 4, 2, 128, 1000}; }

class Job {
 public:
  explicit Job(int ranks) : ranks_(ranks), sizes_(Sizes(ranks)), model_("job") {
    const size_t before = HeapBytes();
    for (int rank = 0; rank < ranks; ++rank) AddProcess(rank);
    process_bytes_ = HeapBytes() - before;
    for (int rank = 0; rank < ranks; ++rank) Progress(rank, kCalls, 0);
    state_bytes_ = HeapBytes() - before - process_bytes_;
  }

  // All ranks but one enter one more call on all communicators. The call does not end
  // on the world and on the communicators of the missing rank.
  void Hang(int64_t since_ns) {
    for (int rank = 0; rank < ranks_; ++rank) {
      if (rank != kMissing) Progress(rank, kCalls + 1, since_ns);
    }
  }

  // One rank in a hundred makes progress.
  void Move(int round, uint64_t entered, int64_t since_ns) {
    for (int rank = round % 100; rank < ranks_; rank += 100) {
      if (rank != kMissing) Progress(rank, entered, since_ns);
    }
  }

  const JobState& state() const { return model_.state(); }
  size_t members() const { return static_cast<size_t>(ranks_) * sizes_.size(); }
  double BytesPerMember() const {
    return static_cast<double>(state_bytes_) / static_cast<double>(members());
  }

 private:
  void AddProcess(int rank) {
    const int32_t process = model_.AddProcess("node-" + std::to_string(rank / 8), 4000 + rank, 1);
    ProcessIdentity identity;
    identity.global_rank = rank;
    identity.world_size = ranks_;
    identity.has_segment = true;
    model_.SetIdentity(process, identity);
    ProcessEvidence evidence;
    evidence.liveness = Liveness::kAlive;
    evidence.state = 'S';
    model_.SetEvidence(process, evidence);
  }

  void Progress(int rank, uint64_t entered, int64_t since_ns) {
    for (size_t i = 0; i < sizes_.size(); ++i) {
      const int size = std::max(2, std::min(sizes_[i], ranks_));
      // Half of them are blocks of neighbours, half are strided.
      const int blocks = ranks_ / size;
      const bool strided = i % 2 == 1;
      const int block = strided ? rank % blocks : rank / size;
      CommProgress progress;
      progress.index = static_cast<uint32_t>(i);
      progress.id = (i + 1) << 32 | static_cast<uint32_t>(block);
      progress.rank = strided ? rank / blocks : rank % size;
      progress.size = size;
      progress.device = rank % 8;
      if (block >= blocks || progress.rank >= size) continue;
      progress.state = MemberState::kReady;
      progress.has_markers = true;
      progress.entered = progress.returned = progress.started = entered;
      const int missing_block = strided ? kMissing % blocks : kMissing / size;
      const bool hangs = since_ns != 0 && (i == 0 || block == missing_block);
      progress.finished = hangs ? kCalls : entered;
      progress.waiting_since_ns = hangs ? since_ns : 0;
      progress.signature = segment::Mix(progress.id, entered);
      progress.checkpoints = {{entered / 16 * 16, segment::Mix(progress.id, entered / 16)}};
      if (progress.rank == 0) progress.records = {MakeRecord(entered - 1)};
      model_.SetProgress(rank, progress, kStart);
    }
  }

  static CallRecord MakeRecord(uint64_t position) {
    CallRecord record;
    record.index = record.position = position;
    record.args = {Op::kAllReduce, 7, 0, kNoPeer, 1 << 20};
    record.entered_ns = record.returned_ns = kStart;
    return record;
  }

  const int ranks_;
  const std::vector<int> sizes_;
  JobModel model_;
  size_t process_bytes_ = 0, state_bytes_ = 0;
};

struct Costs {
  double full = 0, tick = 0;
  size_t verdicts = 0;
};

Costs Measure(Job* job, int rounds, uint64_t entered, int64_t since_ns) {
  const int64_t now = kStart + 100 * kSecond;
  std::vector<double> full, tick;
  Costs costs;
  for (int round = 0; round < rounds; ++round) {
    const auto begin = std::chrono::steady_clock::now();
    costs.verdicts = Diagnose(job->state(), now, Limits()).size();
    full.push_back(Milliseconds(begin));
  }
  Diagnoser diagnoser;
  diagnoser.Run(job->state(), now, Limits());
  for (int round = 0; round < rounds; ++round) {
    job->Move(round, entered, since_ns);
    const auto begin = std::chrono::steady_clock::now();
    diagnoser.Run(job->state(), now + round, Limits());
    tick.push_back(Milliseconds(begin));
  }
  costs.full = Median(full);
  costs.tick = Median(tick);
  return costs;
}

void Report(int ranks, int rounds) {
  Job job(ranks);
  const Costs healthy = Measure(&job, rounds, kCalls, 0);
  const int64_t since = kStart + 10 * kSecond;
  job.Hang(since);
  const Costs hung = Measure(&job, rounds, kCalls + 1, since);
  std::printf("%8d  %9zu  %7.0f  %9.1f  %9.1f  %9.1f  %9.1f  %8zu\n", ranks, job.members(),
              job.BytesPerMember(), healthy.full, healthy.tick, hung.full, hung.tick,
              hung.verdicts);
}

// A stuck start: communicators are being created, and one rank of each has not joined.
void ReportForming(int ranks, int communicators, int size, int rounds) {
  JobModel model("starting");
  for (int rank = 0; rank < ranks; ++rank) {
    const int32_t process = model.AddProcess("node-" + std::to_string(rank / 8), 100 + rank, 1);
    ProcessIdentity identity;
    identity.global_rank = rank;
    identity.world_size = ranks;
    identity.has_segment = true;
    model.SetIdentity(process, identity);
  }
  for (int n = 0; n < communicators; ++n) {
    for (int rank = 0; rank + 1 < size; ++rank) {
      CommProgress progress;
      progress.index = static_cast<uint32_t>(n);
      progress.id = 1000 + static_cast<uint64_t>(n);
      progress.name = "tp";
      progress.rank = rank;
      progress.size = size;
      progress.state = MemberState::kInitializing;
      progress.init_entered_ns = kStart;
      model.SetProgress((n * size + rank) % ranks, progress, kStart);
    }
  }
  std::vector<double> full;
  for (int round = 0; round < rounds; ++round) {
    const auto begin = std::chrono::steady_clock::now();
    Diagnose(model.state(), kStart + 100 * kSecond, Limits());
    full.push_back(Milliseconds(begin));
  }
  std::printf("%8d  %9d  %4d  %31.1f\n", ranks, communicators, size, Median(full));
}

}  // namespace
}  // namespace rollcall

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::max(1, std::atoi(argv[1])) : 9;
  std::printf("                               healthy, ms           one rank missing, ms\n");
  std::printf(
      "   ranks    members  bytes/m  full pass    1 %% tick  full pass    1 %% tick  verdicts\n");
  for (const int ranks : {1000, 10'000, 100'000}) rollcall::Report(ranks, rounds);
  std::printf(
      "\n   ranks  communicators forming, their size, a rank missing in each: full pass, ms\n");
  for (const int ranks : {10'000, 100'000}) rollcall::ReportForming(ranks, 1000, 8, rounds);
  rollcall::ReportForming(1024, 1000, 1024, rounds);
  return 0;
}
