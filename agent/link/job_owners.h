// SPDX-License-Identifier: Apache-2.0
// Which of several daemons this host's agent reports each job to.
//
// Each job has one owner among the daemons of a database, and the agent follows their messages
// about it (v1.Owners). For a job that no daemon has assigned, and for one whose owner is away, the
// agent asks the daemon that the job prefers (base/rendezvous.h) among those that are not away. A
// host without jobs has a daemon that it prefers, too, so that one daemon always sees the host.
//
// Decides only: it connects to nothing, and the caller gives the time, in nanoseconds of one clock
// that only ascends. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "agent/link/known_daemons.h"
#include "base/mutex.h"

namespace rollcall {

class JobOwners {
 public:
  // A job is on this host for so long after a tick has looked at it. Ticks may be a minute apart.
  static constexpr int64_t kJobStays = 65'000'000'000;

  // `host`: name of this host. `given`: the addresses that the agent begins with, at least one.
  // `changed`: called from any function here, by its thread, after a change of what follows from
  // it.
  JobOwners(std::string host, std::vector<std::string> given, std::function<void()> changed = {});

  // What the agent learns.
  void SetGiven(std::vector<std::string> given);
  void Opened(const std::string& stream, int64_t now_ns);
  // The daemon of the stream calls itself `address` and names all daemons, itself included; both
  // are empty if it is alone. `stays`: the agent goes on with the stream.
  void Welcomed(const std::string& stream, const std::string& address,
                const std::vector<std::string>& daemons, bool stays, int64_t now_ns);
  void SetDaemons(const std::vector<std::string>& daemons);
  // `daemon`: the owner; empty means the daemon of the stream. Only for jobs that are on this host.
  void Told(const std::string& stream, const std::string& tenant, const std::string& job,
            const std::string& daemon);
  void Broken(const std::string& stream, int64_t now_ns);
  void Closed(const std::string& stream);
  // Looks which daemons have become away by now. Returns the time of the next look; INT64_MAX if
  // nothing is due.
  int64_t Expire(int64_t now_ns);
  // From now on only jobs are new: for the last ticks.
  void Freeze();

  // What follows. 0 if the stream does not have the processes of the job, which is on this host.
  // Else it has them, and must report them anew if the number is not that of the last time: the job
  // was another stream's meanwhile. The job is empty if the process names none.
  uint64_t Takes(const std::string& stream, const std::string& tenant, const std::string& job,
                 int64_t now_ns);
  std::string Owner(const std::string& tenant, const std::string& job) const;
  std::string Home() const;  // the daemon of this host if it has no job
  // The streams that the agent should have: to the owners of the jobs on this host, and to those
  // that would be if they were not away.
  std::set<std::string> Needed(int64_t now_ns) const;
  // Returns the streams to the owners only.
  std::set<std::string> Taking(int64_t now_ns) const;
  // Whether the daemon of the stream has refused a job for the sake of an owner that is away. It
  // gets the job when the owner's lease is over, if the agent asks again.
  bool MustAskAgain(const std::string& stream, int64_t now_ns) const;
  // Whether a daemon has named this address as one of several.
  bool IsInFleet(const std::string& address) const;
  uint64_t version() const { return version_; }  // of all this; ascends

 private:
  using Key = std::pair<std::string, std::string>;  // tenant and job
  struct Job {
    int64_t seen_ns = 0;
    std::string told;     // the owner; empty if no daemon has named one
    std::string told_by;  // stream
    std::string owner;    // by all that is known
    uint64_t turn = 0;    // ascends when the owner changes
  };

  static Key KeyOf(const std::string& tenant, const std::string& job);
  std::string FindOwner(const Key& key, const Job* job) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::string FindHome() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void CountTurn(const Key& key, Job* job) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void CountTurns() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Change();

  const std::string host_;
  const std::function<void()> changed_;
  std::atomic<uint64_t> version_{1};

  mutable Mutex mutex_;
  KnownDaemons daemons_ ABSL_GUARDED_BY(mutex_);
  std::map<Key, Job> jobs_ ABSL_GUARDED_BY(mutex_);
  bool was_welcome_ ABSL_GUARDED_BY(mutex_) = false;  // on any stream
  bool is_frozen_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace rollcall
