// SPDX-License-Identifier: Apache-2.0
// Answers the requests of an agent's daemon for facts about the host, and for what a look needs of
// ranks beside their stacks: each on a thread of its own.
#pragma once

#include <cstdint>

#include "agent/collector/served_segments.h"
#include "agent/link/host_facts_service.h"
#include "agent/link/look_service.h"
#include "agent/link/unrecorded_list.h"
#include "agent/link/uplink_inbox.h"
#include "base/worker.h"
#include "rollcall/v1/agent.pb.h"

namespace rollcall {

class HostFactsAnswers {
 public:
  // `served`, `listed` and `inbox` outlive this object.
  HostFactsAnswers(HostFactsOptions options, LookServiceOptions looks, const ServedSegments* served,
                   const UnrecordedList* listed, UplinkInbox* inbox);

  // The reader of the stream calls this. Waits while the daemon does not read.
  void TakeIn(uint64_t stream, const v1::GatherHostFacts& request);
  void TakeIn(uint64_t stream, const v1::LookAtRanks& request);
  void DropWaiting();
  void Cancel();
  void Stop();  // after Cancel() and UplinkInbox::Stop()

 private:
  void Send(uint64_t stream, uint64_t request, v1::HostFacts facts);

  UplinkInbox* const inbox_;
  HostFactsService service_;  // Take(): used by the worker only
  Worker worker_;
  LookService looks_;  // Look(): used by its worker only
  Worker looks_worker_;
};

}  // namespace rollcall
