#include "daemon/rules/absence.h"
#include "daemon/rules/rules.h"

namespace rollcall {

std::vector<Verdict> FindDiedRanks(const JobState& job, int64_t now_ns, const Limits& limits) {
  std::vector<Verdict> verdicts;
  const Cause cause = Cause::kRankDied;
  BlameAll(job, FindStuckCalls(job), cause, Gone::kDied, now_ns, limits, &verdicts);
  BlameAll(job, FindIncompleteInits(job), cause, Gone::kDied, now_ns, limits, &verdicts);
  return verdicts;
}

}  // namespace rollcall
