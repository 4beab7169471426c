// SPDX-License-Identifier: Apache-2.0
#include "agent/link/host_facts_service.h"

#include <spdlog/spdlog.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "agent/collector/redact_update.h"
#include "agent/processes/payer.h"
#include "base/monotonic_clock.h"

namespace rollcall {
namespace {

// Longer than all deadlines of the probes. Only the start of a program can block for longer, on a
// disk that does not answer.
constexpr int64_t kTimeout = 60'000'000'000;
constexpr int64_t kProcTimeout = 1'000'000'000;  // for reading a process in /proc

v1::HostFacts ToProto(const GatheredFacts& gathered) {
  v1::HostFacts facts;
  for (const Fact& fact : gathered.facts) {
    v1::HostFact* added = facts.add_facts();
    added->set_kind(InfoOf(fact.kind).text);
    added->set_subject(fact.subject);
    added->set_value(static_cast<double>(fact.value));
    added->set_text(fact.text);
    added->set_age_seconds(static_cast<double>(fact.age_ns) / 1e9);
    added->set_pid(fact.pid);
  }
  for (const auto& [name, result] : gathered.probes) {
    v1::HostProbe* added = facts.add_probes();
    added->set_name(name);
    added->set_outcome(ProbeOutcomeName(result.outcome));
    added->set_note(result.note);
  }
  return facts;
}

}  // namespace

HostFactsService::HostFactsService(HostFactsOptions options, IsReported is_reported)
    : options_(std::move(options)),
      is_reported_(std::move(is_reported)),
      allowance_(options_.allowance != nullptr
                     ? options_.allowance
                     : std::make_shared<StackAllowance>(options_.max_per_minute)) {}

v1::HostFacts HostFactsService::Take(const std::vector<ProcessId>& processes) {
  std::vector<pid_t> pids;
  for (const ProcessId process : processes) {
    if (pids.size() < kMostFactProcesses && is_reported_(process)) pids.push_back(process.pid);
  }
  if (pids.empty()) {
    return Refuse("the agent of this host watches none of these processes: it did not look");
  }
  if (!options_.is_on) return Refuse("the agent of this host runs with --host-facts=off");
  const auto user = threads_.Get<Payer>(
      "user", [root = options_.proc_root, pid = pids.front()] { return ReadPayer(root, pid); },
      kProcTimeout);
  if (!allowance_->Take(user.value_or(Payer()), MonotonicNs())) {
    return Refuse(absl::StrCat("the agent of this host looks at most ", options_.max_per_minute,
                               " times a minute"));
  }
  return Gather(std::move(pids));
}

v1::HostFacts HostFactsService::Gather(std::vector<pid_t> pids) {
  if (gatherer_ == nullptr) gatherer_ = std::make_shared<Gatherer>(options_.gather);
  const auto gathered = threads_.Get<GatheredFacts>(
      "host facts",
      [gatherer = gatherer_, pids = std::move(pids)] { return gatherer->Gather(pids); }, kTimeout);
  if (!gathered.has_value()) {
    gatherer_ = nullptr;  // the blocked thread still uses it
    v1::HostFacts none;
    none.set_error("the programs that look at this host do not start, or the agent stops");
    return none;
  }
  v1::HostFacts facts = ToProto(*gathered);
  Redact(*options_.redactor, &facts);
  return facts;
}

v1::HostFacts HostFactsService::Refuse(const std::string& why) {
  v1::HostFacts none;
  none.set_error(why);
  const MutexLock lock(mutex_);
  if (refusals_.Take(MonotonicNs()).has_value()) {
    spdlog::warn(
        "refused to send facts about this host to the daemon; refusals since the start: {}; the last: {}",
        refusals_.total(), why);
  }
  return none;
}

}  // namespace rollcall
