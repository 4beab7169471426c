// SPDX-License-Identifier: Apache-2.0
#include "agent/link/look_service.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "agent/collector/mapped_libraries.h"
#include "agent/logs/logs.h"
#include "agent/processes/payer.h"
#include "agent/processes/proc_stat.h"
#include "agent/processes/stacks_switch.h"
#include "base/durations.h"
#include "base/monotonic_clock.h"

namespace rollcall {
namespace {

constexpr int64_t kOneReadNs = kSecond / 2;
constexpr int64_t kLogsPatienceNs = 2 * kSecond;       // for all of a request
constexpr int64_t kLibrariesPatienceNs = 2 * kSecond;  // likewise
constexpr int64_t kToReadProcNs = 2 * kSecond;         // beside the question to RAS
constexpr char kInsistence[] =
    "rollcall diagnose --ras=always, on its host or with --hosts, asks all the same";

// May block. False also if the process is not known to permit it.
bool PermitsLook(const std::string& proc_root, ProcessId process) {
  const auto stat = ReadProcStat(proc_root, process.pid);
  if (!stat.ok() || stat->start_time != process.start_time) return false;
  bool only_outside = false;
  return WhyNoStacks(proc_root, process.pid, &only_outside).empty() && !only_outside;
}

bool UsesNccl(const std::string& proc_root, ProcessId process) {
  if (!PermitsLook(proc_root, process)) return false;
  const std::vector<std::string> libraries = ReadLibraries(proc_root, process.pid);
  return std::find(libraries.begin(), libraries.end(), "nccl") != libraries.end();
}

v1::RasAnswer NotAsked(const std::string& why) {
  v1::RasAnswer answer;
  answer.set_error(why);
  return answer;
}

}  // namespace

LookService::LookService(LookServiceOptions options, IsListed is_listed)
    : options_(std::move(options)),
      is_listed_(std::move(is_listed)),
      allowance_(options_.allowance != nullptr ? options_.allowance
                                               : std::make_shared<StackAllowance>(kMostPerMinute)),
      threads_(options_.least_read_ns) {}

v1::LookAtRanksReply LookService::Look(const v1::LookAtRanks& asked,
                                       const std::vector<ProcessId>& processes) {
  v1::LookAtRanksReply reply;
  reply.set_request(asked.request());
  const std::vector<Rank> ranks = Listed(processes);
  const std::string objection = Objection(ranks);
  if (!objection.empty()) {
    if (asked.ask_ras()) *reply.mutable_ras() = NotAsked(objection);
  } else if (asked.ask_ras()) {
    *reply.mutable_ras() = AskRas(ranks, asked.changes_communicators());
  } else {
    if (options_.logs_on) AddLogs(ranks, &reply);
    AddThoseOfNccl(ranks, &reply);
  }
  return reply;
}

std::vector<LookService::Rank> LookService::Listed(const std::vector<ProcessId>& processes) const {
  std::vector<Rank> ranks;
  for (const ProcessId process : processes) {
    if (ranks.size() == kMostProcesses) break;
    if (is_listed_(process))
      ranks.push_back({process, PayerOfReads(options_.proc_root, process.pid)});
  }
  return ranks;
}

// Why the agent does not look; empty if it does.
std::string LookService::Objection(const std::vector<Rank>& ranks) {
  std::string why;
  if (!options_.is_on) {
    why = "the agent of this host runs with --stacks=off";
  } else if (ranks.empty()) {
    why = "the agent of this host has listed none of these processes";
  } else {
    const auto user = threads_.Get<Payer>(
        "user",
        [root = options_.proc_root, pid = ranks.front().process.pid] {
          return ReadPayer(root, pid);
        },
        kOneReadNs, ranks.front().payer);
    if (allowance_->Take(user.value_or(Payer()), MonotonicNs())) return "";
    why =
        absl::StrCat("the agent of this host answers ", kMostPerMinute, " such requests a minute");
  }
  if (refusals_.Take(MonotonicNs()).has_value()) {
    spdlog::warn(
        "refused to look at ranks for the daemon; refusals since the start: {}; the last: {}",
        refusals_.total(), why);
  }
  return why;
}

void LookService::AddLogs(const std::vector<Rank>& ranks, v1::LookAtRanksReply* reply) {
  std::vector<LogWriter> writers;
  for (const Rank& rank : ranks) writers.push_back({rank.process, rank.payer});
  LogOptions wanted;
  wanted.proc_root = options_.proc_root;
  wanted.patience_ns = std::max(kLogsPatienceNs, options_.least_read_ns);
  wanted.one_ns = kOneReadNs;
  wanted.redactor = options_.redactor;
  wanted.permits = [root = options_.proc_root](ProcessId process) {
    return PermitsLook(root, process);
  };
  for (v1::LogEnd& log : ReadLogs(writers, wanted, &threads_)) *reply->add_logs() = std::move(log);
}

void LookService::AddThoseOfNccl(const std::vector<Rank>& ranks, v1::LookAtRanksReply* reply) {
  const int64_t until_ns = MonotonicNs() + std::max(kLibrariesPatienceNs, options_.least_read_ns);
  for (const Rank& rank : ranks) {
    if (MonotonicNs() >= until_ns) return;
    const auto uses = threads_.Get<bool>(
        absl::StrCat("libraries of ", rank.process.pid),
        [root = options_.proc_root, process = rank.process] { return UsesNccl(root, process); },
        kOneReadNs, rank.payer);
    if (uses.value_or(false)) reply->add_of_nccl(rank.process.pid);
  }
}

v1::RasAnswer LookService::AskRas(const std::vector<Rank>& ranks, bool changes_communicators) {
  std::vector<ProcessId> processes;
  for (const Rank& rank : ranks) processes.push_back(rank.process);
  RasQuestion question;
  question.proc_root = options_.proc_root;
  question.changes_communicators = changes_communicators;
  question.insistence = kInsistence;
  const int64_t timeout_ns = question.limits.total_ns + kToReadProcNs;
  const std::function<v1::RasAnswer()> ask = [question, processes]() mutable {
    for (const ProcessId process : processes) {
      if (UsesNccl(question.proc_root, process)) question.pids.push_back(process.pid);
    }
    return AskRasOfJob(question);
  };
  return threads_.Get<v1::RasAnswer>("RAS", ask, timeout_ns, ranks.front().payer)
      .value_or(NotAsked("a process of the job blocks each program that reads it in /proc"));
}

}  // namespace rollcall
