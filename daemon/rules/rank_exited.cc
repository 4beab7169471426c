#include "daemon/rules/absence.h"
#include "daemon/rules/rules.h"

namespace rollcall {

std::vector<Verdict> FindExitedRanks(const JobState& job, int64_t now_ns, const Limits& limits) {
  std::vector<Verdict> verdicts;
  const Cause cause = Cause::kRankExited;
  BlameAll(job, FindStuckCalls(job), cause, Gone::kLeft, now_ns, limits, &verdicts);
  BlameAll(job, FindIncompleteInits(job), cause, Gone::kLeft, now_ns, limits, &verdicts);
  return verdicts;
}

}  // namespace rollcall
