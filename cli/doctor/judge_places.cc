// SPDX-License-Identifier: Apache-2.0
// What schedulers and containers must pass on to a job.
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cli/doctor/checks.h"
#include "interpose/environment.h"

namespace rollcall::doctor {
namespace {

bool IsInSlurm(const Facts& facts) { return facts.IsSet("SLURM_JOB_ID"); }
bool IsInPod(const Facts& facts) { return facts.IsSet("KUBERNETES_SERVICE_HOST"); }

bool IsPrivateSharedMemory(const std::string& plugin) {
  return absl::StrContains(plugin, "tmpfs") || absl::StartsWith(plugin, "namespace/");
}

}  // namespace

Judgement JudgeJobName(const Facts& facts) {
  const std::string name = FindJob([&facts](const char* variable) -> const char* {
    const auto at = facts.environment.find(variable);
    return at == facts.environment.end() ? nullptr : at->second.c_str();
  });
  if (!name.empty()) return {State::kOk, absl::StrCat("the job is called ", name), ""};
  const bool is_preloaded = absl::StrContains(facts.Variable("LD_PRELOAD"), "librollcall.so");
  if (is_preloaded || IsInPod(facts)) {
    return {State::kWarning,
            "no variable names the job: all processes without a name are one job of the daemon, "
            "\"default\"",
            "export ROLLCALL_JOB=NAME   the same on all hosts of the job"};
  }
  return {State::kNotApplicable, "no variable names a job in this shell; `rollcall run` sets one",
          ""};
}

Judgement JudgeKubernetes(const Facts& facts) {
  if (!IsInPod(facts)) return {State::kNotApplicable, "not in a pod", ""};
  std::vector<std::string> missing;
  for (const char* name : {"NODE_NAME", "POD_NAME", "POD_NAMESPACE"}) {
    if (!facts.IsSet(name)) missing.emplace_back(name);
  }
  if (!missing.empty()) {
    return {
        State::kWarning,
        absl::StrCat("the pod's environment lacks ", absl::StrJoin(missing, ", "),
                     ": verdicts name the pod, and not its node"),
        "env: - name: NODE_NAME, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}   (POD_NAME: "
        "metadata.name, POD_NAMESPACE: metadata.namespace)"};
  }
  if (absl::StartsWith(facts.folder.path, "/dev/shm") && facts.shared_memory.total_bytes != 0 &&
      facts.shared_memory.total_bytes <= 2 * kNcclBytes) {
    return {State::kWarning,
            "the segments share the pod's small /dev/shm with NCCL, which may fail there",
            "an emptyDir with medium: Memory and sizeLimit: 256Mi at /rollcall, and "
            "ROLLCALL_DIR=/rollcall"};
  }
  return {State::kOk,
          absl::StrCat("pod ", facts.Variable("POD_NAMESPACE"), "/", facts.Variable("POD_NAME"),
                       " on ", facts.Variable("NODE_NAME")),
          ""};
}

Judgement JudgeSlurm(const Facts& facts) {
  const SlurmFacts& slurm = facts.slurm;
  if (!IsInSlurm(facts) && slurm.config.empty()) {
    return {State::kNotApplicable, "not in a Slurm job", ""};
  }
  if (!slurm.task_prolog.empty() && slurm.has_pyxis) {
    return {State::kProblem,
            absl::StrCat(
                "TaskProlog (", slurm.task_prolog,
                ") runs inside the containers of pyxis, where the file does not exist: the task "
                "is cancelled"),
            "set LD_PRELOAD in enroot's environ.d, and mount the library by mounts.d; remove "
            "TaskProlog"};
  }
  if (!slurm.plugin.empty() && !slurm.has_plugin_file) {
    return {State::kWarning,
            absl::StrCat("plugstack.conf names ", slurm.plugin,
                         ", which is not on this host: jobs run here without Rollcall"),
            absl::StrCat("/usr/share/rollcall/slurm/build.sh ", slurm.plugin,
                         "   (again after each upgrade of Slurm)")};
  }
  if (IsPrivateSharedMemory(slurm.job_container) && !facts.agent.is_running &&
      absl::StartsWith(facts.folder.path, "/dev/shm")) {
    return {State::kWarning,
            absl::StrCat(
                "each job has a /dev/shm of its own (", slurm.job_container,
                "), which Slurm deletes when the job ends: segments are lost unless an agent has "
                "read them"),
            "run rollcall-agent on the node   or   rollcall run srun ...   or   export "
            "ROLLCALL_DIR=FOLDER on a local disk"};
  }
  if (!IsInSlurm(facts)) {
    return {State::kOk, absl::StrCat("a node of Slurm (", slurm.config, "); not in a job now"), ""};
  }
  return {State::kOk,
          absl::StrCat("Slurm job ", facts.Variable("SLURM_JOB_ID"),
                       ": ranks and job get "
                       "their names from Slurm's variables",
                       slurm.plugin.empty() ? "" : "; srun --rollcall preloads the library"),
          ""};
}

}  // namespace rollcall::doctor
