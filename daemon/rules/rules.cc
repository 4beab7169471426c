#include "daemon/rules/rules.h"

namespace rollcall {

const std::vector<Rule>& AllRules() {
  static const auto* rules = new std::vector<Rule>{
      FindDiedRanks,    FindOperationMismatches,     FindArgumentMismatches,
      FindExitedRanks,  FindIncompleteCommunicators, FindMissingRanks,
      FindStalledCalls,
  };
  return *rules;
}

}  // namespace rollcall
