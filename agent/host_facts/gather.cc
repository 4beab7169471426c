// SPDX-License-Identifier: Apache-2.0
#include "agent/host_facts/gather.h"

#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "agent/host_facts/probes.h"
#include "agent/processes/spawn.h"

namespace rollcall {
namespace {

constexpr char kGpuProbe[] = "gpu";

Fact HangingProbe(const std::string& name, const ProbeResult& result) {
  return {HostFactKind::kProbeHangs, name, 0, result.note, 0, 0};
}

}  // namespace

Gatherer::Gatherer(GatherOptions options)
    : options_(std::move(options)),
      programs_(options_.programs.empty() ? OwnProgramFolder() : options_.programs) {}

ProbeCommand Gatherer::Command(const std::string& probe, const std::vector<pid_t>& pids) const {
  return {probe,
          {programs_ + "/rollcall-probe", probe, absl::StrCat("--root=", options_.root),
           absl::StrCat("--pids=", absl::StrJoin(pids, ",")),
           absl::StrCat("--interval-ms=", options_.interval_ns / 1'000'000)}};
}

ProbeCommand Gatherer::GpuCommand() const {
  ProbeCommand command = {kGpuProbe,
                          {programs_ + "/rollcall-probe-nvml",
                           absl::StrCat("--interval-ms=", options_.interval_ns / 1'000'000)}};
  if (!options_.nvml_library.empty()) {
    command.arguments.push_back(absl::StrCat("--library=", options_.nvml_library));
  }
  return command;
}

GatheredFacts Gatherer::Gather(const std::vector<pid_t>& pids) {
  GatheredFacts gathered;
  std::vector<Fact> mounts;
  std::vector<ProbeCommand> commands;
  for (const std::string& probe : HostProbes()) commands.push_back(Command(probe, pids));
  commands.push_back(GpuCommand());
  std::vector<ProbeResult> results = runner_.Run(commands, options_.deadline_ns);
  for (size_t i = 0; i < commands.size(); ++i) {
    for (Fact& fact : results[i].facts) {
      std::vector<Fact>& list = fact.kind == HostFactKind::kMount ? mounts : gathered.facts;
      list.push_back(std::move(fact));
    }
    results[i].facts.clear();
    if (results[i].outcome == ProbeOutcome::kLate) {
      gathered.facts.push_back(HangingProbe(commands[i].key, results[i]));
    }
    gathered.probes.emplace_back(commands[i].key, std::move(results[i]));
  }
  AskFileSystems(mounts, &gathered);
  if (gathered.facts.size() > kMostHostFacts) gathered.facts.resize(kMostHostFacts);
  return gathered;
}

void Gatherer::AskFileSystems(const std::vector<Fact>& mounts, GatheredFacts* gathered) {
  std::vector<ProbeCommand> commands;
  for (const Fact& mount : mounts) {
    ProbeCommand command = Command(kFileSystemProbe, {});
    command.key = absl::StrCat(kFileSystemProbe, " ", mount.subject, " ", mount.text);
    // As the process sees it: the mount may be in a container only.
    command.arguments.push_back(absl::StrCat("--path=/proc/", mount.pid, "/root", mount.subject));
    commands.push_back(std::move(command));
  }
  const std::vector<ProbeResult> results = runner_.Run(commands, options_.deadline_ns);
  bool is_any_denied = false;
  for (size_t i = 0; i < mounts.size(); ++i) {
    if (results[i].outcome == ProbeOutcome::kLate) {
      gathered->facts.push_back(
          {HostFactKind::kFileSystemSilent, mounts[i].subject, 0, mounts[i].text, 0, 0});
    }
    is_any_denied = is_any_denied || results[i].outcome == ProbeOutcome::kDenied;
    for (Fact fact : results[i].facts) {
      fact.subject = mounts[i].subject;
      gathered->facts.push_back(std::move(fact));
    }
  }
  ProbeResult whole;
  if (is_any_denied) whole = {ProbeOutcome::kDenied, "the agent may not look into a process", {}};
  gathered->probes.emplace_back(kFileSystemProbe, std::move(whole));
}

}  // namespace rollcall
