// SPDX-License-Identifier: Apache-2.0
#include "cli/doctor/checks.h"

#include <algorithm>

namespace rollcall::doctor {
namespace {

struct Check {
  const char* id;
  Judgement (*judge)(const Facts&);
};

constexpr Check kChecks[] = {
    {"library", &JudgeLibrary},
    {"preload", &JudgePreload},
    {"switches", &JudgeSwitches},
    {"limits", &JudgeLimits},
    {"program", &JudgeProgram},
    {"sanitizer", &JudgeSanitizer},
    {"nccl", &JudgeNccl},
    {"profiler-plugin", &JudgeProfilerPlugin},
    {"gloo", &JudgeGloo},
    {"folder", &JudgeFolder},
    {"room", &JudgeRoom},
    {"shared-memory", &JudgeSharedMemory},
    {"remove-ipc", &JudgeRemoveIpc},
    {"tracing", &JudgeTracing},
    {"yama", &JudgeYama},
    {"seccomp", &JudgeSeccomp},
    {"security-module", &JudgeSecurityModule},
    {"pid-namespace", &JudgePidNamespace},
    {"kernel-log", &JudgeKernelLog},
    {"gpu-driver", &JudgeGpuDriver},
    {"markers", &JudgeMarkers},
    {"agent", &JudgeAgent},
    {"daemon", &JudgeDaemon},
    {"certificates", &JudgeCertificates},
    {"clock", &JudgeClock},
    {"version", &JudgeVersion},
    {"job-name", &JudgeJobName},
    {"kubernetes", &JudgeKubernetes},
    {"slurm", &JudgeSlurm},
};

}  // namespace

std::string_view NameOf(State state) {
  constexpr std::string_view kNames[] = {"ok", "warning", "problem", "not_applicable"};
  return kNames[static_cast<int>(state)];
}

std::vector<Finding> Examine(const Facts& facts) {
  std::vector<Finding> findings;
  for (const Check& check : kChecks) findings.push_back({check.id, check.judge(facts)});
  return findings;
}

std::vector<std::string> CheckNames() {
  std::vector<std::string> names;
  for (const Check& check : kChecks) names.emplace_back(check.id);
  return names;
}

bool HasProblem(const std::vector<Finding>& findings) {
  return std::any_of(findings.begin(), findings.end(), [](const Finding& finding) {
    return finding.judgement.state == State::kProblem;
  });
}

}  // namespace rollcall::doctor
