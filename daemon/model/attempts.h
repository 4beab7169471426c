// SPDX-License-Identifier: Apache-2.0
// Decides to which attempt of its job a process belongs.
//
// A launcher that restarts a job often shows it (ROLLCALL_ATTEMPT, TORCHELASTIC_RESTART_COUNT,
// SLURM_RESTART_COUNT, JOBSET_RESTART_ATTEMPT); a person who starts a job again under its name does
// not. So the processes themselves decide: a process that takes the rank of one that had ended
// before belongs to a new attempt, and so does one that takes the rank of a living one, because two
// jobs of one name then run at once. The rendezvous distinguishes only starts at different
// addresses: the next start usually has the address of the last one.
//
// An agent sees the end of a process with its next look, so each end lies between two times. A
// process that begins between them and uses NCCL begins an attempt.
//
// The processes of one start may have got different values of WORLD_SIZE, or one rank twice: that
// is what is wrong with the job. They are one attempt if they join one communicator, and those with
// different sizes also if the launcher gave them one address.
//
// A restarted daemon restores the attempts of the earlier one, so that their numbers go on and a
// process that returns belongs to the attempt that it had.
//
// One owner, no lock, no clock.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "daemon/model/process_key.h"

namespace rollcall {

struct ProcessStart {
  ProcessKey process;
  std::string user;         // whose it is; empty if unknown
  int32_t rank = -1;        // -1 if the environment gives none
  int32_t world_size = -1;  // likewise
  bool uses_nccl = false;   // false: a helper that inherited the rank, or not yet
  int64_t started_ns = 0;   // on the daemon's clock
  int32_t attempt = -1;     // as the launcher counts; -1 if it does not report it
  std::string restarts;     // all counters of restarts, "TORCHELASTIC_RESTART_COUNT=1", or empty
  std::string launch;       // equal for all processes of one start; empty if unknown
  // The job goes on while the process starts again, and takes it back. It belongs to the attempt as
  // long as another rank of it lives.
  bool may_rejoin = false;
  // The ids of those that it joins. No other start has these ids.
  std::vector<uint64_t> communicators = {};
};

// What a restarted daemon needs to recognize the processes of an attempt.
struct AttemptFacts {
  struct Member {
    ProcessKey process;
    int32_t rank = -1;
  };

  int32_t world_size = -1;
  std::string restarts, launch;  // as in ProcessStart
  bool has_twin = false;
  std::vector<Member> members;  // that use NCCL
};

class Attempts {
 public:
  // Clocks of hosts agree so far only.
  static constexpr int64_t kClockSlackNs = 1'000'000'000;
  // A launcher that is slow on one host starts a rank so much later than its launch failed, at
  // most.
  static constexpr int64_t kLateNs = 30'000'000'000;
  // What makes room for newer attempts (attempt_room.h) takes no new processes.
  static constexpr size_t kKept = 64;
  // The ranks of one start on one host begin within this time.
  static constexpr int64_t kTogetherNs = 2'000'000'000;
  static constexpr size_t kCommunicators = 4096;  // of an attempt, that it remembers

  // The attempt of the process; the same whenever it is asked again.
  int32_t Place(const ProcessStart& start);
  // Whether it is too early to place the process: it does not use NCCL, and another process had its
  // rank when it began, or may have had it. It is a helper that inherited the rank, or a rank of a
  // later start before its first call.
  bool IsTooEarly(const ProcessStart& start) const;
  // The process has ended after `after_ns`, and by `by_ns`, on the daemon's clock. `after_ns` 0 if
  // unknown.
  void SetEnded(const ProcessKey& process, int64_t after_ns, int64_t by_ns);
  // The process uses NCCL from now on, so its rank is its own. Returns true at the first call.
  bool SetUsesNccl(const ProcessKey& process);
  // Communicators that the process has joined since Place().
  void AddCommunicators(const ProcessKey& process, const std::vector<uint64_t>& ids);
  void Forget(int32_t attempt);

  // An attempt that an earlier daemon recorded. Call it before the first Place(), oldest first.
  void Restore(int32_t attempt, const AttemptFacts& facts);
  // Whether Place() has seen the process: it was placed before, or restored.
  bool IsPlaced(const ProcessKey& process) const { return placed_.count(process) != 0; }
  // The facts of the attempt, without members.
  AttemptFacts FactsOf(int32_t attempt) const;
  // The facts of all attempts, by number.
  std::map<int32_t, AttemptFacts> AllFacts() const;

  bool empty() const { return attempts_.empty(); }
  int32_t newest() const { return attempts_.empty() ? 0 : attempts_.back().number; }
  // Whether another attempt was alive when this one began: two jobs use one name.
  bool HasTwin(int32_t attempt) const;

 private:
  struct Member {
    int32_t rank = -1;
    int32_t world_size = -1;
    bool uses_nccl = false;
    int64_t ended_after_ns = 0, ended_by_ns = 0;  // 0 if alive
    bool is_awaited = false;                      // restored, and no agent has reported it since
  };
  struct Attempt {
    int32_t number = 0;
    std::string user;  // of its first process
    int32_t world_size = -1;
    int64_t began_ns = 0;  // likewise
    std::set<uint64_t> communicators;
    std::string restarts, launch;
    bool has_twin = false;
    std::map<ProcessKey, Member> members;
    std::map<int32_t, ProcessKey> holders;  // by rank: the process that uses NCCL
    size_t alive = 0;                       // members with a rank, without awaited ones
    int64_t last_end_ns = 0;                // of the members with a rank
    std::string last_end_host;
  };
  enum class Fit { kYes, kNo, kRankIsAlive };

  static Fit Fits(const Attempt& attempt, const ProcessStart& start);
  static Fit FitsRank(const Attempt& attempt, const ProcessStart& start);
  static Fit FitsUnheldRank(const Attempt& attempt, const ProcessStart& start);
  static bool IsAlive(const Member& member) { return member.ended_by_ns == 0; }
  static bool SharesCommunicator(const Attempt& attempt, const ProcessStart& start);
  static bool IsOfOtherWorld(const Attempt& attempt, const ProcessStart& start);
  static bool IsSameLaunch(const Attempt& attempt, const ProcessStart& start);
  static bool HasHadRank(const Attempt& attempt, int32_t rank);
  static void Add(const ProcessStart& start, Attempt* attempt);
  static void Hold(int32_t rank, const ProcessKey& process, Attempt* attempt);
  static void Remember(const std::vector<uint64_t>& communicators, Attempt* attempt);
  static AttemptFacts FactsOf(const Attempt& attempt);
  void SetReturned(const ProcessKey& process, Attempt* attempt);
  Attempt* Begin(const ProcessStart& start, bool has_twin);
  void MakeRoom();
  Attempt* Find(int32_t number);

  std::vector<Attempt> attempts_;  // oldest first
  std::map<ProcessKey, int32_t> placed_;
};

}  // namespace rollcall
