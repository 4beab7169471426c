// SPDX-License-Identifier: Apache-2.0
// Ranks of one communicator, for tests of a job's state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/durations.h"
#include "daemon/model/job_model.h"
#include "interpose/segment.h"

namespace rollcall {

inline constexpr int64_t kStart = 1'700'000'000 * kSecond;
inline constexpr uint64_t kComm = 5;

// Ranks of one communicator that make calls and report them.
class Ranks {
 public:
  explicit Ranks(int size) : model("job"), size_(size) {
    for (int rank = 0; rank < size; ++rank) {
      const int32_t process = model.AddProcess("node", 100 + rank, 1);
      ProcessEvidence evidence;
      evidence.liveness = Liveness::kAlive;
      model.SetEvidence(process, evidence);
      CommProgress progress;
      progress.id = kComm;
      progress.rank = rank;
      progress.size = size;
      progress.state = MemberState::kReady;
      progress.has_markers = true;
      progress.signature = segment::kSignatureSeed;
      reported_.push_back(progress);
    }
  }

  // Enters a call at `at_ns`, by the rank's own clock, and finishes it.
  void Call(int rank, int64_t at_ns, uint64_t count = 8, uint32_t thread = 1) {
    CommProgress& p = reported_[static_cast<size_t>(rank)];
    CallRecord record;
    record.index = record.position = p.entered;
    record.args = {Op::kAllReduce, 7, 0, kNoPeer, count};
    record.entered_ns = at_ns;
    record.returned_ns = at_ns + 10;
    record.thread = thread;
    p.records.push_back(record);
    p.signature = segment::NextSignature(p.signature, static_cast<uint8_t>(Op::kAllReduce), 7, 0,
                                         kNoPeer, count);
    p.returned = p.started = p.finished = ++p.entered;
  }

  CommProgress& of(int rank) { return reported_[static_cast<size_t>(rank)]; }

  void Report(int rank, int64_t now_ns = kStart) {
    model.SetProgress(rank, of(rank), now_ns);
    of(rank).records.clear();
  }
  void ReportAll(int64_t now_ns = kStart) {
    for (int rank = 0; rank < size_; ++rank) Report(rank, now_ns);
  }

  const Communicator& comm() const { return model.state().communicators.at(kComm); }

  JobModel model;

 private:
  const int size_;
  std::vector<CommProgress> reported_;
};

}  // namespace rollcall
