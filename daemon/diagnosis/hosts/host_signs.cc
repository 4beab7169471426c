// SPDX-License-Identifier: Apache-2.0
#include "daemon/diagnosis/hosts/host_signs.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/match.h"
#include "base/durations.h"

namespace rollcall {
namespace {

// A message that is older explains no wait.
constexpr int64_t kBeforeWaitNs = 600 * kSecond;
// `kMore`: others with a tenth of the value are like it. More of them than this share: it is usual.
constexpr int64_t kTenth = 10;
constexpr size_t kShare = 4;

constexpr char kGpuPrefix[] = "GPU ";

// Returns true for those that are not faults: the driver ends what belonged to a process that has
// ended (45), corrected memory (63, 92, 94: one process only), a page that the driver will leave
// out.
bool IsHarmlessXid(int64_t number) {
  constexpr int64_t kHarmless[] = {43, 45, 63, 92};
  return std::find(std::begin(kHarmless), std::end(kHarmless), number) != std::end(kHarmless);
}

using HostEntry = std::pair<const std::string, HostFacts>;

// The hosts with a look at them during the wait.
std::vector<const HostEntry*> LookedAt(const JobState& job, int64_t since_ns) {
  std::vector<const HostEntry*> hosts;
  for (const auto& entry : job.host_facts) {
    if (entry.second.error.empty() && entry.second.gathered_ns >= since_ns) hosts.push_back(&entry);
  }
  return hosts;
}

// Returns the processes of the job on each host.
std::map<std::string, std::vector<int32_t>> ProcessesByHost(const JobState& job) {
  std::map<std::string, std::vector<int32_t>> by_host;
  for (size_t i = 0; i < job.processes.size(); ++i) {
    const std::string& host = job.processes[i].host;
    if (job.host_facts.contains(host)) by_host[host].push_back(static_cast<int32_t>(i));
  }
  return by_host;
}

// Values of one kind, to compare one of them with the others.
class Peers {
 public:
  void Add(int64_t value) { values_.push_back(value); }
  void Sort() { std::sort(values_.begin(), values_.end()); }

  // Below `percent` of what most others have.
  bool IsLess(int64_t value, int64_t percent) const {
    const auto more = std::partition_point(values_.begin(), values_.end(), [&](int64_t other) {
      return other * percent <= value * 100;
    });
    return 2 * static_cast<size_t>(values_.end() - more) > values_.size() - 1;
  }
  // Few of `all` have a tenth of the value.
  bool IsMore(int64_t value, size_t all) const {
    const auto first = std::partition_point(values_.begin(), values_.end(),
                                            [&](int64_t other) { return other * kTenth < value; });
    const auto like = static_cast<size_t>(values_.end() - first);
    return like == 1 || like * kShare <= all;
  }

 private:
  std::vector<int64_t> values_;
};

class Finder {
 public:
  Finder(const JobState& job, int64_t since_ns)
      : job_(job), since_ns_(since_ns), hosts_(LookedAt(job, since_ns)) {}

  HostSigns Find() {
    HostSigns found;
    found.since_ns = since_ns_;
    found.hosts = hosts_.size();
    found.looked.assign(kHostFactKinds + 1, 0);
    if (hosts_.empty()) return found;
    Count(&found);
    const auto processes = ProcessesByHost(job_);
    for (const HostEntry* host : hosts_) {
      const auto own = processes.find(host->first);
      if (own == processes.end()) continue;
      for (const HostFact& fact : host->second.facts) AddIfSign(*host, fact, own->second, &found);
    }
    std::stable_sort(found.signs.begin(), found.signs.end(),
                     [](const auto& a, const auto& b) { return Order(a) < Order(b); });
    return found;
  }

 private:
  using Key = std::pair<HostFactKind, std::string>;

  // The gravest first, then what has a time, the earliest first.
  static std::tuple<int, bool, int64_t> Order(const HostSign& sign) {
    return {-static_cast<int>(sign.rule->weight), sign.fact->at_ns == 0, sign.fact->at_ns};
  }

  static Key PeersKey(const HostFact& fact, const HostFactRule& rule) {
    return {fact.kind, rule.peers == HostPeers::kSubject ? fact.subject : ""};
  }

  void Count(HostSigns* found) {
    for (const HostEntry* host : hosts_) {
      for (size_t i = 0; i < kHostFactKinds; ++i) {
        const char* probe = kHostFactTable[i].probe;
        found->looked[i] += *probe == '\0' || rollcall::HasLooked(host->second, probe);
      }
      for (const HostFact& fact : host->second.facts) {
        const HostFactRule& rule = RuleOf(fact.kind);
        gpus_ += fact.kind == HostFactKind::kGpu;
        ports_ += fact.kind == HostFactKind::kIbPort;
        const bool compares = rule.rule == HostSignRule::kMore || rule.rule == HostSignRule::kLess;
        if (compares) peers_[PeersKey(fact, rule)].Add(fact.value);
      }
    }
    for (auto& [key, peers] : peers_) peers.Sort();
  }

