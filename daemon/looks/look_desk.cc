// SPDX-License-Identifier: Apache-2.0
#include "daemon/looks/look_desk.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/cut_text.h"
#include "base/durations.h"
#include "daemon/agents/stack_limits.h"
#include "daemon/looks/judge.h"
#include "daemon/looks/unanswered.h"
#include "daemon/model/client_limits.h"
#include "proto/look_limits.h"
#include "rollcall/v1/agent.pb.h"

namespace rollcall {
namespace {

// Requests of the stack desk count from 1.
constexpr uint64_t kOfLooks = uint64_t{1} << 63;
constexpr int64_t kUsualApartNs = 6 * kSecond;
constexpr int64_t kShortestApartNs = 2 * kSecond;
constexpr int64_t kLongestApartNs = 60 * kSecond;
// The time to take stacks, beyond the time between them.
constexpr int64_t kBesidesNs = 15 * kSecond;
// For the facts about a host, once its stacks are there. An agent of an earlier release gives none.
constexpr int64_t kFactsBesidesNs = 2 * kSecond;
// For all questions to NCCL's RAS of a look, and for one: longer than an agent takes.
constexpr int64_t kAllRasNs = 30 * kSecond;
constexpr int64_t kOneRasNs = 11 * kSecond;
constexpr int64_t kBetweenCountsNs = 3 * kSecond;
constexpr size_t kMostRasOfHost = 8;
constexpr std::chrono::milliseconds kWakeEvery{100};
constexpr size_t kLongestPath = 1024, kLongestLine = 512;  // of a log
constexpr char kNoAnswer[] = "its agent did not answer in time";
constexpr char kGivenUp[] = "the caller no longer waits for the look";
constexpr char kNotConnected[] = "its agent is not connected";
constexpr char kFactsLeftOut[] = "left out, because what the hosts of the job show is too large";
constexpr char kRasLate[] =
    "the agent of its host did not answer in time, or is of an earlier release";

// Equal for callers who see the same jobs.
std::string ScopeOf(const Tenants& tenants) {
  return tenants.AreAll() ? "*" : absl::StrJoin(tenants.names(), ",");
}

struct Asker {
  std::string scope;  // ScopeOf()
  std::string who;    // equal names of two scopes are two callers
};

using Ref = std::pair<int32_t, uint64_t>;  // pid and start of a process

Ref RefOf(const v1::ProcessLook& rank) {
  return {rank.process().pid(), rank.process().start_time()};
}

// What the rules need of it. The agent's clock is another one.
v1::Evidence LimitedEvidence(const v1::Evidence& told, int64_t now_ns) {
  v1::Evidence evidence;
  evidence.set_liveness(told.liveness());
  evidence.set_exit_code(-1);
  evidence.set_state(CutText(told.state(), 1));
  evidence.set_traced(told.traced());
  evidence.set_wait_channel(CutText(told.wait_channel(), limits::kName));
  evidence.set_cpu_seconds(std::clamp(told.cpu_seconds(), 0.0, limits::kCpuSecondsOfProcess));
  if (told.liveness() != v1::Evidence::ALIVE) evidence.set_ended_ns(now_ns);
  return evidence;
}

// Of these ranks. The agent may be a stranger's.
v1::LogEnd LimitedLog(const v1::LogEnd& told, const std::map<Ref, int>& ranks) {
  v1::LogEnd log;
  log.set_path(CutText(told.path(), kLongestPath));
  log.set_quiet_seconds(std::isfinite(told.quiet_seconds()) ? std::max(told.quiet_seconds(), 0.0)
                                                            : 0);
  const std::set<int32_t> pids(told.pids().begin(), told.pids().end());
  for (const auto& [ref, at] : ranks) {
    if (pids.count(ref.first) > 0) log.add_pids(ref.first);
  }
  for (int i = 0; i < std::min(told.lines_size(), kMostLinesOfLog); ++i)
    log.add_lines(CutText(told.lines(i), kLongestLine));
  return log;
}

v1::RasAnswer LimitedRas(const v1::RasAnswer& told) {
  v1::RasAnswer answer;
  answer.set_address(CutText(told.address(), limits::kName));
  answer.set_text(CutText(told.text(), kMostRasText));
  answer.set_error(CutText(told.error(), kLongestLine));
  return answer;
}

v1::RasAnswer WithoutRas(const std::string& why) {
  v1::RasAnswer answer;
  answer.set_error(why);
  return answer;
}

void AddRefs(const std::map<Ref, int>& ranks,
             google::protobuf::RepeatedPtrField<v1::ProcessRef>* to) {
  for (const auto& [ref, at] : ranks) {
    if (to->size() == LookDesk::kMostProcessesOfFacts) return;
    v1::ProcessRef* process = to->Add();
    process->set_pid(ref.first);
    process->set_start_time(ref.second);
  }
}

}  // namespace

// One look. Guarded by the desk's mutex.
class LookDesk::Running {
 public:
  // The part of one agent.
  struct Part {
    std::string agent;
    uint64_t number = 0;
    v1::HostLook look;
    std::map<Ref, int> at;  // in the look, of those that are sampled
    std::set<Ref> open;     // whose replies have not come
    std::set<Ref> answered;
    size_t rounds = 0;  // that have begun
    int64_t begun_ns = 0;
    bool is_gone = false;
    bool awaits_facts = true, awaits_ranks = true;
    uint64_t ras_number = 0;  // of the question to RAS that is open; 0 if none is
    std::optional<v1::RasAnswer> ras;
    int64_t answered_ns = 0;  // the last stack
    size_t bytes = 0;         // of all that it shows
  };

