// SPDX-License-Identifier: Apache-2.0
// Who one process is, for the daemon: what this agent reports of all its processes, what the
// process's segment and environment contain, and which user pays for what it takes of the agent.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "agent/collector/process_reads.h"
#include "agent/processes/process_discovery.h"
#include "agent/processes/spare_threads.h"
#include "agent/segments/segment_snapshot.h"
#include "rollcall/v1/agent.pb.h"

namespace rollcall {

class ReportedIdentity {
 public:
  // `message`: what holds for every process of this agent, unless the process reports otherwise.
  explicit ReportedIdentity(v1::Identity message) : message_(std::move(message)) {}
  // The same, before it was sent. Its launch facts stay as they are.
  ReportedIdentity Unsent() const;

  const v1::Identity& message() const { return message_; }
  // Whose share of the agent it takes, also for reads of it that block (SpareThreads::Run()).
  int64_t payer() const;

  // Reads from its environment and /proc how it was started. On an overloaded host any read may
  // time out, and a process that starts a new program hides its environment for a moment: it is
  // due again then.
  void ReadLaunch(const ProcessReads& reads);
  bool IsLaunchDue(int64_t now_ns) const { return again_ns_ != 0 && now_ns >= again_ns_; }

  void TakeSegment(const SegmentSnapshot& snapshot, bool is_live);
  // Takes what a scan found of a process without a segment.
  void TakeScan(const DiscoveredProcess& found);
  // The kernel no longer reports the owner of a process that has ended. Its file does.
  void SetUserIfUnknown(uint32_t user);

  // Whether it has changed since it was sent last. The caller sends it.
  bool TakeChange();

 private:
  v1::Identity message_;
  // PayerOfReads(), of a process that lived when it was found.
  int64_t payer_ = SpareThreads::kNobody;
  int tries_ = 0;         // reads of its launch facts that have failed
  int64_t again_ns_ = 0;  // time of the next one; 0 if there is no next one
  bool has_changed_ = true;
};

}  // namespace rollcall
