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
// The default of --samples-apart, for which the limits of a look are made.
constexpr int64_t kUsualApartNs = 6 * kSecond;
constexpr int64_t kBesidesApartNs = 4 * kSecond;  // that a look takes besides, at least
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
  app->add_option("--within", flags->within,
                  "time for the look at all other hosts; without: 30s, and more with a longer "
                  "--samples-apart")
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

absl::StatusOr<RemoteLimits> LimitsFor(const std::string& within, int64_t apart_ns) {
  RemoteLimits limits;
  const int64_t longer_ns = std::max<int64_t>(apart_ns - kUsualApartNs, 0);
  limits.host_ns += longer_ns;
  limits.total_ns += longer_ns;
  if (within.empty()) return limits;
  limits.total_ns = DurationNs(within);
  limits.host_ns = std::min(limits.host_ns, limits.total_ns);
  const int64_t least_ns = apart_ns + kBesidesApartNs;
  if (limits.total_ns >= least_ns) return limits;
  return absl::InvalidArgumentError(absl::StrCat(
      "--within=", within, " is too short for samples that are ", apart_ns / kSecond,
      "s apart: give --within=", (least_ns + kSecond - 1) / kSecond, "s or more, or leave it out"));
}

absl::StatusOr<Elsewhere> Elsewhere::Find(const ElsewhereFlags& flags, int64_t apart_ns) {
  const absl::StatusOr<RemoteLimits> limits = LimitsFor(flags.within, apart_ns);
  if (!limits.ok()) return limits.status();
  Elsewhere found;
  found.apart_ns_ = apart_ns;
  found.limits_ = *limits;
  found.flags_ = flags;
  const absl::Status status = found.FindTargets();
  if (!status.ok()) return status;
  return found;
}

absl::Status Elsewhere::FindTargets() {
  const int64_t until_ns = MonotonicNs() + kToFindHostsNs;
  if (!flags_.slurm.empty()) {
    absl::StatusOr<SlurmTargetList> nodes = SlurmTargets(flags_.slurm, until_ns);
    if (!nodes.ok()) return nodes.status();
    targets_ = std::move(nodes->targets);
    slurm_job_ = nodes->job;
    return absl::OkStatus();
  }
  absl::StatusOr<std::vector<RemoteTarget>> targets =
      !flags_.hosts.empty() ? HostTargets(flags_.hosts, &HasAddress)
                            : KubernetesTargets(flags_.kubernetes, flags_.container, until_ns);
  if (!targets.ok()) return targets.status();
  targets_ = *std::move(targets);
  return absl::OkStatus();
}

std::vector<v1::HostLook> Elsewhere::Look(
    const Arguments& arguments, const std::function<void(const std::string&)>& tell) const {
  std::vector<v1::HostLook> looks;
  if (targets_.size() > limits_.at_once) {
    looks = LookTwice(arguments, tell);
  } else {
    looks = LookAtHosts(targets_, {arguments(apart_ns_), limits_, nullptr, tell});
  }
  if (!slurm_job_.empty()) {
    for (v1::HostLook& look : looks) KeepSlurmJob(slurm_job_, &look);
  }
  return looks;
}

std::vector<v1::HostLook> Elsewhere::LookTwice(
    const Arguments& arguments, const std::function<void(const std::string&)>& tell) const {
  const int64_t begun_ns = MonotonicNs(), until_ns = begun_ns + limits_.total_ns;
  ByteBudget budget(kMostMemoryOfLooks);  // of the looks of both times
  RemoteWork work = {arguments(kShortApartNs), limits_, &budget, tell};
  const int64_t pause_ns = kBetweenLooksNs + std::max<int64_t>(apart_ns_ - kUsualApartNs, 0);
  work.limits.total_ns = std::max((limits_.total_ns - pause_ns) / 2, limits_.total_ns / 4);
  std::vector<v1::HostLook> looks = LookAtHosts(targets_, work);
  const int64_t again_ns = std::max(begun_ns + apart_ns_, MonotonicNs() + kBetweenLooksNs);
  std::this_thread::sleep_for(std::chrono::nanoseconds(again_ns - MonotonicNs()));
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
    return RefusalWhileCommunicatorsChange(RasQuestion().insistence);
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