  Running(ListedJob job, Asker asker, const Sizes& most, int64_t apart_ns, int64_t now_ns)
      : asker_(std::move(asker)), most_(most), apart_ns_(apart_ns), began_ns_(now_ns) {
    for (ListedRanks& host : job.hosts) {
      if (host.members == 0) continue;
      Part part;
      part.agent = std::move(host.agent);
      part.look = std::move(host.look);
      for (size_t i = 0; i < host.members; ++i) {
        const int at = static_cast<int>(i);
        part.at[RefOf(part.look.processes(at))] = at;
      }
      parts_.push_back(std::move(part));
    }
  }

  const Asker& asker() const { return asker_; }
  std::vector<Part>& parts() { return parts_; }
  int64_t deadline_ns() const { return began_ns_ + apart_ns_ + kBesidesNs; }

  bool IsDue(const Part& part, int64_t now_ns) const {
    if (part.is_gone || !part.open.empty() || part.rounds == kSamples) return false;
    const auto rounds = static_cast<int64_t>(part.rounds);
    return now_ns >= part.begun_ns + apart_ns_ * rounds / static_cast<int64_t>(kSamples - 1);
  }

  bool IsDone(int64_t now_ns) const {
    return std::all_of(parts_.begin(), parts_.end(), [now_ns](const Part& part) {
      const bool has_stacks = part.open.empty() && part.rounds == kSamples;
      const bool has_all =
          (!part.awaits_facts && !part.awaits_ranks) || now_ns - part.answered_ns > kFactsBesidesNs;
      return part.is_gone || (has_stacks && has_all);
    });
  }

  // For the facts about the host of the part.
  static v1::DaemonMessage AskForFacts(const Part& part) {
    v1::DaemonMessage message;
    v1::GatherHostFacts* gather = message.mutable_gather_host_facts();
    gather->set_request(part.number);
    AddRefs(part.at, gather->mutable_processes());
    return message;
  }

  static v1::DaemonMessage AskForLogs(const Part& part) {
    v1::DaemonMessage message;
    message.mutable_look_at_ranks()->set_request(part.number);
    AddRefs(part.at, message.mutable_look_at_ranks()->mutable_processes());
    return message;
  }

  static v1::DaemonMessage AskForRas(const RasPlace& place, const Part& part) {
    v1::DaemonMessage message;
    v1::LookAtRanks* asked = message.mutable_look_at_ranks();
    asked->set_request(part.ras_number);
    asked->set_ask_ras(true);
    asked->set_changes_communicators(place.changes_communicators);
    const std::set<pid_t> pids(place.pids.begin(), place.pids.end());
    std::map<Ref, int> of_nccl;
    for (const auto& [ref, at] : part.at) {
      if (pids.count(ref.first) > 0) of_nccl[ref] = at;
    }
    AddRefs(of_nccl, asked->mutable_processes());
    return message;
  }

