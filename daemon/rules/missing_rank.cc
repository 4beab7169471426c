#include "daemon/rules/absence.h"
#include "daemon/rules/rules.h"

namespace rollcall {

std::vector<Verdict> FindMissingRanks(const JobState& job, int64_t now_ns, const Limits& limits) {
  std::vector<Verdict> verdicts;
  BlameAll(job, FindStuckCalls(job), Cause::kMissingRank, Gone::kNo, now_ns, limits, &verdicts);
  return verdicts;
}

}  // namespace rollcall
