// SPDX-License-Identifier: Apache-2.0
#include "agent/link/fleet_agent.h"

#include <grpcpp/grpcpp.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "agent/processes/this_host.h"
#include "base/durations.h"
#include "base/monotonic_clock.h"
#include "rollcall/v1/agent.pb.h"

namespace rollcall {
namespace {

constexpr int64_t kLookEvery = kSecond;
constexpr int64_t kFindGivenEvery = 10 * kSecond;
constexpr int64_t kFindGivenWait = kSecond;  // for DNS, at the start
constexpr int64_t kAskAgainEvery = kSecond;
// Daemons that contradict each other cost no more than this.
constexpr int64_t kExtraTicksApart = kSecond / 5;
constexpr char kGiven[] = "daemons";

AgentOptions ShareLimits(AgentOptions options) {
  options.answers_quit = false;
  options.stack_allowance = std::make_shared<StackAllowance>(options.max_stacks_per_minute);
  options.look_allowance = std::make_shared<StackAllowance>(LookService::kMostPerMinute);
  options.sample_effects = std::make_shared<SampleEffects>();
  if (options.stack_namer == nullptr) {
    options.stack_namer = std::make_shared<StackNamer>(options.collector.proc_root);
  }
  options.host_facts.allowance =
      std::make_shared<StackAllowance>(options.host_facts.max_per_minute);
  return options;
}

std::vector<std::string> ToVector(const google::protobuf::RepeatedPtrField<std::string>& texts) {
  return {texts.begin(), texts.end()};
}

}  // namespace

// Connects one stream to what all streams share. A daemon of several permits a quick keepalive; one
// that is alone, or older, would end the stream for it. So the agent connects anew when it learns
// better.
class FleetAgent::Watcher : public StreamWatcher {
 public:
  Watcher(std::string address, std::shared_ptr<JobOwners> owners)
      : address_(std::move(address)), owners_(std::move(owners)) {}

  // For the uplink thread, before each try.
  bool ChooseKeepalive() {
    const Wish wish = wish_;
    is_quick_ = wish == Wish::kNone ? owners_->IsInFleet(address_) : wish == Wish::kQuick;
    return is_quick_;
  }

  bool Welcomed(const v1::Welcome& welcome) override {
    const bool wants_quick = !welcome.daemons().empty();
    wish_ = wants_quick ? Wish::kQuick : Wish::kCalm;
    const bool stays = wants_quick == is_quick_;
    owners_->Welcomed(address_, welcome.address(), ToVector(welcome.daemons()), stays,
                      MonotonicNs());
    return stays;
  }

  void Told(const v1::Owners& owners) override {
    if (!owners.daemons().empty()) owners_->SetDaemons(ToVector(owners.daemons()));
    for (const v1::Owners::Job& job : owners.jobs()) {
      owners_->Told(address_, job.tenant(), job.job(), job.daemon());
    }
  }

  void Broken() override { owners_->Broken(address_, MonotonicNs()); }

  bool WantsWhole() override {
    const int64_t now_ns = MonotonicNs();
    if (now_ns - asked_ns_ < kAskAgainEvery) return false;
    if (!owners_->MustAskAgain(address_, now_ns)) return false;
    asked_ns_ = now_ns;
    return true;
  }

 private:
  enum class Wish : uint8_t { kNone, kCalm, kQuick };