  void AddRanks(const v1::LookAtRanksReply& reply, Part* part) {
    if (!part->awaits_ranks) return;
    part->awaits_ranks = false;
    for (const v1::LogEnd& told : reply.logs()) {
      v1::LogEnd log = LimitedLog(told, part->at);
      if (log.pids().empty() || !HasRoom(log.ByteSizeLong(), part)) continue;
      if (part->look.logs_size() == kMostLogsOfLook) break;
      *part->look.add_logs() = std::move(log);
    }
    const std::set<int32_t> of_nccl(reply.of_nccl().begin(), reply.of_nccl().end());
    for (const auto& [ref, at] : part->at) {
      if (of_nccl.count(ref.first) > 0) part->look.mutable_processes(at)->add_libraries("nccl");
    }
  }

  void AddRas(const v1::RasAnswer& told, Part* part) {
    part->ras_number = 0;
    part->ras = LimitedRas(told);
    if (!HasRoom(part->ras->ByteSizeLong(), part)) part->ras = WithoutRas(kFactsLeftOut);
  }

  void AddFacts(const v1::HostFacts& facts, Part* part) {
    if (!part->awaits_facts) return;
    part->awaits_facts = false;
    if (!facts.error().empty()) return;
    const size_t bytes = facts.ByteSizeLong();
    if (bytes <= most_.facts_of_host && HasRoom(bytes, part)) {
      *part->look.mutable_host_facts() = facts;
    } else {
      part->look.mutable_host_facts()->set_error(kFactsLeftOut);
    }
  }

  // Notes that the next round has begun, and makes its message.
  static v1::DaemonMessage BeginRound(int64_t now_ns, Part* part) {
    v1::DaemonMessage message;
    v1::TakeStacks* take = message.mutable_take_stacks();
    take->set_request(part->number);
    take->set_children(true);
    for (const auto& [ref, at] : part->at) {
      part->open.insert(ref);
      v1::ProcessRef* wanted = take->add_processes();
      wanted->set_pid(ref.first);
      wanted->set_start_time(ref.second);
    }
    if (part->rounds++ == 0) part->begun_ns = now_ns;
    return message;
  }

  // The reply of the part's agent.
  void Add(const v1::StackReply& reply, int64_t now_ns, Part* part) {
    const Ref ref = {reply.stack().pid(), reply.start_time()};
    if (part->open.erase(ref) == 0) return;
    part->answered.insert(ref);
    part->answered_ns = now_ns;
    v1::ProcessLook* rank = part->look.mutable_processes(part->at.at(ref));
    if (reply.has_evidence()) {
      *rank->mutable_process()->mutable_evidence() = LimitedEvidence(reply.evidence(), now_ns);
    }
    v1::StackSample sample;
    sample.set_taken_ns(now_ns);
    *sample.mutable_stack() = reply.stack();
    LimitStack(sample.mutable_stack());
    if (!HasRoom(sample.ByteSizeLong(), part)) {
      rank->set_unseen("its stacks were left out, because those of the whole job are too large");
      return;
    }
    sample.mutable_stack()->set_host(part->look.host());
    *rank->add_samples() = std::move(sample);
  }

 private:
  // Counts so many bytes of the part's host if they are within the limits.
  bool HasRoom(size_t bytes, Part* part) {
    if (part->bytes + bytes > most_.host || bytes_ + bytes > most_.all) return false;
    part->bytes += bytes;
    bytes_ += bytes;
    return true;
  }

