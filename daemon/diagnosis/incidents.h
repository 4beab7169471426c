// SPDX-License-Identifier: Apache-2.0
// The life of one job's incidents: suspected, confirmed, resolved or ended.
//
// Pure: time and state are arguments, and the result is a list of events. The caller takes the
// stacks, writes the report and sends the alert.
// One owner, no lock. At most one incident of a job is live. New verdicts
// join the live incident.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "daemon/diagnosis/versions.h"
#include "daemon/model/job_state.h"
#include "daemon/model/verdict.h"

namespace rollcall {

enum class IncidentState : uint8_t { kSuspected, kConfirmed, kResolved, kEnded };
const char* IncidentStateName(IncidentState state);

struct Incident {
  std::string id;  // "<job>-<n>", n from 1
  std::string job;
  IncidentState state = IncidentState::kSuspected;
  int64_t opened_ns = 0;
  int64_t confirmed_ns = 0;  // 0: never; stays when the incident is closed
  int64_t closed_ns = 0;     // 0: live
  // The first is the root cause. Process indices are those of the job's state.
  std::vector<Verdict> verdicts;
  std::vector<VersionInUse> versions;  // as of its confirmation; before that, of its opening
};

struct IncidentEvent {
  enum class Kind : uint8_t {
    kOpened,            // suspected: take stacks now
    kTakeStacksAgain,   // some seconds later, so that it shows who moves
    kTakeStacksOfRest,  // those not asked yet, in portions, to be merged with the others
    kConfirmed,         // write the report, alert, act
    kUpdated,           // other verdicts than before; rewrite the report if there is one
    kResolved,          // the job moves again
    kEnded,             // all processes of the job have ended
  };
  Kind kind = Kind::kOpened;
  Incident incident;  // as it is after the event
  // Indices into JobState::processes; culprits first. Ended processes are not
  // in it. Only with kOpened, kTakeStacksAgain, kTakeStacksOfRest and kUpdated.
  std::vector<int32_t> take_stacks_of;
};

class IncidentLife {
 public:
  // `count`: incidents that the job has had before, whose numbers are in use.
  explicit IncidentLife(std::string job, int count = 0) : job_(std::move(job)), count_(count) {}

  // `verdicts` is what Diagnose() said of `state` at `now_ns`. The caller
  // handles the events in the given order.
  std::vector<IncidentEvent> Update(const JobState& state, const std::vector<Verdict>& verdicts,
                                    int64_t now_ns, const Limits& limits);

  // The live incident, with the newest `waited_ns`; nothing if there is none.
  const std::optional<Incident>& live() const { return live_; }

 private:
  using Events = std::vector<IncidentEvent>;

  bool IsNews(const Verdict& verdict) const;
  bool Holds(const JobState& state, const std::vector<Verdict>& verdicts) const;
  bool IsDue(const Limits& limits) const;
  bool IsBeingTornDown(const JobState& state) const;
  bool InvolvedHaveEnded(const JobState& state) const;
  void Open(const JobState& state, const std::vector<Verdict>& verdicts, int64_t now_ns,
            Events* events);
  void Refresh(const JobState& state, const std::vector<Verdict>& verdicts, int64_t now_ns,
               const Limits& limits, Events* events);
  void AskForStacks(const JobState& state, int64_t now_ns, const Limits& limits, Events* events);
  std::vector<int32_t> NextOfRest(const JobState& state);
  std::vector<int32_t> NewStacks(const JobState& state, int64_t now_ns);
  void Remember();
  void Confirm(const JobState& state, int64_t now_ns, Events* events);
  void CloseIfOver(const JobState& state, int64_t now_ns, Events* events);
  void Close(IncidentState how, int64_t now_ns, Events* events);

  std::string job_;
  int count_;
  std::optional<Incident> live_;
  std::vector<Verdict> told_;    // as of the last event
  int64_t stacks_taken_ns_ = 0;  // 0: nothing to take again
  std::vector<int32_t> stacks_of_;
  size_t rest_next_ = 0;             // index of the process that the next portion begins with
  int64_t rest_next_ns_ = 0;         // when it is due
  int64_t gone_since_ns_ = 0;        // no verdict holds since then; 0: one does
  size_t ended_when_confirmed_ = 0;  // ranks whose process had ended by then
  std::set<uint64_t> diverged_;      // communicators whose first divergence has been reported
};

}  // namespace rollcall
