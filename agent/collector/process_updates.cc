// SPDX-License-Identifier: Apache-2.0
#include "agent/collector/process_updates.h"

#include <algorithm>
#include <utility>

namespace rollcall {
namespace {

int64_t WaitFloorNs(const TickScope& tick, const ProcessReads& reads) {
  return reads.is_live() ? std::max(tick.wait_floor_ns, reads.process().wait_floor_ns) : 0;
}

// Without an exit mark the process was killed or called _exit(). Only the kernel's exit status
// distinguishes the two.
v1::Evidence::Liveness EndLiveness(const SeenProcess& process, bool exit_marked) {
  if (exit_marked || process.exit_code.value_or(-1) == 0) return v1::Evidence::EXITED;
  const bool known = process.exit_code.has_value() || process.exit_signal.has_value();
  return known ? v1::Evidence::DIED : v1::Evidence::ENDED;
}

void ReportEnd(const SeenProcess& process, bool exit_marked, v1::Evidence* evidence) {
  evidence->set_liveness(EndLiveness(process, exit_marked));
  evidence->set_ended_ns(process.ended_ns);
  evidence->set_ended_after_ns(process.alive_ns);
  evidence->set_exit_code(process.exit_code.value_or(-1));
  evidence->set_exit_signal(process.exit_signal.value_or(0));
}

}  // namespace

bool ProcessUpdates::Collect(const TickScope& tick, const ProcessReads& reads,
                             ReportedIdentity* identity, CollectedSegment* segment,
                             v1::ProcessUpdate* update) {
  update->set_pid(reads.process().id.pid);
  update->set_start_time(reads.process().id.start_time);
  bool changed = false;
  if (identity->IsLaunchDue(reads.now_ns()) && !reads.process().ended) identity->ReadLaunch(reads);
  if (identity->TakeChange() || tick.whole) {
    *update->mutable_identity() = identity->message();
    changed = true;
  }
  absl::StatusOr<SegmentSnapshot> snapshot =
      segment->Read(tick.whole, state_.had_memory_ns(), reads, tick.clock, tick.faults);
  if (snapshot.ok()) {
    blocked_.KeepWaits(reads, state_.cpu_use(), &numbers_, &*snapshot);
    changed = CollectSegment(tick, reads, *snapshot, update) || changed;
  }
  v1::Evidence evidence = ReadEvidence(tick, reads, *segment, snapshot.ok() ? &*snapshot : nullptr);
  std::string sent = evidence.SerializeAsString();
  if (tick.whole || sent != evidence_sent_) {
    *update->mutable_evidence() = std::move(evidence);
    evidence_sent_ = std::move(sent);
    changed = true;
  }
  return changed;
}

bool ProcessUpdates::CollectSegment(const TickScope& tick, const ProcessReads& reads,
                                    const SegmentSnapshot& snapshot, v1::ProcessUpdate* update) {
  bool changed = CollectSites(tick.whole, snapshot, update);
  size_t most_records = tick.shares->TakeFor(reads.payer(), snapshot);
  if (tick.whole && tick.whole_records != 0) {
    most_records = std::min<size_t>(most_records, tick.whole_records);
  }
  for (const CommSnapshot& comm : snapshot.communicators) {
    if (CollectComm(tick, reads, snapshot, comm, most_records, update->add_communicators())) {
      changed = true;
    } else {
      update->mutable_communicators()->RemoveLast();
    }
  }
  return changed;
}

bool ProcessUpdates::CollectSites(bool whole, const SegmentSnapshot& snapshot,
                                  v1::ProcessUpdate* update) {
  if (whole) sites_sent_ = 0;
  if (sites_sent_ >= snapshot.sites.size()) return false;
  update->set_first_site(static_cast<uint32_t>(sites_sent_));
  for (; sites_sent_ < snapshot.sites.size(); ++sites_sent_) {
    update->add_sites(snapshot.sites[sites_sent_]);
  }
  return true;
}

bool ProcessUpdates::CollectComm(const TickScope& tick, const ProcessReads& reads,
                                 const SegmentSnapshot& snapshot, const CommSnapshot& comm,
                                 size_t most_records, v1::CommUpdate* update) {
  callers_.Note(comm.records);
  SentComm* known = &comms_[comm.index];
  if (known->init_ticks != comm.init_ticks) {
    *known = SentComm();
    known->init_ticks = comm.init_ticks;
  }
  if (tick.whole) {
    known->history.checkpoint_sent = 0;
    known->history.messages_sent.clear();
  }
  // Offline, the time at which a marker changed is unknown.
  FillProgress(comm, FindHostWaits(snapshot, comm), reads.is_live() ? reads.now_ns() : 0,
               &known->history, update);
  ApplyWaitFloor(WaitFloorNs(tick, reads), update);
  const bool returned =
      std::any_of(comm.records.begin(), comm.records.end(),
                  [](const RecordSnapshot& record) { return record.returned_ns != 0; });
  const bool was_busy = std::exchange(known->busy, returned);
  bool changed = true;
  if (returned && was_busy) {
    known->sent.clear();  // a busy communicator changes in each tick
  } else {
    std::string sent = update->SerializeAsString();
    changed = tick.whole || returned || sent != known->sent;
    known->sent = std::move(sent);
  }
  FillRecords(comm, most_records, update->mutable_records());
  return changed;
}

v1::Evidence ProcessUpdates::ReadEvidence(const TickScope& tick, const ProcessReads& reads,
                                          const CollectedSegment& segment,
                                          const SegmentSnapshot* snapshot) {
  v1::Evidence evidence = segment.said();
  callers_.Report(reads, &numbers_, &evidence);
  evidence.set_exit_code(-1);
  if (!reads.is_live()) {
    if (segment.exit_marked()) {
      evidence.set_liveness(v1::Evidence::EXITED);
      if (snapshot != nullptr) evidence.set_ended_ns(snapshot->exit_ns);
    }
  } else if (reads.process().ended) {
    ReportEnd(reads.process(), segment.exit_marked(), &evidence);
    return evidence;
  } else if (reads.process().visible) {
    ReportLife(reads, segment.stuck(), &evidence);
  }
  if (snapshot != nullptr) {
    ReportBlocked(reads, *snapshot, WaitFloorNs(tick, reads), &numbers_, &evidence);
  }
  return evidence;
}

void ProcessUpdates::ReportLife(const ProcessReads& reads, bool is_stuck, v1::Evidence* evidence) {
  if (state_.IsDue(reads.now_ns())) {
    const auto reading = reads.Get(ReadFromProc);
    if (reading.has_value()) state_.Take(reads.now_ns(), *reading);
  }
  // A process that is missing in /proc has not ended: its pidfd would have reported the end.
  if (state_.missing()) return;
  // While its segment cannot be read, a living process is not evidence of its current state.
  if (!is_stuck) evidence->set_liveness(v1::Evidence::ALIVE);
  state_.Report(evidence);
}

}  // namespace rollcall
