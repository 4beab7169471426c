// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "daemon/rules/claimed_sizes.h"
#include "daemon/rules/rules.h"

namespace rollcall {
namespace {

// Tells a rank that has joined with another size from one that has not joined.
void AddSizes(const Suspicion& s, Verdict* verdict) {
  const SizeDispute dispute = JudgeClaimedSizes(*s.call.communicator);
  if (dispute.size == 0) return;
  verdict->communicator_size = dispute.size;
  bool all = true;
  for (Culprit& culprit : verdict->culprits) {
    const auto claim =
        std::find_if(dispute.wrong.begin(), dispute.wrong.end(), [&](const ClaimedSize& wrong) {
          const Member* member = FindMember(*s.call.communicator, wrong.rank);
          return member != nullptr && culprit.process >= 0 && member->process == culprit.process;
        });
    all = all && claim != dispute.wrong.end();
    if (claim == dispute.wrong.end()) continue;
    culprit.call = s.call.call;
    culprit.call.count = static_cast<uint64_t>(claim->size);
  }
  if (all) verdict->mismatched_fields = {"size"};
}

}  // namespace

std::optional<Verdict> JudgeIncompleteCreation(const Suspicion& s) {
  if (s.call.kind != StuckCall::Kind::kCreation) return std::nullopt;
  std::optional<Verdict> verdict =
      Blame(s, Cause::kInitIncomplete,
            Pick(s, [](const Absent& a) { return a.gone == Gone::kNo && !a.silent; }));
  if (verdict) AddSizes(s, &*verdict);
  return verdict;
}

}  // namespace rollcall
