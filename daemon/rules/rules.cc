// SPDX-License-Identifier: Apache-2.0
#include "daemon/rules/rules.h"

namespace rollcall {

const std::vector<CallRule>& CallRules() {
  static const auto* rules = new std::vector<CallRule>{
      JudgeDiedRanks,     JudgeConcurrentUse,      JudgeNcclErrors,    JudgeExitedRanks,
      JudgeLostHosts,     JudgeIncompleteCreation, JudgeMissingRanks,  JudgeUnmatchedP2p,
      JudgeBlockedStarts, JudgeStalledCalls,       JudgeTeardownHangs, JudgeKeyNotSet,
  };
  return *rules;
}

}  // namespace rollcall
