// SPDX-License-Identifier: Apache-2.0
#include "daemon/diagnosis/steps.h"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/model/progress.h"
#include "daemon/words/terms.h"

namespace rollcall {
namespace {

constexpr size_t kMostSteps = 8;  // to name

using Step = std::pair<int64_t, std::string>;  // with its phase

// Returns the step of most of these processes; in a tie the later step.
Step MostCommonStep(const JobState& job, const std::vector<int32_t>& processes) {
  std::map<Step, int> ranks;
  for (const int32_t process : processes) {
    const Process* known = FindProcess(job, process);
    if (known != nullptr && known->step >= 0) ++ranks[{known->step, known->phase}];
  }
  Step most = {-1, ""};
  int in_it = 0;
  for (const auto& [step, count] : ranks) {
    if (count < in_it) continue;
    most = step;
    in_it = count;
  }
  return most;
}

}  // namespace

void AddSteps(const JobState& job, Verdict* verdict) {
  std::tie(verdict->step, verdict->phase) = MostCommonStep(job, verdict->waiting_processes);
  std::map<Step, std::vector<int32_t>> elsewhere;
  for (Culprit& culprit : verdict->culprits) {
    const Process* process = FindProcess(job, culprit.process);
    if (process == nullptr) continue;
    culprit.step = process->step;
    culprit.phase = process->phase;
    const Step step = {culprit.step, culprit.phase};
    if (culprit.step >= 0 && verdict->step >= 0 && step != Step(verdict->step, verdict->phase)) {
      elsewhere[step].push_back(culprit.rank);
    }
  }
  size_t lines = 0;
  for (const auto& [step, ranks] : elsewhere) {
    if (lines++ == kMostSteps) {
      verdict->evidence.push_back(
          absl::StrCat("other culprits are in ",
                       CountInWords(elsewhere.size() - kMostSteps, "other step", "other steps")));
      break;
    }
    verdict->evidence.push_back(absl::StrCat(
        RanksInWords(ranks), ": in ", StepInWords(step.first, step.second),
        ", while the waiting ranks are in ", StepInWords(verdict->step, verdict->phase)));
  }
}

}  // namespace rollcall
