// SPDX-License-Identifier: Apache-2.0
// Looks at jobs that are not recorded: an agent may report them to several daemons, so each host is
// asked through one.
#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <thread>
#include <utility>

#include "base/durations.h"
#include "base/mutex.h"
#include "base/steady_clock.h"
#include "base/threads.h"
#include "daemon/access/access.h"
#include "daemon/queries/fleet_queries.h"

namespace rollcall {
namespace {

constexpr int64_t kUsualLookNs = 6 * kSecond;

struct Taken {
  std::set<std::string> hosts;
  std::optional<int64_t> uid;  // of the job: another user's may have its name; -1 if unknown
};

// Whether somebody waits for a look. Peers may ask this when the look has ended already.
class Asker {
 public:
  // `goes_on` is called until Leave().
  explicit Asker(const std::function<bool()>& goes_on) : goes_on_(&goes_on) {}
  bool Waits() {
    const MutexLock lock(mutex_);
    return goes_on_ != nullptr && (*goes_on_)();
  }
  void Leave() {
    const MutexLock lock(mutex_);
    goes_on_ = nullptr;
  }

 private:
  Mutex mutex_;
  const std::function<bool()>* goes_on_ ABSL_GUARDED_BY(mutex_);
};

// Of the job, those that are wanted, and that no daemon has taken so far.
std::vector<std::string> TakeHosts(const v1::StatusResponse& list, const v1::LookRequest& request,
                                   Taken* taken) {
  const std::set<std::string> wanted(request.hosts().begin(), request.hosts().end());
  std::vector<std::string> hosts;
  for (const v1::UnrecordedJob& job : list.unrecorded()) {
    const bool is_meant = job.name() == request.job() &&
                          (request.tenant().empty() || job.tenant() == request.tenant());
    const int64_t uid = job.has_uid() ? job.uid() : -1;
    if (!is_meant || taken->uid.value_or(uid) != uid) continue;
    taken->uid = uid;
    for (const std::string& host : job.hosts()) {
      const bool is_wanted = wanted.empty() || wanted.count(host) != 0;
      if (is_wanted && taken->hosts.insert(host).second) hosts.push_back(host);
    }
  }
  return hosts;
}

}  // namespace

FleetQueries::HostsOfJob FleetQueries::FindHosts(const v1::LookRequest& request) const {
  HostsOfJob found;
  Taken taken;
  v1::StatusRequest page;
  page.set_without_communicators(true);
  page.set_limit(1);
  const absl::StatusOr<v1::StatusResponse> own = local_->GetStatus(page);
  if (own.ok()) found.here = TakeHosts(*own, request, &taken);
  const std::vector<DaemonRow> others = peers_->Others();
  const int64_t patience_ns = peers_->options().list_patience_ns;
  std::vector<std::function<absl::StatusOr<v1::StatusResponse>()>> asks;
  for (const DaemonRow& peer : others) {
    asks.push_back(
        [peers = peers_, ask = AskOf(peer, patience_ns), page] { return peers->Ask(ask, page); });
  }
  auto answers = AllAtOnce(std::move(asks), After(patience_ns + kSlackNs));
  for (size_t i = 0; i < answers.size(); ++i) {
    if (!answers[i].has_value() || !answers[i]->ok()) continue;
    std::vector<std::string> hosts = TakeHosts(**answers[i], request, &taken);
    if (!hosts.empty()) found.there.emplace_back(others[i], std::move(hosts));
  }
  return found;
}

absl::StatusOr<std::vector<v1::HostLook>> FleetQueries::LookAtJob(
    const v1::LookRequest& request, const std::function<bool()>& goes_on) {
  using Answer = absl::StatusOr<std::vector<v1::HostLook>>;
  const HostsOfJob hosts = FindHosts(request);
  if (hosts.there.empty()) return local_->LookAtJob(request, goes_on);
  const int64_t look_ns =
      request.apart_ms() > 0 ? request.apart_ms() * (kSecond / 1000) : kUsualLookNs;
  const int64_t patience_ns = look_ns + peers_->options().stacks_patience_ns;
  const auto asker = std::make_shared<Asker>(goes_on);
  std::vector<std::function<Answer()>> asks;
  for (const auto& [peer, of_peer] : hosts.there) {
    PeerAsk ask = AskOf(peer, patience_ns);
    ask.caller.set_role(std::string(RoleName(Role::kOperator)));
    ask.is_action = true;
    v1::LookRequest part = request;
    part.mutable_hosts()->Assign(of_peer.begin(), of_peer.end());
    asks.push_back([peers = peers_, ask, part, asker] {
      return peers->LookAtJob(ask, part, [asker] { return asker->Waits(); });
    });
  }
  // Meanwhile this daemon asks its own agents.
  Answer here = std::vector<v1::HostLook>();
  const auto ask_here = [&] {
    if (hosts.here.empty()) return;
    v1::LookRequest part = request;
    part.mutable_hosts()->Assign(hosts.here.begin(), hosts.here.end());
    here = local_->LookAtJob(part, goes_on);
  };
  std::optional<std::thread> asking = TryThread(ask_here);
  if (!asking.has_value()) ask_here();
  auto answers = AllAtOnce(std::move(asks), After(patience_ns + kSlackNs));
  asker->Leave();
  if (asking.has_value()) asking->join();
  if (!here.ok()) return here;
  for (const std::optional<Answer>& there : answers) {
    if (there.has_value() && absl::IsCancelled(there->status())) return *there;
  }
  std::vector<v1::HostLook> looks = *std::move(here);
  for (size_t i = 0; i < answers.size(); ++i) {
    if (answers[i].has_value() && answers[i]->ok()) {
      for (v1::HostLook& look : **answers[i]) looks.push_back(std::move(look));
      continue;
    }
    for (const std::string& host : hosts.there[i].second) {
      v1::HostLook& look = looks.emplace_back();
      look.set_host(host);
      look.set_error("its daemon did not answer: " + hosts.there[i].first.name);
    }
  }
  return looks;
}

}  // namespace rollcall