  // The number of hosts, GPUs or ports with which the fact compares, itself included.
  size_t All(const HostFactRule& rule, const HostSigns& found) const {
    if (rule.peers == HostPeers::kGpus) return gpus_;
    if (rule.peers == HostPeers::kPorts) return ports_;
    return found.looked[static_cast<size_t>(rule.kind)];
  }

  bool IsSign(const HostFact& fact, const HostFactRule& rule, const HostSigns& found) const {
    if (fact.at_ns != 0 && fact.at_ns < since_ns_ - kBeforeWaitNs) return false;
    if (fact.kind == HostFactKind::kXid && IsHarmlessXid(fact.value)) return false;
    switch (rule.rule) {
      case HostSignRule::kAlways:
        return true;
      case HostSignRule::kMore:
        return fact.value >= rule.least && IsMore(fact, rule, All(rule, found));
      case HostSignRule::kLess:
        return peers_.at(PeersKey(fact, rule)).IsLess(fact.value, rule.least);
      case HostSignRule::kNever:
        break;
    }
    return false;
  }

  // With nothing to compare, only what may hold a rank up is a sign.
  bool IsMore(const HostFact& fact, const HostFactRule& rule, size_t all) const {
    if (all <= 1) return rule.weight != HostSignWeight::kContext;
    return peers_.at(PeersKey(fact, rule)).IsMore(fact.value, all);
  }

  void AddIfSign(const HostEntry& host, const HostFact& fact, const std::vector<int32_t>& own,
                 HostSigns* found) const {
    const HostFactRule& rule = RuleOf(fact.kind);
    if (!IsSign(fact, rule, *found)) return;
    HostSign sign;
    sign.host = &host.first;
    sign.fact = &fact;
    sign.rule = &rule;
    if (!SetProcesses(host.second, own, &sign)) return;
    found->signs.push_back(std::move(sign));
  }

  // False if it concerns another job.
  bool SetProcesses(const HostFacts& host, const std::vector<int32_t>& own, HostSign* sign) const {
    const HostFact& fact = *sign->fact;
    sign->processes = own;
    if (absl::StartsWith(fact.subject, kGpuPrefix)) return SetProcessesOfGpu(host, own, sign);
    if (fact.pid != 0) Name({fact.pid}, own, sign);
    // Facts about the processes of others do not come here (own_host_facts.h).
    return true;
  }

  bool SetProcessesOfGpu(const HostFacts& host, const std::vector<int32_t>& own,
                         HostSign* sign) const {
    const GpuUse use = UseOf(host, sign->fact->subject);
    std::set<int32_t> pids = use.pids;
    if (sign->fact->pid != 0) pids.insert(sign->fact->pid);
    for (const int32_t index : own) {
      const Process& process = job_.processes[static_cast<size_t>(index)];
      if (!use.uuid.empty() && process.gpu_uuid == use.uuid) pids.insert(process.pid);
      // The processes of a GPU that is gone are unknown: they are those that use no other one.
      const bool is_left = use.is_gone && use.pids.empty() && !use.all_pids.empty() &&
                           process.has_segment && use.all_pids.count(process.pid) == 0;
      if (is_left) pids.insert(process.pid);
    }
    if (Name(pids, own, sign)) return true;
    // Others use it, or no process does while the job's processes use other GPUs.
    return use.pids.empty() && (use.is_gone || use.all_pids.empty());
  }

  // Narrows the sign to the processes with these pids. False if the job has none of them.
  bool Name(const std::set<int32_t>& pids, const std::vector<int32_t>& own, HostSign* sign) const {
    std::vector<int32_t> named;
    for (const int32_t index : own) {
      if (pids.count(job_.processes[static_cast<size_t>(index)].pid) != 0) named.push_back(index);
    }
    if (named.empty()) return false;
    sign->processes = std::move(named);
    sign->names_processes = true;
    return true;
  }

  // The processes that use a GPU, as NVML reports.
  struct GpuUse {
    std::set<int32_t> pids, all_pids;  // of this GPU, and of all GPUs of the host
    std::string uuid;
    bool is_gone = true;  // NVML does not reach it
  };
  static GpuUse UseOf(const HostFacts& host, const std::string& gpu) {
    GpuUse use;
    bool is_lost = false;
    for (const HostFact& fact : host.facts) {
      const bool is_it = fact.subject == gpu;
      if (fact.kind == HostFactKind::kGpuProcess) {
        use.all_pids.insert(fact.pid);
        if (is_it) use.pids.insert(fact.pid);
      }
      if (fact.kind == HostFactKind::kGpu && is_it) use.uuid = fact.text;
      is_lost = is_lost || (fact.kind == HostFactKind::kGpuLost && is_it);
    }
    use.is_gone = use.uuid.empty() || is_lost;
    return use;
  }

  const JobState& job_;
  const int64_t since_ns_;
  const std::vector<const HostEntry*> hosts_;
  std::map<Key, Peers> peers_;
  size_t gpus_ = 0, ports_ = 0;
};

}  // namespace

HostSigns FindHostSigns(const JobState& job, int64_t since_ns) {
  return Finder(job, since_ns).Find();
}

}  // namespace rollcall
