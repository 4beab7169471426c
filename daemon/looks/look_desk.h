// SPDX-License-Identifier: Apache-2.0
// Looks at a job that is not recorded: asks the agents of its hosts for the stacks of its ranks
// three times within seconds, for facts about the hosts and for the ends of the ranks' logs. If the
// job may hang, then NCCL's RAS is asked on one of its hosts. Gives what they answer as looks at
// hosts, for judge.h and ask_ras.h.
//
// The agents take stacks within their usual limits. An agent that does not answer has a look with
// an error, and the others are not kept waiting.
//
// Look() blocks the caller's thread. Replies come on gRPC's threads. The mutex is taken last; no
// message is sent under it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "base/steady_clock.h"
#include "daemon/access/agent_name.h"
#include "daemon/looks/ask_ras.h"
#include "daemon/looks/unrecorded_book.h"
#include "rollcall/v1/look.pb.h"

namespace rollcall {

namespace v1 {
class DaemonMessage;
class HostFactsReply;
class LookAtRanksReply;
class StackReply;
}  // namespace v1

class LookDesk {
 public:
  static constexpr size_t kMostAtOnce = 5;  // looks, of all callers
  // Limits for callers who see the jobs of the same tenants, and for one caller. The others find a
  // place.
  static constexpr size_t kMostOfTenants = 3;
  static constexpr size_t kMostOfCaller = 2;
  static constexpr size_t kSamples = 3;
  // As v1::GatherHostFacts and v1::LookAtRanks say.
  static constexpr int kMostProcessesOfFacts = 64;
  // In bytes of one look. What is beyond is left out, which is reported.
  struct Sizes {
    size_t facts_of_host = size_t{256} << 10;
    size_t host = size_t{16} << 20;  // its stacks, facts, logs and answers of RAS
    size_t all = size_t{256} << 20;  // those of all hosts
  };

  // Sends a message to the agent with this id. Returns false if that agent is not connected.
  using Send = std::function<bool(const std::string& agent, const v1::DaemonMessage& message)>;

  // `book` must outlive this object. `now_ns`: a clock that never goes back.
  LookDesk(Send send, const UnrecordedBook* book, std::function<int64_t()> now_ns = SteadyNs)
      : LookDesk(std::move(send), book, std::move(now_ns), Sizes()) {}
  LookDesk(Send send, const UnrecordedBook* book, std::function<int64_t()> now_ns,
           const Sizes& most)
      : send_(std::move(send)), book_(book), now_ns_(std::move(now_ns)), most_(most) {}

  // The job that the request names, among those of `tenants`. `who`: the caller's name. `goes_on`
  // is asked several times a second: false ends the look. Errors: those of UnrecordedBook::Find();
  // kResourceExhausted: too many looks are under way; kInvalidArgument: the time is wrong;
  // kCancelled.
  absl::StatusOr<std::vector<v1::HostLook>> Look(const v1::LookRequest& request,
                                                 const Tenants& tenants, const std::string& who,
                                                 const std::function<bool()>& goes_on)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // True if the reply is one to a look.
  bool OnStackReply(const AgentName& agent, const v1::StackReply& reply)
      ABSL_LOCKS_EXCLUDED(mutex_);
  bool OnHostFacts(const AgentName& agent, const v1::HostFactsReply& reply)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void OnRanks(const AgentName& agent, const v1::LookAtRanksReply& reply)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Ends all looks, now and later: the daemon stops.
  void Close() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  class Running;

  absl::StatusOr<std::shared_ptr<Running>> Begin(const v1::LookRequest& request,
                                                 const Tenants& tenants, const std::string& who,
                                                 ListedJob job) ABSL_LOCKS_EXCLUDED(mutex_);
  void SendDue(Running* look) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status AwaitAll(Running* look, const std::function<bool()>& goes_on)
      ABSL_LOCKS_EXCLUDED(mutex_);
  bool AwaitUntil(int64_t until_ns, const std::function<bool()>& goes_on,
                  const std::function<bool()>& is_done) ABSL_LOCKS_EXCLUDED(mutex_);
  std::vector<v1::HostLook> Finish(Running* look) ABSL_LOCKS_EXCLUDED(mutex_);
  void AskRasOf(Running* look, const std::function<bool()>& goes_on,
                std::vector<v1::HostLook>* looks) ABSL_LOCKS_EXCLUDED(mutex_);
  v1::RasAnswer AskAgent(Running* look, const RasPlace& place, const std::function<bool()>& goes_on)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void Forget(const Running* look) ABSL_LOCKS_EXCLUDED(mutex_);

  const Send send_;
  const UnrecordedBook* const book_;
  const std::function<int64_t()> now_ns_;
  const Sizes most_;
  Mutex mutex_;
  Condition changed_;
  bool is_closed_ ABSL_GUARDED_BY(mutex_) = false;
  uint64_t last_number_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<std::shared_ptr<Running>> running_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace rollcall
