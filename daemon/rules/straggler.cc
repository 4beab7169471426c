// SPDX-License-Identifier: Apache-2.0
#include "absl/strings/str_cat.h"
#include "daemon/rules/rules.h"
#include "daemon/words/evidence.h"
#include "daemon/words/terms.h"

namespace rollcall {
namespace {

constexpr uint32_t kEnoughCalls = 48;
constexpr int64_t kLeastLateNs = 10'000'000;  // the error of the clocks of hosts
constexpr int64_t kShareOfStep = 10;          // late: a tenth of the time from call to call

bool ArrivesLast(const Arrivals& a) {
  return a.calls >= kEnoughCalls && a.last_calls * 10 >= a.calls * 9 && a.late_ns >= kLeastLateNs &&
         a.late_ns * kShareOfStep >= a.interval_ns;
}

}  // namespace

bool IsStraggling(const Communicator& comm) { return ArrivesLast(comm.arrivals) && comm.size >= 3; }

std::vector<Verdict> JudgeStragglers(const JobState& job, const Communicator& comm,
                                     int64_t now_ns) {
  const Arrivals& a = comm.arrivals;
  if (!IsStraggling(comm)) return {};
  const Member* member =
      comm.members.count(a.last_rank) != 0 ? &comm.members.at(a.last_rank) : nullptr;
  if (member == nullptr) return {};
  Verdict verdict;
  verdict.cause = Cause::kStraggler;
  verdict.certainty = Certainty::kLikely;
  SetCommunicator(job, comm, &verdict);
  verdict.position = member->entered == 0 ? 0 : member->entered - 1;
  verdict.call = CallAtNewest(*member);
  verdict.since_ns = now_ns;
  verdict.culprits.push_back(MakeCulprit(job, member->process, a.last_rank, member));
  verdict.late_ns = a.late_ns;
  verdict.evidence.push_back(absl::StrCat(
      "last in ", a.last_calls, " of the last ", a.calls, " calls, by a median of ",
      MillisecondsInWords(a.late_ns), ", with a call every ", MillisecondsInWords(a.interval_ns)));
  return {verdict};
}

}  // namespace rollcall
