// SPDX-License-Identifier: Apache-2.0
// The life of one job's incidents: suspected, confirmed, resolved or ended.
//
// Pure: time and state are arguments, and the result is a list of events. The caller samples the
// stacks, writes the report and sends the alert.
// One owner, no lock. At most one incident of a job is live. New verdicts
// join the live incident.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "daemon/diagnosis/life/stack_plan.h"
#include "daemon/diagnosis/versions.h"
#include "daemon/model/job_state.h"
#include "daemon/model/verdict.h"

namespace rollcall {

enum class IncidentState : uint8_t { kSuspected, kConfirmed, kResolved, kEnded };
const char* IncidentStateName(IncidentState state);

struct Incident {
  std::string id;  // as in daemon/model/incident_id.h, n from 1
  JobKey job;
  IncidentState state = IncidentState::kSuspected;
  int64_t opened_ns = 0;
  int64_t confirmed_ns = 0;  // 0 if never; a closed incident keeps it
  int64_t closed_ns = 0;     // 0 if live
  // The first is the root cause. Process indices are those of the job's state.
  std::vector<Verdict> verdicts;
  std::vector<VersionInUse> versions;  // at its confirmation; before that, at its opening
  size_t ended_ranks = 0;  // number of ranks whose process had ended when it was confirmed
  // An earlier daemon opened it, and this one has not diagnosed it yet. The verdicts have causes,
  // communicators, positions, ranks and summaries; the rest is in the store only.
  bool is_stored = false;
};

struct IncidentEvent {
  enum class Kind : uint8_t {
    kOpened,            // suspected: sample the stacks now
    kTakeStacksAgain,   // sample the same stacks again, to show which processes make progress
    kTakeStacksOfRest,  // sample the next portion of the other processes
    kTakeTransfers,     // read what their transfers over the network wait for, without stacks
    kConfirmed,         // write the report, alert, act
    kUpdated,           // the verdicts have changed: rewrite the report if there is one
    kResolved,          // the job makes progress again
    kEnded,             // all processes of the job have ended
  };
  Kind kind = Kind::kOpened;
  Incident incident;  // after the event
  // Indices into JobState::processes, culprits first, without ended processes. A sample of the
  // culprits if there are very many.
  // Only for kOpened, kUpdated, and the kinds that take something.
  std::vector<int32_t> take_stacks_of;
};

// Whether the incident itself has changed.
constexpr bool HasNews(IncidentEvent::Kind kind) {
  return kind != IncidentEvent::Kind::kTakeStacksAgain &&
         kind != IncidentEvent::Kind::kTakeStacksOfRest &&
         kind != IncidentEvent::Kind::kTakeTransfers;
}

// What a diagnosis can see of its job. A restarted daemon sees a part, until all hosts have
// reported.
enum class View : uint8_t { kWhole, kPart };

// A host that is silent for so long does not come back.
inline constexpr int64_t kLostForGoodNs = 600'000'000'000;

class IncidentLife {
 public:
  // `count`: number of earlier incidents of the job; the next one gets the number after it.
  explicit IncidentLife(JobKey job, int count = 0) : job_(std::move(job)), count_(count) {}
  explicit IncidentLife(std::string job) : IncidentLife(JobKey(std::move(job))) {}

  // `verdicts`: the result of Diagnose() for `state` at `now_ns`. The caller handles the
  // events in the given order.
  std::vector<IncidentEvent> Update(const JobState& state, const std::vector<Verdict>& verdicts,
                                    int64_t now_ns, const Limits& limits, View view = View::kWhole);

  // The next incident gets a number after `count`, which has become known late.
  void RaiseCount(int count) { count_ = std::max(count_, count); }
  // Continues a live incident of an earlier daemon. Its id is the number of an earlier incident.
  // The culprits have no process indices.
  void Restore(Incident incident);
  // A confirmed and closed incident of an earlier daemon: a divergence that it reported is not
  // news.
  void RestoreClosed(const Incident& incident);
  // Ends the live incident: the job has not come back.
  std::vector<IncidentEvent> End(int64_t now_ns);

  // The live incident, with the newest `waited_ns`; nothing if there is none.
  const std::optional<Incident>& live() const { return live_; }

 private:
  using Events = std::vector<IncidentEvent>;

  void FindProcesses(const JobState& state);
  bool IsStored(const Verdict& verdict) const;
  bool IsNews(const Verdict& verdict) const;
  bool Holds(const JobState& state, const std::vector<Verdict>& verdicts) const;
  bool IsDue(const JobState& state, int64_t now_ns, const Limits& limits) const;
  bool AwaitsOtherRanks(const JobState& state, const Verdict& verdict, int64_t now_ns) const;
  bool IsBeingTornDown(const JobState& state) const;
  void AddEndedBefore(const JobState& state);
  bool InvolvedHaveEnded(const JobState& state) const;
  bool HasGoneOn(const JobState& state) const;
  void Open(const JobState& state, const std::vector<Verdict>& verdicts, int64_t now_ns,
            Events* events);
  void Refresh(const JobState& state, const std::vector<Verdict>& verdicts, int64_t now_ns,
               const Limits& limits, View view, Events* events);
  void AskForStacks(const JobState& state, int64_t now_ns, const Limits& limits, Events* events);
  void Remember(const Incident& incident);
  void Confirm(const JobState& state, int64_t now_ns, Events* events);
  void CloseIfOver(const JobState& state, int64_t now_ns, Events* events);
  void Close(IncidentState how, int64_t now_ns, Events* events);

  JobKey job_;
  int count_;
  std::optional<Incident> live_;
  std::vector<Verdict> reported_;  // verdicts of the last event
  StackPlan stacks_;
  int64_t gone_since_ns_ = 0;  // when the last verdict ceased to hold; 0 if one holds
  bool gone_alive_ = false;    // then, no rank had ended since the confirmation
  size_t counted_ = 0;         // processes among which `ended_ranks` were counted
  // The ranks of the confirmed incident that were out of reach at its confirmation, and still are.
  std::vector<int32_t> unheard_;
  size_t searched_ = SIZE_MAX;                     // processes that FindProcesses() has seen
  std::set<uint64_t> diverged_;                    // communicators with a reported first divergence
  std::set<std::pair<uint64_t, uint64_t>> raced_;  // and positions of reported calls of two threads
};

}  // namespace rollcall
