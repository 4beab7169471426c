// SPDX-License-Identifier: Apache-2.0
#include "agent/collector/collector.h"

#include <map>
#include <utility>

#include "agent/collector/redact_update.h"

namespace rollcall {

Collector::Collector(CollectorOptions options)
    : options_(std::move(options)), host_(options_, &faults_) {}

v1::Tick Collector::Collect(int64_t now_ns, bool whole) {
  v1::Tick tick;
  Collect(now_ns, whole, &tick);
  return tick;
}

void Collector::Collect(int64_t now_ns, bool whole, v1::Tick* tick) {
  host_.Look(now_ns);
  whole = ChooseProcesses() || whole;
  tick->set_now_ns(now_ns);
  tick->set_whole(whole);
  tick->set_left_out_segments(host_.CountLeftOut());
  RecordShares shares = ShareRecords();
  const TickScope scope = {whole, whole_records_, wait_floor_ns_, host_.clock(), &shares, &faults_};
  // A large tick goes out in pieces: the daemon has to have the end of a rank before its next
  // start.
  for (const bool ended : {true, false}) {
    for (auto& [id, process] : host_.all()) {
      if (process.seen.ended != ended || process.turn == uint64_t{0}) continue;
      v1::ProcessUpdate* update = tick->add_processes();
      if (!CollectProcess(now_ns, scope, &process, update)) tick->mutable_processes()->RemoveLast();
    }
  }
  for (const ProcessId forgotten : host_.ForgetEnded(now_ns)) served_.Remove(forgotten);
}

bool Collector::CollectProcess(int64_t now_ns, const TickScope& scope, CollectedProcess* process,
                               v1::ProcessUpdate* update) {
  const bool changed = process->updates.Collect(scope, host_.ReadsOf(now_ns, *process),
                                                &process->identity, &process->segment, update);
  if (process->updates.has_communicators()) seen_communicators_ = true;
  if (update->has_identity() && process->seen.visible) {
    served_.Add(process->seen.id, {process->segment.reader(), process->seen.ahead_ns});
  }
  if (changed) Redact(*options_.redactor, options_.send_arguments, update);
  return changed;
}

// Whether a process has come that was another stream's, has gone there, or both.
bool Collector::ChooseProcesses() {
  if (!options_.takes) return false;
  bool has_changed = false;
  for (auto& [id, process] : host_.all()) {
    const v1::Identity& identity = process.identity.message();
    const uint64_t turn = options_.takes(identity.tenant(), identity.job());
    has_changed = has_changed || process.turn.value_or(turn) != turn;
    process.turn = turn;
    if (turn == 0) served_.Remove(id);
  }
  return has_changed;
}

RecordShares Collector::ShareRecords() {
  std::map<int64_t, size_t> processes;
  for (const auto& [id, process] : host_.all()) {
    if (process.segment.reader() != nullptr && process.turn != uint64_t{0}) {
      ++processes[process.identity.payer()];
    }
  }
  return {options_.most_records_of_tick, processes};
}

}  // namespace rollcall
