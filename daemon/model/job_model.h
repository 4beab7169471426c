// SPDX-License-Identifier: Apache-2.0
// Builds a JobState from progress. Only this class changes the state.
//
// Agents send updates again: an update with facts that the state already has
// changes nothing. Updates may be wrong in any way, since they come from files
// that a job wrote: the model ignores impossible values, and drops and counts what
// exceeds a limit (client_limits.h).
//
// One owner, no lock, no clock.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "daemon/model/client_limits.h"
#include "daemon/model/fleet_budget.h"
#include "daemon/model/job_state.h"
#include "daemon/model/member_records.h"
#include "daemon/model/process_key.h"
#include "daemon/model/world_restarts.h"

namespace rollcall {

// What the newest stacks of a process show. Process has the meaning of the fields.
struct StackFacts {
  Motion motion = Motion::kUnknown;
  std::string words;
  StackPlace place;
  bool waits_outside = false;
  int64_t now_ns = 0;
  std::vector<uint32_t> awaited_tids = {};
  std::vector<ThreadPlace> threads = {};  // that show a line of the program
  std::vector<ThreadPlace> keepers = {};
  std::optional<std::vector<ChildAtWork>> children_at_work =
      {};  // also slow ones; nullopt if one sample shows nothing
  double receives = 0;
  std::shared_ptr<const Standing> standing = {};  // nullptr keeps the last one
  // When the sample was asked for. On a host without a free CPU it comes seconds after it was
  // taken. If 0, it counts as taken at `now_ns`.
  int64_t asked_ns = 0;
};

// The two ids of a grown communicator.
struct GrownId {
  uint64_t unique_id = 0;  // in the reports of the ranks that join
  uint64_t id = 0;         // in the reports of the other ranks
};

// The progress of one process on one communicator, and what is new.
struct CommProgress : CommFacts {
  uint32_t index = 0;  // of the communicator in its process; stays when `id` changes
  uint64_t id = 0;
  uint64_t parent = 0;
  std::string name;
  CommKind kind = CommKind::kNccl;
  int32_t rank = -1;
  int32_t size = 0;
  // `id`, `rank` and `size` are those of the split on the parent: the child does not
  // exist yet.
  bool split_pending = false;
  std::vector<Checkpoint> checkpoints;  // new ones
  std::vector<GraphLaunch> graph_launches;
  std::shared_ptr<const MessageCounts> messages;  // nullptr means as before
  std::vector<CallRecord> records;                // new ones, and those that have changed
  std::vector<GrownId> grown;
};

class JobModel {
 public:
  // `fleet`: the memory that the job shares with others; nullptr if it has one of its own. `user`:
  // whose share the job takes; empty if it has no owner.
  explicit JobModel(JobKey key, std::shared_ptr<FleetBudget> fleet = nullptr,
                    const std::string& user = "");
  explicit JobModel(std::string name) : JobModel(JobKey(std::move(name))) {}
  JobModel(JobModel&&) noexcept;
  JobModel& operator=(JobModel&&) noexcept;
  ~JobModel();

  // Index of the process in the state; equal arguments give the same index. -1 if the job has too
  // many processes. The other functions ignore this index.
  int32_t AddProcess(const std::string& host, int32_t pid, uint64_t start_time);

  void SetIdentity(int32_t process, const ProcessIdentity& identity);
  // `now_ns`: when it held.
  void SetEvidence(int32_t process, const ProcessEvidence& evidence, int64_t now_ns = 0);
  // Lines of the program that make calls, from this index on.
  void AddSites(int32_t process, size_t first, std::vector<std::string> sites);
  // `now_ns`: the time of the update, by the clock of all times in it.
  void SetProgress(int32_t process, const CommProgress& progress, int64_t now_ns);
  // Sets the process of each rank of a communicator, including ranks without a report.
  // The communicator must exist in the state.
  void SetSeats(uint64_t communicator, const std::vector<int32_t>& processes);
  // Marks a process as silent, since its agent no longer reports. Does nothing if the
  // process has ended. The next SetEvidence() removes the mark.
  void SetSilent(int32_t process, int64_t since_ns);
  // Index of the agent in the state; equal ids give the same index while the agent lives or reports
  // a process. An agent that is gone, and whose processes other agents of its host report, leaves
  // its index to the next agent of that host. -1 if the job has too many.
  int32_t AddAgent(const std::string& id, const std::string& host);
  // Sets the agent that reports on the process from now on.
  void SetAgent(int32_t process, int32_t agent);
  // Records the reports of an agent by now. Its processes change only when the agent becomes
  // stale or silent, or reports again.
  void SetAgentHeard(int32_t agent, const AgentHeard& heard);
  // All waits count from this time on.
  void CountFrom(int64_t time_ns) { state_.counts_from_ns = time_ns; }
  void SetStacks(int32_t process, const StackFacts& facts);
  // Replaces what was known of its transfers, with when it was read at the earliest. Drops them if
  // the job has too many.
  void SetNetwork(int32_t process, std::vector<NetworkSample> samples, int64_t read_ns);
  // What a host shows now, in place of what it showed before.
  void SetHostFacts(const std::string& host, HostFacts facts);
  void SetOffline() { state_.offline = true; }
  // Drops the oldest records if the job's share of the memory has become much smaller.
  void TrimRecords();

