// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "daemon/rules/rules.h"
#include "daemon/words/evidence.h"
#include "daemon/words/terms.h"

namespace rollcall {
namespace {

// A remote error means that the rank has lost a peer. So a rank with an error of its own is
// at fault, and ranks with remote errors only if there is no such rank.
std::vector<Errored> AtFault(const std::vector<Errored>& errored) {
  std::vector<Errored> own;
  for (const Errored& e : errored) {
    if (!IsRemoteError(e.code)) own.push_back(e);
  }
  return own.empty() ? errored : own;
}

// The newest call that NCCL refused with this code.
CallArgs RefusedCall(const Member* member, int32_t code) {
  CallArgs call;
  if (member == nullptr) return call;
  for (const CallRecord& record : member->records) {
    if (record.result == code) call = record.args;
  }
  return call;
}

}  // namespace

std::optional<Verdict> JudgeNcclErrors(const Suspicion& s) {
  if (s.call.errored.empty()) return std::nullopt;
  std::optional<Verdict> verdict = Describe(
      s, Cause::kNcclError, std::min(s.limits.absent_for_good_ns, s.limits.suspect_after_ns));
  if (!verdict) return verdict;
  const std::vector<Errored> at_fault = AtFault(s.call.errored);
  std::map<int32_t, std::vector<int32_t>> ranks;  // by code
  for (const Errored& e : at_fault) {
    const Member* member = FindMember(*s.call.communicator, e.rank);
    verdict->culprits.push_back(MakeCulprit(s.job, e.process, e.rank, member));
    verdict->culprits.back().nccl_result = e.code;
    verdict->culprits.back().call = RefusedCall(member, e.code);
    ranks[e.code].push_back(verdict->culprits.back().rank);
  }
  for (const auto& [code, those] : ranks) {
    verdict->evidence.push_back(
        absl::StrCat(RanksInWords(those), ": NCCL reported ", ResultInWords(code)));
  }
  const bool own = !IsRemoteError(at_fault.front().code);
  verdict->certainty = own ? Certainty::kCertain : Certainty::kLikely;
  if (!own) verdict->missing_evidence.push_back("NCCL does not report which peer failed");
  return verdict;
}

}  // namespace rollcall
