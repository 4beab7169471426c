// SPDX-License-Identifier: Apache-2.0
// Builds a JobState from progress: the one place where it changes.
//
// Applying an update twice, or after others that hold the same facts, changes
// nothing: agents re-send. Updates may be wrong in any way (they come from
// files that a job wrote): what cannot be is left out.
//
// One owner, no lock, no clock.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "daemon/model/job_state.h"
#include "daemon/model/process_key.h"

namespace rollcall {

// What its newest stacks show; the fields mean what those of Process mean.
struct StackFacts {
  Motion motion = Motion::kUnknown;
  std::string words;
  bool waits_outside = false;
  int64_t now_ns = 0;
};

// A grown communicator: its id, and that by which the ranks that join it know it.
struct GrownId {
  uint64_t unique_id = 0;
  uint64_t id = 0;
};

// One communicator of one process: where it stands, and what is new.
struct CommProgress : CommFacts {
  uint32_t index = 0;  // of the communicator in its process; tells a new one from a renamed one
  uint64_t id = 0;
  uint64_t parent = 0;
  std::string name;
  int32_t rank = -1;
  int32_t size = 0;
  // `id`, `rank` and `size` are those of the split on the parent: the process
  // does not know its child yet.
  bool split_pending = false;
  std::vector<Checkpoint> checkpoints;  // new ones
  std::vector<GraphLaunch> graph_launches;
  std::vector<CallRecord> records;  // new ones, and those that have changed
  std::vector<GrownId> grown;
};

class JobModel {
 public:
  explicit JobModel(std::string name);
  JobModel(JobModel&&) noexcept;
  JobModel& operator=(JobModel&&) noexcept;
  ~JobModel();

  // Index of the process in the state; the same for the same three.
  int32_t AddProcess(const std::string& host, int32_t pid, uint64_t start_time);

  void SetIdentity(int32_t process, const ProcessIdentity& identity);
  void SetEvidence(int32_t process, const ProcessEvidence& evidence);
  // Lines of the program that make calls, from this index on.
  void AddSites(int32_t process, size_t first, std::vector<std::string> sites);
  // `now_ns`: when the update was made, on the clock of all times in it.
  void SetProgress(int32_t process, const CommProgress& progress, int64_t now_ns);
  // Which process each rank of a communicator is, whether it tells of itself or
  // not. The communicator must be known.
  void SetSeats(uint64_t communicator, const std::vector<int32_t>& processes);
  // The process's agent no longer answers: nothing is known of it any more,
  // unless it had ended. Taken back by the next SetEvidence.
  void SetSilent(int32_t process, int64_t since_ns);
  // Index of the agent in the state; the same for the same id.
  int32_t AddAgent(const std::string& id, const std::string& host);
  // Who speaks for the process from now on.
  void SetAgent(int32_t process, int32_t agent);
  // When the agent was heard. What its processes are known to do changes only where it has become
  // stale or silent, or is so no longer.
  void SetAgentHeard(int32_t agent, const AgentHeard& heard);
  // No wait counts from before that.
  void CountFrom(int64_t time_ns) { state_.counts_from_ns = time_ns; }
  // What the newest stacks of a process show.
  void SetStacks(int32_t process, const StackFacts& facts);
  void SetOffline() { state_.offline = true; }

  const JobState& state() const { return state_; }
  // Raised by every call that may have changed the state.
  uint64_t version() const { return version_; }

 private:
  // Where a communicator of a process stands in the state.
  struct Seat {
    uint32_t index = 0;  // CommProgress::index
    int32_t rank = -1;
    uint64_t communicator = 0;
  };
  struct CommBook;

  bool IsKnown(int32_t process) const;
  void Touch(int32_t process);
  void SetSilence(int32_t process, bool silent, int64_t since_ns);
  bool IsTakenByAnother(int32_t process, const CommProgress& progress) const;
  size_t RecordsKept(const Communicator& comm, int32_t rank) const;
  static void UpdateAgreement(const CommProgress& progress, CommBook* book, Communicator* comm,
                            const Member& before);
  void AddRecords(const CommProgress& progress, size_t kept, Communicator* comm, Member* member);
  void TakeSeat(int32_t process, const CommProgress& progress);
  void LeaveSeat(const Seat& seat, int32_t process);
  void ApplyProgress(int32_t process, const CommProgress& progress, int64_t now_ns);
  uint64_t ResolveId(uint64_t told) const;
  void AddGrown(const GrownId& grown);
  void MoveMember(const Member& member, int32_t rank, uint64_t from, Communicator* to);
  void DropIfOver(uint64_t communicator);

  JobState state_;
  uint64_t version_ = 0;
  size_t members_ = 0;  // of all communicators
  std::map<ProcessKey, int32_t> processes_;
  std::vector<std::vector<Seat>> seats_;  // by process
  std::map<uint64_t, CommBook> books_;    // by communicator
  std::vector<Liveness> before_silence_;  // by process
  std::map<std::string, int32_t> agents_;                  // by id
  std::vector<std::vector<int32_t>> processes_of_agents_;  // by agent
  std::map<uint64_t, uint64_t> grown_;    // unique id -> id
};

}  // namespace rollcall