  const std::string address_;
  const std::shared_ptr<JobOwners> owners_;
  std::atomic<Wish> wish_{Wish::kNone};  // as the last welcome was
  std::atomic<bool> is_quick_{false};    // the newest connection
  int64_t asked_ns_ = 0;                 // used by the uplink thread only
};

FleetAgent::FleetAgent(FleetAgentOptions options)
    : options_(std::move(options)),
      owners_(std::make_shared<JobOwners>(
          options_.agent.host.empty() ? HostName() : options_.agent.host, options_.given,
          [this] { worker_.Wake(); })),
      agent_options_(ShareLimits(options_.agent)),
      quit_answers_(options_.agent.collector.directory, options_.agent.collector.proc_root,
                    agent_options_.stack_namer) {}

FleetAgent::~FleetAgent() { Stop(); }

void FleetAgent::Start() {
  has_started_ = true;
  worker_.Repeat([this] {
    const int64_t now_ns = MonotonicNs();
    LookForGiven(now_ns);
    const int64_t next_ns = Arrange(now_ns);
    return std::chrono::nanoseconds(next_ns - MonotonicNs());
  });
  if (options_.agent.stacks_on) StartQuitAnswers(&quit_answers_);
}

// Jobs that no stream has had so far, since they began a moment ago, get streams for their last
// state.
void FleetAgent::Stop() {
  if (!std::exchange(has_started_, false)) return;
  threads_.Cancel();
  worker_.Finish(SteadyTime::max());
  owners_->Freeze();
  std::map<std::string, Uplink> uplinks;
  {
    const MutexLock lock(mutex_);
    uplinks.swap(uplinks_);
  }
  std::set<std::string> had;
  for (const auto& [address, uplink] : uplinks) had.insert(address);
  StopAll(std::move(uplinks));
  std::map<std::string, Uplink> late;
  for (const std::string& address : owners_->Taking(MonotonicNs())) {
    if (had.count(address) != 0) continue;
    owners_->Opened(address, MonotonicNs());
    Uplink& uplink = late[address];
    uplink.agent = MakeAgent(address);
    uplink.agent->Start();
  }
  StopAll(std::move(late));
  closing_.clear();  // waits for them
  quit_answers_.Stop();
}

// Stops all of them at once: each may wait for its daemon.
void FleetAgent::StopAll(std::map<std::string, Uplink> uplinks) {
  std::vector<std::future<void>> stopping;
  for (const auto& [address, uplink] : uplinks) {
    Agent* const agent = uplink.agent.get();
    stopping.push_back(std::async(std::launch::async, [agent] { agent->Stop(); }));
  }
  stopping.clear();
  for (const auto& [address, uplink] : uplinks) {
    if (uplink.agent->seen_communicators()) seen_communicators_ = true;
  }
}

bool FleetAgent::IsAlive() const {
  const MutexLock lock(mutex_);
  return std::all_of(uplinks_.begin(), uplinks_.end(),
                     [](const auto& entry) { return entry.second.agent->IsAlive(); });
}

std::vector<std::string> FleetAgent::Connected() const {
  const MutexLock lock(mutex_);
  std::vector<std::string> connected;
  for (const auto& [address, uplink] : uplinks_) {
    if (uplink.agent->is_connected()) connected.push_back(address);
  }
  return connected;
}

// Returns the time of the next look.
int64_t FleetAgent::Arrange(int64_t now_ns) {
  const int64_t expires_ns = owners_->Expire(now_ns);
  const std::set<std::string> needed = owners_->Needed(now_ns);
  OpenMissing(needed, now_ns);
  CloseUnneeded(needed, now_ns);
  const bool has_ticked = TickOnNews();
  return std::min(expires_ns, has_ticked ? now_ns + kLookEvery : ticked_ns_ + kExtraTicksApart);
}

void FleetAgent::LookForGiven(int64_t now_ns) {
  if (!options_.find_given) return;
  if (looked_ns_ == 0 || now_ns - looked_ns_ >= kFindGivenEvery) {
    const int64_t wait_ns = looked_ns_ == 0 ? kFindGivenWait : 0;
    looked_ns_ = now_ns;
    threads_.Run(
        kGiven,
        [find = options_.find_given, found = found_] {
          std::vector<std::string> given = find();
          const MutexLock lock(found->mutex);
          found->given = std::move(given);
        },
        wait_ns);
  }
  std::optional<std::vector<std::string>> given;
  {
    const MutexLock lock(found_->mutex);
    given.swap(found_->given);
  }
  if (given.has_value()) owners_->SetGiven(*std::move(given));
}

void FleetAgent::OpenMissing(const std::set<std::string>& needed, int64_t now_ns) {
  for (const std::string& address : needed) {
    {
      const MutexLock lock(mutex_);
      if (uplinks_.count(address) != 0) continue;
    }
    owners_->Opened(address, now_ns);
    std::unique_ptr<Agent> agent = MakeAgent(address);
    agent->Start();
    const MutexLock lock(mutex_);
    uplinks_[address].agent = std::move(agent);
  }
}

void FleetAgent::CloseUnneeded(const std::set<std::string>& needed, int64_t now_ns) {
  std::map<std::string, Uplink> unneeded;
  {
    const MutexLock lock(mutex_);
    for (auto at = uplinks_.begin(); at != uplinks_.end();) {
      Uplink& uplink = at->second;
      const bool is_needed = needed.count(at->first) != 0;
      if (is_needed) uplink.unneeded_since_ns = 0;
      if (!is_needed && uplink.unneeded_since_ns == 0) uplink.unneeded_since_ns = now_ns;
      if (is_needed || now_ns - uplink.unneeded_since_ns < options_.keep_unneeded_ns) {
        ++at;
        continue;
      }
      unneeded.insert(uplinks_.extract(at++));
    }
  }
  closing_.erase(std::remove_if(closing_.begin(), closing_.end(),
                                [](const std::future<void>& closing) {
                                  return closing.wait_for(std::chrono::seconds(0)) ==
                                         std::future_status::ready;
                                }),
                 closing_.end());
  if (unneeded.empty()) return;
  for (const auto& [address, uplink] : unneeded) owners_->Closed(address);
  closing_.push_back(std::async(std::launch::async, [this, all = std::move(unneeded)]() mutable {
    StopAll(std::move(all));
  }));
}

// A job that has moved is reported at once. A tick that finds nothing new is small. False if it is
// too soon for the next one.
bool FleetAgent::TickOnNews() {
  const uint64_t version = owners_->version();
  const int64_t now_ns = MonotonicNs();
  if (version == ticked_version_) return true;
  if (now_ns - ticked_ns_ < kExtraTicksApart) return false;
  ticked_version_ = version;
  ticked_ns_ = now_ns;
  const MutexLock lock(mutex_);
  for (const auto& [address, uplink] : uplinks_) uplink.agent->TickSoon();
  return true;
}

std::unique_ptr<Agent> FleetAgent::MakeAgent(const std::string& address) {
  const DaemonWay way = options_.way_to(address);
  const auto watcher = std::make_shared<Watcher>(address, owners_);
  AgentOptions options = agent_options_;
  options.watcher = watcher;
  options.explain = way.explain;
  options.still_trusts = way.still_trusts;
  options.collector.takes = [owners = owners_, address](const std::string& tenant,
                                                        const std::string& job) {
    return owners->Takes(address, tenant, job, MonotonicNs());
  };
  return std::make_unique<Agent>(std::move(options), [watcher, connect = way.connect] {
    return connect(watcher->ChooseKeepalive());
  });
}

}  // namespace rollcall
