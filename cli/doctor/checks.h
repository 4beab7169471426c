// SPDX-License-Identifier: Apache-2.0
// What `rollcall doctor` judges, and the table of its checks. Pure: facts in, findings out.
//
// To add a check: a function below, a row in kChecks (checks.cc), rows in checks_test.cc for a good
// and a bad case, and a row in docs/commands.md.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/doctor/facts.h"

namespace rollcall::doctor {

enum class State { kOk, kWarning, kProblem, kNotApplicable };

// "ok", "warning", "problem", "not_applicable".
std::string_view NameOf(State state);

// The result of a check. `next`: what to type, or to change; never "" for warnings and problems.
struct Judgement {
  State state = State::kOk;
  std::string what;
  std::string next;
};

struct Finding {
  std::string id;
  Judgement judgement;
};

// All checks, in the order of the table.
std::vector<Finding> Examine(const Facts& facts);
std::vector<std::string> CheckNames();

bool HasProblem(const std::vector<Finding>& findings);

// judge_library.cc
Judgement JudgeLibrary(const Facts& facts);
Judgement JudgePreload(const Facts& facts);
Judgement JudgeSwitches(const Facts& facts);
Judgement JudgeLimits(const Facts& facts);
// judge_program.cc
Judgement JudgeProgram(const Facts& facts);
Judgement JudgeSanitizer(const Facts& facts);
Judgement JudgeNccl(const Facts& facts);
Judgement JudgeProfilerPlugin(const Facts& facts);
// judge_gloo.cc
Judgement JudgeGloo(const Facts& facts);
// judge_folder.cc
Judgement JudgeFolder(const Facts& facts);
Judgement JudgeRoom(const Facts& facts);
Judgement JudgeSharedMemory(const Facts& facts);
Judgement JudgeRemoveIpc(const Facts& facts);
// judge_tracing.cc
Judgement JudgeTracing(const Facts& facts);
Judgement JudgeYama(const Facts& facts);
Judgement JudgeSeccomp(const Facts& facts);
Judgement JudgeSecurityModule(const Facts& facts);
Judgement JudgePidNamespace(const Facts& facts);
Judgement JudgeKernelLog(const Facts& facts);
// judge_gpu.cc
Judgement JudgeGpuDriver(const Facts& facts);
Judgement JudgeMarkers(const Facts& facts);
// judge_daemon.cc
Judgement JudgeAgent(const Facts& facts);
Judgement JudgeDaemon(const Facts& facts);
Judgement JudgeCertificates(const Facts& facts);
Judgement JudgeClock(const Facts& facts);
Judgement JudgeVersion(const Facts& facts);
// judge_places.cc
Judgement JudgeJobName(const Facts& facts);
Judgement JudgeKubernetes(const Facts& facts);
Judgement JudgeSlurm(const Facts& facts);

}  // namespace rollcall::doctor
