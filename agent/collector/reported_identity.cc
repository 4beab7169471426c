// SPDX-License-Identifier: Apache-2.0
#include "agent/collector/reported_identity.h"

#include <optional>
#include <string>
#include <utility>

#include "agent/collector/process_facts.h"
#include "agent/processes/launch_facts.h"
#include "agent/processes/living_threads.h"
#include "agent/processes/payer.h"
#include "agent/processes/this_host.h"
#include "agent/segments/printable.h"
#include "base/durations.h"

namespace rollcall {

ReportedIdentity ReportedIdentity::Unsent() const {
  ReportedIdentity same(message_);
  same.payer_ = payer_;
  return same;
}

int64_t ReportedIdentity::payer() const {
  if (payer_ != SpareThreads::kNobody) return payer_;
  return message_.has_uid() ? message_.uid() : SpareThreads::kNobody;
}

void ReportedIdentity::ReadLaunch(const ProcessReads& reads) {
  constexpr int64_t kReadAgainAfter = kSecond;
  constexpr int kMostTries = 10;
  const ProcessId id = reads.process().id;
  const int64_t payer = PayerOfReads(reads.proc_root(), id.pid);
  if (payer != SpareThreads::kNobody) payer_ = payer;
  // The driver's files may be slow.
  const auto read = [](const std::string& proc_root, pid_t pid) {
    return ReadLaunchFacts(proc_root, pid, HostName());
  };
  const auto facts = reads.PaidBy(payer).GetFrom("launch of", read).value_or(std::nullopt);
  message_.set_started_ns(BeganAtSteadyNs(id.start_time));
  if (facts.has_value()) {
    SetLaunch(*facts, &message_);
    has_changed_ = true;
  }
  const bool again = !facts.has_value() && ++tries_ < kMostTries;
  again_ns_ = again ? reads.now_ns() + kReadAgainAfter : 0;
}

void ReportedIdentity::TakeSegment(const SegmentSnapshot& snapshot, bool is_live) {
  message_.set_job(snapshot.job);
  message_.set_global_rank(snapshot.global_rank);
  message_.set_world_size(snapshot.world_size);
  message_.set_local_rank(snapshot.local_rank);
#define PROCESS_TEXT(name) message_.set_##name(snapshot.name);
#include "proto/facts.def"
  message_.set_has_segment(true);
  if (!is_live) message_.set_host(snapshot.host);
}

void ReportedIdentity::TakeScan(const DiscoveredProcess& found) {
  message_.set_job(Printable(found.job.c_str(), found.job.size()));
  message_.set_global_rank(found.rank.coordinates.rank);
  message_.set_world_size(found.rank.coordinates.world_size);
  message_.set_local_rank(found.rank.coordinates.local_rank);
  message_.set_command(Printable(found.name.c_str(), found.name.size()));
  message_.set_started_ns(BeganAtSteadyNs(found.process.start_time));
  SetLaunch(found.launch, &message_);
}

void ReportedIdentity::SetUserIfUnknown(uint32_t user) {
  if (!message_.has_uid()) message_.set_uid(user);
}

bool ReportedIdentity::TakeChange() { return std::exchange(has_changed_, false); }

}  // namespace rollcall
