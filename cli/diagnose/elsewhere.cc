// SPDX-License-Identifier: Apache-2.0
#include "cli/diagnose/elsewhere.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <iostream>
#include <thread>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "agent/processes/this_host.h"
#include "base/clean_text.h"
#include "base/duration_flag.h"
#include "base/durations.h"
#include "base/monotonic_clock.h"
#include "base/write_all.h"
#include "cli/diagnose/merge_looks.h"
#include "cli/remote/look_frame.h"

namespace rollcall {
namespace {

// Of hosts that are looked at twice: between the samples of one look, and between the two looks.
constexpr int64_t kShortApartNs = 2 * kSecond / 5;
constexpr int64_t kBetweenLooksNs = 5 * kSecond / 2;
constexpr int64_t kToFindHostsNs = 10 * kSecond;
constexpr int64_t kToAskRasNs = 20 * kSecond;
constexpr size_t kMostRasPids = 1024;
constexpr int kCannotPrint = 1;

}  // namespace

void AddElsewhereFlags(CLI::App* app, ElsewhereFlags* flags) {
  auto* hosts = app->add_option("--hosts", flags->hosts,
                                "look at these hosts through ssh: names separated by commas, or a "
                                "file with one a line");
  auto* slurm =
      app->add_option("--slurm", flags->slurm, "look at the nodes of this job through srun");
  auto* kubernetes =
      app->add_option("--kubernetes", flags->kubernetes,
                      "look at the pods with these labels through kubectl: NAMESPACE/SELECTOR");
  slurm->excludes(hosts);
  kubernetes->excludes(hosts)->excludes(slurm);
  app->add_option("--container", flags->container,
                  "container of the pods; without: the default one, or the first with a device")
      ->needs(kubernetes);
  app->add_option("--within", flags->within, "time for the look at all other hosts")
      ->capture_default_str()
      ->check(CLI::Validator(CheckDuration, "TIME"));
  app->add_option("--ras", flags->ras,
                  "ask NCCL's RAS about a job that stands: safe (not of releases that such a "
                  "question has ended), always or never")
      ->capture_default_str()
      ->check(CLI::IsMember({"safe", "always", "never"}));
  app->add_option("--look", flags->look)->group("");
  app->add_option("--ras-of", flags->ras_of)->group("");
}

RasUse RasUseOf(const ElsewhereFlags& flags) {
  if (flags.ras == "always") return RasUse::kAlways;
  return flags.ras == "never" ? RasUse::kNever : RasUse::kIfSafe;
}

absl::StatusOr<Elsewhere> Elsewhere::Find(const ElsewhereFlags& flags) {
  const int64_t until_ns = MonotonicNs() + kToFindHostsNs;
  absl::StatusOr<std::vector<RemoteTarget>> targets =
      !flags.hosts.empty()   ? HostTargets(flags.hosts)
      : !flags.slurm.empty() ? SlurmTargets(flags.slurm, until_ns)
                             : KubernetesTargets(flags.kubernetes, flags.container, until_ns);
  if (!targets.ok()) return targets.status();
  Elsewhere found;
  found.targets_ = *std::move(targets);
  found.limits_.total_ns = DurationNs(flags.within);
  found.limits_.host_ns = std::min(found.limits_.host_ns, found.limits_.total_ns);
  found.flags_ = flags;
  return found;
}

std::vector<v1::HostLook> Elsewhere::Look(
    const Arguments& arguments, int64_t apart_ns,
    const std::function<void(const std::string&)>& tell) const {
  std::vector<v1::HostLook> looks;
  if (targets_.size() > limits_.at_once) {
    looks = LookTwice(arguments, tell);
  } else {
    looks = LookAtHosts(targets_, {arguments(apart_ns), limits_, tell});
  }
  if (!flags_.slurm.empty()) {
    for (v1::HostLook& look : looks) KeepSlurmJob(flags_.slurm, &look);
  }
  return looks;
}

std::vector<v1::HostLook> Elsewhere::LookTwice(
    const Arguments& arguments, const std::function<void(const std::string&)>& tell) const {
  const int64_t until_ns = MonotonicNs() + limits_.total_ns;
  RemoteWork work = {arguments(kShortApartNs), limits_, tell};
  work.limits.total_ns = std::max((limits_.total_ns - kBetweenLooksNs) / 2, limits_.total_ns / 4);
  std::vector<v1::HostLook> looks = LookAtHosts(targets_, work);
  std::this_thread::sleep_for(std::chrono::nanoseconds(kBetweenLooksNs));
  std::vector<RemoteTarget> again;
  for (size_t i = 0; i < looks.size(); ++i) {
    again.push_back(targets_[i]);
    if (!looks[i].error().empty()) again.back().error = looks[i].error();
  }
  work.limits.total_ns = std::max(until_ns - MonotonicNs(), work.limits.total_ns);
  std::vector<v1::HostLook> second = LookAtHosts(again, work);
  for (size_t i = 0; i < looks.size(); ++i) {
    looks[i] = second[i].error().empty() ? MergeLooks(looks[i], std::move(second[i]))
                                         : std::move(second[i]);
  }
  return looks;
}

v1::RasAnswer Elsewhere::AskRas(const RasPlace& place) const {
  if (place.changes_communicators && RasUseOf(flags_) == RasUse::kIfSafe)
    return RefusalWhileCommunicatorsChange();
  RemoteWork work;
  work.arguments = {"diagnose", absl::StrCat("--ras=", flags_.ras),
                    absl::StrCat("--ras-of=", absl::StrJoin(place.pids, ","))};
  work.limits.total_ns = kToAskRasNs;
  v1::RasAnswer answer;
  std::vector<v1::HostLook> looks = LookAtHosts({targets_[place.look]}, work);
  if (!looks[0].error().empty()) {
    answer.set_error(looks[0].error());
  } else if (looks[0].ras().empty()) {
    answer.set_error("the host sent no answer of it");
  } else {
    answer = std::move(*looks[0].mutable_ras(0));
  }
  return answer;
}

void KeepSlurmJob(const std::string& job, v1::HostLook* look) {
  const auto job_of = [](const v1::ProcessLook& process) -> std::string {
    for (const v1::JobMark& mark : process.marks()) {
      if (mark.kind() == "slurm") return mark.value().substr(0, mark.value().find('.'));
    }
    return "";
  };
  auto* processes = look->mutable_processes();
  const bool has_some =
      std::any_of(processes->begin(), processes->end(),
                  [&](const v1::ProcessLook& process) { return job_of(process) == job; });
  const auto is_foreign = [&](const v1::ProcessLook& process) {
    const std::string other = job_of(process);
    const std::string& node = process.process().identity().node();
    return (has_some && !other.empty() && other != job) || (!node.empty() && node != look->host());
  };
  processes->erase(std::remove_if(processes->begin(), processes->end(), is_foreign),
                   processes->end());
}

std::vector<pid_t> PidsOf(const std::string& text) {
  std::vector<pid_t> pids;
  for (const absl::string_view word : absl::StrSplit(text, ',')) {
    pid_t pid = 0;
    if (!absl::SimpleAtoi(word, &pid) || pid <= 0 || pids.size() == kMostRasPids) return {};
    pids.push_back(pid);
  }
  return pids;
}

int PrintLook(const ElsewhereFlags& flags, const std::function<v1::HostLook()>& look) {
  if (!IsLookToken(flags.look)) {
    std::cerr << "rollcall diagnose: --look is for other hosts: it needs a token\n";
    return kCannotPrint;
  }
  v1::HostLook taken;
  if (flags.ras_of.empty()) {
    taken = look();
  } else {
    RasQuestion question;
    question.pids = PidsOf(flags.ras_of);
    question.use = RasUseOf(flags);
    taken.set_host(HostName());
    *taken.add_ras() = AskRasInTime(question);
  }
  return WriteAll(STDOUT_FILENO, FramedLook(flags.look, std::move(taken))) ? 0 : kCannotPrint;
}

}  // namespace rollcall
