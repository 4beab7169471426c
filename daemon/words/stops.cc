// SPDX-License-Identifier: Apache-2.0
#include "daemon/words/stops.h"

#include <algorithm>

#include "daemon/model/job_state.h"
#include "daemon/words/terms.h"

namespace rollcall {
namespace {

std::string StopOf(const Culprit& culprit) {
  if (!culprit.ending.empty() && culprit.ending != kFinalizing) return "";  // it has ended or left
  return StopInWords(culprit.state, culprit.wait_channel);
}

}  // namespace

std::string StopInWords(char state, const std::string& wait_channel) {
  if (state == 'T') return "stopped by a signal (state T)";
  if (state == 't') return "stopped by a debugger (state t)";
  ProcessEvidence evidence;
  evidence.state = state;
  evidence.wait_channel = wait_channel;
  return IsSuspended(evidence) ? "frozen by its control group" : "";
}

std::string StopOfAll(const std::vector<Culprit>& culprits) {
  if (culprits.empty()) return "";
  const std::string first = StopOf(culprits.front());
  const bool is_one = std::all_of(culprits.begin(), culprits.end(),
                                  [&](const Culprit& c) { return StopOf(c) == first; });
  return is_one ? first : "";
}

bool IsAnyStopped(const std::vector<Culprit>& culprits) {
  return std::any_of(culprits.begin(), culprits.end(),
                     [](const Culprit& culprit) { return !StopOf(culprit).empty(); });
}

}  // namespace rollcall