  // What the model dropped since the last call, by Dropped.
  DroppedCounts TakeDropped();

  const JobState& state() const { return state_; }
  // Rises with every call that may have changed the state.
  uint64_t version() const { return version_; }

  static constexpr size_t kMostRecords = 1024;  // of a member
  // A vector of records grows to one and a half times its limit, and has checkpoints beside it.
  static constexpr size_t kBytesOfRecord =
      sizeof(CallRecord) * 3 / 2 + kCheckpointsOfRecord * sizeof(Checkpoint);

 private:
  // The rank in the state that one communicator of a process stands for.
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
  void SetName(std::string name, Communicator* comm);
  Communicator Extract(uint64_t id);
  static void UpdateAgreement(const CommProgress& progress, CommBook* book, Communicator* comm,
                              const Member& before);
  void AddRecords(const CommProgress& progress, size_t kept, Communicator* comm, Member* member);
  void TakeSeat(int32_t process, const CommProgress& progress);
  void LeaveSeat(const Seat& seat, int32_t process);
  void NoteSize(const CommProgress& progress, Communicator* comm);
  bool IsRival(int32_t process, const CommProgress& progress) const;
  bool NoteRival(int32_t process, const CommProgress& progress);
  void NoteSiblings(int32_t process, const CommProgress& progress, Communicator* comm);
  void ApplyProgress(int32_t process, const CommProgress& progress, int64_t now_ns);
  uint64_t ResolveId(uint64_t reported) const;
  void AddGrown(const GrownId& grown);
  void MoveMember(const Member& member, int32_t rank, uint64_t from, Communicator* to);
  void DropIfOver(uint64_t communicator);

  bool MayJoin(int32_t process, const CommProgress& progress);
  size_t RecordShare() const;
  static void NoteSuspension(bool is_suspended, int64_t now_ns, Process* process);
  static void NoteQuiet(double cpu_seconds, int64_t now_ns, Process* process);
  void Count(Dropped what) {
    ++dropped_[static_cast<size_t>(what)];
    has_dropped_ = true;
  }
  void LimitText(size_t most, std::string* text);
  void LimitPlace(StackPlace* place);
  void SetOutside(const StackFacts& facts, Process* process);
  void CountTexts(int32_t process);
  void CutSites(size_t from, std::vector<std::string>* sites);
  int32_t FindLeftAgent(const std::string& host) const;
  void SetBusy(int32_t agent);

  JobState state_;
  uint64_t version_ = 0;
  std::unique_ptr<BudgetShare> share_;
  size_t trimmed_to_ = kMostRecords;  // RecordShare() at the last TrimRecords()
  DroppedCounts dropped_ = {};
  bool has_dropped_ = false;
  absl::flat_hash_map<ProcessKey, int32_t> processes_;
  std::vector<std::vector<Seat>> seats_;                   // by process
  std::map<uint64_t, CommBook> books_;                     // by communicator
  std::vector<size_t> text_bytes_;                         // by process, counted in share_
  size_t network_states_ = 0;                              // of all processes
  std::vector<Liveness> before_silence_;                   // by process
  std::map<std::string, int32_t> agents_;                  // by id
  std::vector<std::vector<int32_t>> processes_of_agents_;  // by agent
  // Agents that report no process, by host.
  std::map<std::string, std::set<int32_t>> idle_agents_;
  std::map<uint64_t, uint64_t> grown_;  // unique id -> id
  WorldRestarts world_restarts_;
};

}  // namespace rollcall
