// SPDX-License-Identifier: Apache-2.0
#include "agent/collector/collected_segment.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/durations.h"

namespace rollcall {
namespace {

// A process that has its memory long after its exit mark has not set it: a child of vfork that ends
// by exit() runs the library's exit handler in its parent's memory. One that ends gives its memory
// back after its handlers.
bool HasLivedOn(int64_t had_memory_ns, const SegmentSnapshot& snapshot) {
  constexpr int64_t kLongestHandlersNs = 600 * kSecond;
  return snapshot.exit_ns != 0 && had_memory_ns > snapshot.exit_ns + kLongestHandlersNs;
}

// The memory that the contents of a segment take.
size_t BytesOf(const SegmentSnapshot& snapshot) {
  size_t bytes = sizeof(snapshot);
  for (const std::string& site : snapshot.sites) bytes += sizeof(site) + site.size();
  for (const CommSnapshot& comm : snapshot.communicators) {
    bytes += sizeof(comm) + comm.records.size() * sizeof(RecordSnapshot) +
             comm.checkpoints.size() * sizeof(comm.checkpoints[0]) +
             comm.graph_launches.size() * sizeof(GraphLaunchSnapshot) +
             comm.messages.size() * sizeof(MessagesSnapshot);
  }
  return bytes;
}

v1::Evidence SaidOfProcess(const SegmentSnapshot& snapshot) {
  v1::Evidence said;
  said.set_error(snapshot.error);
  said.set_error_ns(snapshot.error_ns);
  const ThreadFailureSnapshot& failure = snapshot.thread_failure;
  if (!failure.error.empty()) {
    said.mutable_thread_failure()->set_thread(failure.thread);
    said.mutable_thread_failure()->set_error(failure.error);
    said.mutable_thread_failure()->set_failed_ns(failure.failed_ns);
  }
  if (snapshot.step >= 0) said.set_step(snapshot.step);
  said.set_phase(snapshot.phase);
#define PROCESS_NUMBER(type, name) said.set_##name(snapshot.name);
#define PROCESS_COUNT(name) said.set_##name(snapshot.name);
#include "proto/facts.def"
  return said;
}

}  // namespace

CollectedSegment::CollectedSegment(std::string file, std::shared_ptr<SegmentReader> reader,
                                   SegmentClaim claim)
    : file_(std::move(file)), reader_(std::move(reader)), claim_(claim) {}

bool CollectedSegment::IsFile(const SegmentReader& other) const {
  return reader_ != nullptr && reader_->file().Is(other.file().device(), other.file().inode());
}

std::optional<bool> CollectedSegment::ShowsEnd() {
  if (reader_->file().MayBlock()) return std::nullopt;
  claim_.lock = reader_->file().Lock();
  return LifeLockShowsEnd(claim_);
}

absl::StatusOr<SegmentSnapshot> CollectedSegment::ReadFile(const ProcessReads& reads,
                                                           const HostClock* clock,
                                                           FaultLog* faults) {
  const int64_t ahead_ns = reads.process().ahead_ns;
  if (!reads.is_live() || !reader_->file().MayBlock()) return reader_->Read(clock, ahead_ns);
  const auto read = [reader = reader_, clock = *clock, ahead_ns](const std::string&, pid_t) {
    return reader->Read(&clock, ahead_ns);
  };
  auto snapshot = reads.GetFrom("segment", read);
  stuck_ = !snapshot.has_value();
  if (!stuck_) return *std::move(snapshot);
  const std::string warning = absl::StrCat(
      reader_->file().path(), ": the file system does not answer; left out until it does");
  faults->AddOf(reads.process().id, warning, reads.payer());
  return absl::UnavailableError(warning);
}

absl::StatusOr<SegmentSnapshot> CollectedSegment::ReadFirst(const ProcessReads& reads,
                                                            const HostClock* clock,
                                                            FaultLog* faults) {
  absl::StatusOr<SegmentSnapshot> snapshot = ReadFile(reads, clock, faults);
  if (!snapshot.ok()) return snapshot;
  bytes_ = BytesOf(*snapshot);
  reader_->StartOver();
  return snapshot;
}

absl::StatusOr<SegmentSnapshot> CollectedSegment::Read(bool whole, int64_t had_memory_ns,
                                                       const ProcessReads& reads,
                                                       const HostClock* clock, FaultLog* faults) {
  if (reader_ == nullptr) return absl::NotFoundError("no segment");
  // The segment of an ended process does not change any more.
  if (read_after_end_ && !whole) return absl::UnavailableError("nothing new");
  if (whole && !stuck_) reader_->StartOver();
  absl::StatusOr<SegmentSnapshot> snapshot = ReadFile(reads, clock, faults);
  if (!stuck_) read_after_end_ = reads.process().ended;
  if (!snapshot.ok()) return snapshot;
  exit_marked_ = snapshot->exited && !HasLivedOn(had_memory_ns, *snapshot);
  said_ = SaidOfProcess(*snapshot);
  for (const std::string& warning : snapshot->warnings) {
    faults->AddOf(reads.process().id, warning, reads.payer());
  }
  return snapshot;
}

}  // namespace rollcall