  const Asker asker_;
  const Sizes most_;
  const int64_t apart_ns_, began_ns_;
  std::vector<Part> parts_;
  size_t bytes_ = 0;
};

absl::StatusOr<std::vector<v1::HostLook>> LookDesk::Look(const v1::LookRequest& request,
                                                         const Tenants& tenants,
                                                         const std::string& who,
                                                         const std::function<bool()>& goes_on) {
  absl::StatusOr<ListedJob> job = book_->Find(request.job(), request.tenant(), tenants);
  if (!job.ok()) return job.status();
  absl::StatusOr<std::shared_ptr<Running>> look = Begin(request, tenants, who, *std::move(job));
  if (!look.ok()) return look.status();
  absl::Status status = AwaitAll(look->get(), goes_on);
  std::vector<v1::HostLook> looks = Finish(look->get());
  const bool asks_ras = !request.without_ras() && request.hosts().empty();
  if (status.ok() && asks_ras) {
    AskRasOf(look->get(), goes_on, &looks);
    if (!goes_on()) status = absl::CancelledError(kGivenUp);
  }
  Forget(look->get());
  if (!status.ok()) return status;
  return looks;
}

absl::StatusOr<std::shared_ptr<LookDesk::Running>> LookDesk::Begin(const v1::LookRequest& request,
                                                                   const Tenants& tenants,
                                                                   const std::string& who,
                                                                   ListedJob job) {
  const int64_t apart_ns =
      request.apart_ms() == 0 ? kUsualApartNs : request.apart_ms() * (kSecond / 1000);
  if (apart_ns < kShortestApartNs || apart_ns > kLongestApartNs) {
    return absl::InvalidArgumentError("the time between samples is from 2 s to 60 s");
  }
  if (!request.hosts().empty()) {
    const std::set<std::string> wanted(request.hosts().begin(), request.hosts().end());
    job.hosts.erase(std::remove_if(job.hosts.begin(), job.hosts.end(),
                                   [&wanted](const ListedRanks& host) {
                                     return wanted.count(host.look.host()) == 0;
                                   }),
                    job.hosts.end());
  }
  auto look = std::make_shared<Running>(std::move(job), Asker{ScopeOf(tenants), who}, most_,
                                        apart_ns, now_ns_());
  const MutexLock lock(mutex_);
  if (is_closed_) return absl::CancelledError("the daemon stops");
  size_t of_tenants = 0, of_caller = 0;
  for (const std::shared_ptr<Running>& other : running_) {
    if (other->asker().scope != look->asker().scope) continue;
    ++of_tenants;
    if (other->asker().who == look->asker().who) ++of_caller;
  }
  if (of_caller >= kMostOfCaller) {
    return absl::ResourceExhaustedError(
        absl::StrCat(kMostOfCaller, " looks of yours are under way: try again in some seconds"));
  }
  if (running_.size() >= kMostAtOnce || of_tenants >= kMostOfTenants) {
    return absl::ResourceExhaustedError(
        "other people are looking at jobs: try again in some seconds");
  }
  for (Running::Part& part : look->parts()) part.number = kOfLooks | ++last_number_;
  running_.push_back(look);
  return look;
}

void LookDesk::SendDue(Running* look) {
  for (Running::Part& part : look->parts()) {
    v1::DaemonMessage message;
    bool is_first = false;
    {
      const MutexLock lock(mutex_);
      const int64_t now_ns = now_ns_();
      if (!look->IsDue(part, now_ns)) continue;
      is_first = part.rounds == 0;
      message = Running::BeginRound(now_ns, &part);
    }
    const bool is_sent = send_(part.agent, message);
    if (is_sent && is_first) {
      send_(part.agent, Running::AskForFacts(part));
      send_(part.agent, Running::AskForLogs(part));
    }
    if (is_sent) continue;
    const MutexLock lock(mutex_);
    part.is_gone = true;
  }
}

absl::Status LookDesk::AwaitAll(Running* look, const std::function<bool()>& goes_on) {
  while (true) {
    SendDue(look);
    if (!goes_on()) return absl::CancelledError(kGivenUp);
    const MutexLock lock(mutex_);
    if (is_closed_) return absl::CancelledError("the daemon stops");
    const int64_t now_ns = now_ns_();
    if (look->IsDone(now_ns) || now_ns > look->deadline_ns()) return absl::OkStatus();
    changed_.WaitUntil(mutex_, std::chrono::steady_clock::now() + kWakeEvery);
  }
}

// Returns true once `is_done`, which is asked under the mutex; false if the time is over or there
// is no more reason to wait.
bool LookDesk::AwaitUntil(int64_t until_ns, const std::function<bool()>& goes_on,
                          const std::function<bool()>& is_done) {
  while (goes_on()) {
    const MutexLock lock(mutex_);
    if (is_done()) return true;
    if (is_closed_ || now_ns_() > until_ns) return false;
    changed_.WaitUntil(mutex_, std::chrono::steady_clock::now() + kWakeEvery);
  }
  return false;
}

// Keeps the answers in the looks: who judges them asks no one again.
void LookDesk::AskRasOf(Running* look, const std::function<bool()>& goes_on,
                        std::vector<v1::HostLook>* looks) {
  const int64_t until_ns = now_ns_() + kAllRasNs;
  std::vector<LookedAtJob> jobs = JudgeLooks(*looks);
  const auto ask = [&](const RasPlace& place) {
    v1::HostLook& host = (*looks)[place.look];
    const bool may_ask = now_ns_() < until_ns && host.ras_size() < static_cast<int>(kMostRasOfHost);
    v1::RasAnswer answer = may_ask ? AskAgent(look, place, goes_on) : WithoutRas(kRasLate);
    answer.mutable_asked_for()->Assign(place.pids.begin(), place.pids.end());
    *host.add_ras() = answer;
    return answer;
  };
  AskRasOfJobs(*looks, &jobs, ask,
               [&] { AwaitUntil(now_ns_() + kBetweenCountsNs, goes_on, [] { return false; }); });
}

v1::RasAnswer LookDesk::AskAgent(Running* look, const RasPlace& place,
                                 const std::function<bool()>& goes_on) {
  Running::Part& part = look->parts()[place.look];
  v1::DaemonMessage message;
  {
    const MutexLock lock(mutex_);
    part.ras.reset();
    part.ras_number = kOfLooks | ++last_number_;
    message = Running::AskForRas(place, part);
  }
  if (!send_(part.agent, message)) return WithoutRas(kNotConnected);
  if (!AwaitUntil(now_ns_() + kOneRasNs, goes_on, [&part] { return part.ras.has_value(); }))
    return WithoutRas(kRasLate);
  const MutexLock lock(mutex_);
  return *std::exchange(part.ras, std::nullopt);
}

// All looks end now: one clock, the daemon's, has timed their samples.
std::vector<v1::HostLook> LookDesk::Finish(Running* look) {
  std::vector<v1::HostLook> looks;
  const MutexLock lock(mutex_);
  const int64_t now_ns = now_ns_();
  for (Running::Part& part : look->parts()) {
    part.number = 0;  // what comes later is too late
    v1::HostLook& host = looks.emplace_back();
    if (part.answered.empty()) {
      host.set_host(part.look.host());
      host.set_error(part.is_gone ? kNotConnected : kNoAnswer);
      continue;
    }
    host = std::move(part.look);
    host.set_rollcall_version(ROLLCALL_VERSION);
    host.set_begun_ns(part.begun_ns);
    host.set_ended_ns(now_ns);
    for (const auto& [ref, at] : part.at) {
      v1::ProcessLook* rank = host.mutable_processes(at);
      if (!rank->unseen().empty()) continue;
      rank->set_unseen(WhyUnseen(*rank, rank->process().has_evidence()));
    }
  }
  return looks;
}

void LookDesk::Forget(const Running* look) {
  const MutexLock lock(mutex_);
  running_.erase(std::remove_if(running_.begin(), running_.end(),
                                [look](const auto& one) { return one.get() == look; }),
                 running_.end());
}

bool LookDesk::OnStackReply(const AgentName& agent, const v1::StackReply& reply) {
  if ((reply.request() & kOfLooks) == 0) return false;
  const MutexLock lock(mutex_);
  for (const std::shared_ptr<Running>& look : running_) {
    for (Running::Part& part : look->parts()) {
      if (part.number != reply.request() || part.agent != agent.id) continue;
      look->Add(reply, now_ns_(), &part);
      changed_.NotifyAll();
    }
  }
  return true;
}

bool LookDesk::OnHostFacts(const AgentName& agent, const v1::HostFactsReply& reply) {
  if ((reply.request() & kOfLooks) == 0) return false;
  const MutexLock lock(mutex_);
  for (const std::shared_ptr<Running>& look : running_) {
    for (Running::Part& part : look->parts()) {
      if (part.number != reply.request() || part.agent != agent.id) continue;
      look->AddFacts(reply.facts(), &part);
      changed_.NotifyAll();
    }
  }
  return true;
}

void LookDesk::OnRanks(const AgentName& agent, const v1::LookAtRanksReply& reply) {
  if (reply.request() == 0) return;
  const MutexLock lock(mutex_);
  for (const std::shared_ptr<Running>& look : running_) {
    for (Running::Part& part : look->parts()) {
      if (part.agent != agent.id) continue;
      if (part.number == reply.request()) look->AddRanks(reply, &part);
      if (part.ras_number == reply.request()) look->AddRas(reply.ras(), &part);
      changed_.NotifyAll();
    }
  }
}

void LookDesk::Close() {
  const MutexLock lock(mutex_);
  is_closed_ = true;
  changed_.NotifyAll();
}

}  // namespace rollcall
