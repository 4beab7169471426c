#include "daemon/rules/divergence.h"
#include "daemon/rules/rules.h"

namespace rollcall {

std::vector<Verdict> FindOperationMismatches(const JobState& job, int64_t now_ns, const Limits&) {
  return FindMismatches(job, Cause::kOperationMismatch, now_ns);
}

}  // namespace rollcall
