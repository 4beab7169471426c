// SPDX-License-Identifier: Apache-2.0
// Which agents there are, when each was heard, and how its clock differs from the daemon's.
//
// Thread-safe. Its mutex is taken last and held shortly, so gRPC's threads may call it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "daemon/access/agent_name.h"
#include "daemon/jobs/agent_releases.h"
#include "daemon/jobs/tick_gaps.h"
#include "daemon/model/host_clocks.h"
#include "daemon/model/job_state.h"

namespace rollcall {

class AgentBook {
 public:
  // One run of an agent. Its members are guarded by the book's mutex, except the name.
  class Agent;
  using AgentPtr = std::shared_ptr<Agent>;

  // Where a tick comes from, and how to read its times.
  struct Origin {
    AgentPtr agent;          // nullptr if the tick was read from files
    int64_t now_ns = 0;      // when it was made, by the daemon's clock
    int64_t offset_ns = 0;   // from the agent's clock to the daemon's, as estimated now
    int64_t came_ns = 0;     // when it came; 0 means its reports never become old
    int64_t tick_ns = 0;     // the agent's interval between ticks, as far as known
    bool is_urgent = false;  // see SetUrgent()
    // The agent has made a newer tick, which came before: on another stream. The report of this one
    // no longer holds, and the agent will not repeat what has not changed since the newer one.
    bool is_outdated = false;
    int64_t shift_ns = 0;  // what offset_ns differs from the first estimate
  };

  // A stream of the agent has begun, or ended. An agent without a stream is stale at once: ticks
  // that it sent before the end may be lost, however new the last one seems. Disconnected() returns
  // the ids of the agents that must send everything again, because their reports on the ended
  // agent's processes were refused.
  void Connected(const AgentName& name) ABSL_LOCKS_EXCLUDED(mutex_);
  // The daemon has sent its welcome. Until then a connected agent sends no tick and is not silent.
  void Welcomed(const std::string& id, int64_t now_ns) ABSL_LOCKS_EXCLUDED(mutex_);
  std::vector<std::string> Disconnected(const AgentName& name) ABSL_LOCKS_EXCLUDED(mutex_);

  bool IsConnected(const std::string& id) const ABSL_LOCKS_EXCLUDED(mutex_);
  std::vector<v1::AgentRelease> Releases() const ABSL_LOCKS_EXCLUDED(mutex_);

  // A tick made at `made_ns` (the agent's clock) has come. It counts as heard once it is applied;
  // until then the agent is not silent, however long that takes.
  Origin RecordTick(const AgentName& name, int64_t made_ns, int64_t came_ns)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void Applied(const Origin& origin) ABSL_LOCKS_EXCLUDED(mutex_);

  // What an agent has left out. `broken_streams`: since it began; `segments`: now.
  struct LeftOut {
    uint64_t broken_streams = 0, segments = 0;
  };
  // Returns what is new since the last call for this agent.
  LeftOut RecordLeftOut(const Origin& origin, const LeftOut& left_out) ABSL_LOCKS_EXCLUDED(mutex_);

  // When the oldest tick came that is not applied; 0 if all are.
  int64_t OldestUnapplied() const ABSL_LOCKS_EXCLUDED(mutex_);

  // Returns how late the usual tick came in the last seconds: so late, or less, were `share` of
  // them.
  int64_t UsualLateness(int64_t now_ns, double share) const ABSL_LOCKS_EXCLUDED(mutex_);

  // The agent was asked to tick at this pace from now on.
  void SetPace(const std::string& id, int64_t tick_ns) ABSL_LOCKS_EXCLUDED(mutex_);

  // These agents shall tick faster than the others, because a job of theirs may hang. Replaces
  // those of the last call.
  void SetUrgent(std::vector<AgentPtr> agents) ABSL_LOCKS_EXCLUDED(mutex_);

  // Whether `agent` may take over a process from `owner`: that one is not connected, or silent.
  bool IsFree(const AgentPtr& owner) const ABSL_LOCKS_EXCLUDED(mutex_);
  // Whether a stream of the agent brings ticks, without a gap.
  bool IsHeard(const AgentPtr& agent) const ABSL_LOCKS_EXCLUDED(mutex_);
  // The agent's reports on processes of another agent were refused.
  void SetRefused(const AgentPtr& agent) ABSL_LOCKS_EXCLUDED(mutex_);

  // Looks at the clock: an agent whose ticks are missing is stale, and after a while silent; later
  // while the ticks of other agents come late, too. Returns the hosts of those that have fallen
  // silent since the last call.
  std::vector<std::string> MarkSilent(int64_t now_ns, int64_t silent_after_ns)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Agents that MarkSilent() looks at: all but the runs that are over.
  size_t watched() const ABSL_LOCKS_EXCLUDED(mutex_);

  // The number of ended runs of agents that were forgotten early, because there were too many.
  uint64_t TakeForgotten() ABSL_LOCKS_EXCLUDED(mutex_);

  std::vector<AgentHeard> Heard(const std::vector<AgentPtr>& agents) const
      ABSL_LOCKS_EXCLUDED(mutex_);
  static const AgentName& Name(const AgentPtr& agent);

 private:
  // Agents without a stream, by the order in which they lost it.
  using Gone = std::map<uint64_t, AgentPtr>;

  AgentPtr FindOrAdd(const AgentName& name) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void SetGone(const AgentPtr& agent) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void SetBack(const AgentPtr& agent) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  static bool IsOver(const Agent& agent);
  void MarkSilentAgent(Agent* agent, int64_t now_ns, int64_t silent_after_ns) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ForgetOld(int64_t now_ns) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ForgetFirst(const Gone& gone) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Forget(const AgentPtr& agent) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable Mutex mutex_;
  std::map<std::string, AgentPtr> agents_ ABSL_GUARDED_BY(mutex_);  // by id
  // The agents of agents_ in which the clock may change something. The others are in gone_.
  std::map<std::string, AgentPtr> watched_ ABSL_GUARDED_BY(mutex_);  // by id
  // Ids of the agents whose reports were refused, by host.
  std::map<std::string, std::set<std::string>> refused_ ABSL_GUARDED_BY(mutex_);
  Gone gone_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, Gone> gone_of_host_ ABSL_GUARDED_BY(mutex_);
  uint64_t last_gone_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t forgotten_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<AgentPtr> urgent_ ABSL_GUARDED_BY(mutex_);
  AgentReleases releases_ ABSL_GUARDED_BY(mutex_);  // of the connected agents
  TickGaps gaps_ ABSL_GUARDED_BY(mutex_);
  HostClocks clocks_ ABSL_GUARDED_BY(mutex_);  // by agent: each has a clock of its own
};

}  // namespace rollcall
