// SPDX-License-Identifier: Apache-2.0
#include "daemon/diagnosis/standing/standstill.h"

#include "daemon/diagnosis/standing/stand_blame.h"
#include "daemon/diagnosis/standing/stand_description.h"
#include "daemon/diagnosis/standing/stand_doubts.h"
#include "daemon/diagnosis/standing/stand_scene.h"
#include "daemon/diagnosis/standing/standing_ranks.h"

namespace rollcall {

std::optional<Verdict> JudgeStandstill(const JobState& job, int64_t now_ns, const Limits& limits) {
  if (job.offline || limits.watches_calls_only) return std::nullopt;
  const auto ranks = FindStandingRanks(job, now_ns, limits);
  if (!ranks || ranks->seen_ns - ranks->since_ns < limits.suspect_after_ns) return std::nullopt;
  const StandScene scene(job, *ranks, limits.is_look);
  if (MayWaitOutOfSight(scene)) return std::nullopt;
  const std::optional<StandBlame> blame = BlameRanks(scene);
  if (!blame || MayGoOn(scene, *blame)) return std::nullopt;
  Verdict verdict;
  verdict.cause = Cause::kStandstill;
  DescribeStandstill(scene, *blame, &verdict);
  const bool is_likely = CanBeLikely(scene, *blame);
  verdict.certainty = is_likely ? Certainty::kLikely : Certainty::kPossible;
  verdict.since_ns = ranks->since_ns;
  verdict.waited_ns = ranks->seen_ns - ranks->since_ns;
  verdict.evidence_age_ns = now_ns - ranks->seen_ns;
  if (scene.IsAnyUnseen()) verdict.missing_evidence.push_back("some of the ranks are not seen");
  verdict.missing_evidence.push_back(
      "no recorded call waits: the verdict rests on samples of the stacks");
  return verdict;
}

}  // namespace rollcall
