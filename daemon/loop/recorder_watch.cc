// SPDX-License-Identifier: Apache-2.0
#include "daemon/loop/recorder_watch.h"

#include <algorithm>
#include <optional>

#include "daemon/diagnosis/standing/standing_ranks.h"

namespace rollcall {
namespace {

bool HasRecordedHang(const std::vector<Verdict>& verdicts) {
  return std::any_of(verdicts.begin(), verdicts.end(), [](const Verdict& verdict) {
    return !IsWarning(verdict.cause) && verdict.cause != Cause::kStandstill;
  });
}

// Which ranks wait is known only when the answers are there.
void HoldBack(const Limits& limits, std::vector<Verdict>* verdicts) {
  for (Verdict& verdict : *verdicts) {
    verdict.waited_ns = std::min(verdict.waited_ns, limits.hang_after_ns - 1);
  }
}

void AddNote(const std::string& note, std::vector<Verdict>* verdicts) {
  if (note.empty()) return;
  for (Verdict& verdict : *verdicts) verdict.evidence.push_back(note);
}

}  // namespace

void RecorderWatch::Complete(const JobState& job, int64_t now_ns, const Limits& limits,
                             std::vector<Verdict>* verdicts) {
  if (source_ == nullptr || limits.watches_calls_only || HasRecordedHang(*verdicts)) return;
  const std::optional<StandingRanks> ranks = FindStandingRanks(job, now_ns, limits);
  if (!ranks || ranks->seen_ns - ranks->since_ns < limits.hang_after_ns) {
    asked_ns_ = 0;
    return;
  }
  if (!was_asked_) {
    was_asked_ = true;
    if (source_->Ask(job, ranks->processes)) {
      asked_ns_ = now_ns;
      asked_of_ns_ = ranks->since_ns;
    }
  }
  if (asked_ns_ == 0 || ranks->since_ns > asked_of_ns_) return;
  if (!answer_) answer_ = source_->Answer(job);
  if (!answer_) return HoldBack(limits, verdicts);
  if (answer_->verdicts.empty()) return AddNote(answer_->note, verdicts);
  *verdicts = answer_->verdicts;
  for (Verdict& verdict : *verdicts) {
    verdict.since_ns = ranks->since_ns;
    verdict.waited_ns = ranks->seen_ns - ranks->since_ns;
    verdict.evidence_age_ns = now_ns - ranks->seen_ns;
  }
  AddNote(answer_->note, verdicts);
}

}  // namespace rollcall
