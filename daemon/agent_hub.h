// SPDX-License-Identifier: Apache-2.0
// What the daemon does with the messages of agents, and what it sends to agents: their welcome,
// their pace, requests for stacks and facts, and what their hosts are blamed for. It looks for the
// silent ones, too. gRPC's threads bring messages; the owner's thread calls the rest.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "daemon/agents/agent_service.h"
#include "daemon/fleet/fleet.h"
#include "daemon/incidents/host_hangs_desk.h"
#include "daemon/incidents/incident_book.h"
#include "daemon/jobs/daemon_counters.h"
#include "daemon/jobs/first_ticks.h"
#include "daemon/jobs/job_store.h"
#include "daemon/jobs/tick_pace.h"
#include "daemon/jobs/timeline.h"
#include "daemon/looks/look_desk.h"
#include "daemon/looks/unrecorded_book.h"
#include "daemon/loop/host_facts_desk.h"
#include "daemon/loop/job_runners.h"
#include "daemon/loop/stack_desk.h"

namespace rollcall {

class AgentHub : public AgentSink {
 public:
  // All of them outlive this. They are not used before the first agent connects.
  struct Parts {
    AgentService* agents;
    JobStore* store;
    IncidentBook* incidents;
    JobRunners* runners;
    Fleet* fleet;  // nullptr if there is none
    Timeline* timeline;
    DaemonCounters* counters;
  };
  // `address`: by which agents of a fleet reach this daemon.
  AgentHub(const Parts& parts, int64_t silent_after_ns, std::function<std::string()> address);

  StackDesk* stacks() { return &stacks_; }
  HostFactsDesk* host_facts() { return &host_facts_; }
  LookDesk* looks() { return &looks_; }
  const UnrecordedBook& unrecorded() const { return unrecorded_; }

  void OnTick(const AgentName& agent, std::shared_ptr<const v1::Tick> tick,
              std::function<void()> applied) override;
  void OnStackReply(const AgentName& agent, const v1::StackReply& reply) override;
  void OnHostFacts(const AgentName& agent, const v1::HostFactsReply& reply) override;
  void OnRanks(const AgentName& agent, const v1::LookAtRanksReply& reply) override;
  void OnUnrecorded(const AgentName& agent, const v1::UnrecordedProcesses& list) override;
  void OnConnected(const AgentName& agent) override;
  void OnDisconnected(const AgentName& agent) override;

  // Often. `own_lateness_ns`: how late the daemon itself was of late.
  void MarkSilent(int64_t now_ns, int64_t own_lateness_ns);
  void BeginTurns() ABSL_LOCKS_EXCLUDED(turns_mutex_);
  // Once a second.
  void UpdatePace(int64_t now_ns);
  // Sends at most once a second.
  void TellHostHangs();
  // Ends all waits for agents' answers: the daemon stops.
  void Close();

 private:
  void EndTurn(const std::string& agent) ABSL_LOCKS_EXCLUDED(turns_mutex_);
  bool Welcome(const std::string& agent);
  void SendPace(const AgentName& agent, const AgentBook::Origin& origin);
  void CountLeftOut(const AgentBook::Origin& origin, const v1::Tick& tick);
  void SeekOwners(const AgentName& agent, const RoutedTick& routed);

  const Parts parts_;
  const int64_t silent_after_ns_;
  const std::function<std::string()> address_;
  StackDesk stacks_;
  UnrecordedBook unrecorded_;
  LookDesk looks_;
  HostFactsDesk host_facts_;
  HostHangsDesk host_hangs_;
  Mutex turns_mutex_;  // taken last
  FirstTicks turns_ ABSL_GUARDED_BY(turns_mutex_);
  // Only the owner's thread uses these, except the atomic ones.
  TickPace pace_;
  int64_t told_hangs_ns_ = 0;
  double cpu_seconds_ = 0;                               // when the pace was updated
  std::atomic<int64_t> tick_ns_{TickPace::kShortestNs};  // the pace
  std::atomic<uint64_t> ticks_{0};                       // applied since the pace was updated
};

}  // namespace rollcall
