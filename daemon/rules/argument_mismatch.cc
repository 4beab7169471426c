#include "daemon/rules/divergence.h"
#include "daemon/rules/rules.h"

namespace rollcall {

std::vector<Verdict> FindArgumentMismatches(const JobState& job, int64_t now_ns, const Limits&) {
  return FindMismatches(job, Cause::kArgumentMismatch, now_ns);
}

}  // namespace rollcall
