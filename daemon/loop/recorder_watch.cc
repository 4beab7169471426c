// SPDX-License-Identifier: Apache-2.0
#include "daemon/loop/recorder_watch.h"

#include <algorithm>
#include <optional>

#include "base/durations.h"
#include "daemon/diagnosis/standing/standing_ranks.h"

namespace rollcall {
namespace {

// A rank that writes its dump uses the CPU and the disk: for so long that is not a move.
constexpr int64_t kDumpIsWorkNs = 10 * kSecond;

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
  if (!was_asked_) {
    if (!ranks || ranks->seen_ns - ranks->since_ns < limits.hang_after_ns) return;
    was_asked_ = true;
    if (!source_->Ask(job, ranks->processes)) return;
    asked_ns_ = now_ns;
    asked_of_ns_ = ranks->since_ns;
  }
  if (asked_ns_ == 0) return;
  if (!answer_) {
    answer_ = source_->Answer(job);
    if (!answer_) return HoldBack(limits, verdicts);
    asked_ns_ = now_ns;  // from here on: when the dumps were there
  }
  const int64_t at_work_until_ns = asked_ns_ + kDumpIsWorkNs;
  const bool has_moved = ranks ? ranks->since_ns >= at_work_until_ns : now_ns >= at_work_until_ns;
  if (has_moved) {
    asked_ns_ = 0;
    return;
  }
  // It writes its dump, or the job goes on: that shows when the ranks stand again, or do not.
  if (!ranks) return HoldBack(limits, verdicts);
  if (!answer_->verdicts.empty()) *verdicts = answer_->verdicts;
  AddNote(answer_->note, verdicts);
  if (answer_->verdicts.empty()) return;
  for (Verdict& verdict : *verdicts) {
    verdict.since_ns = asked_of_ns_;
    verdict.waited_ns = now_ns - asked_of_ns_;
    verdict.evidence_age_ns = now_ns - std::max(ranks->seen_ns, asked_ns_);
  }
}

}  // namespace rollcall
