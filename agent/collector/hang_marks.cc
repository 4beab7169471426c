// SPDX-License-Identifier: Apache-2.0
#include "agent/collector/hang_marks.h"

namespace rollcall {

void HangMarks::Set(const void* source, const v1::HostHangs& hangs, int64_t now_ns) {
  sources_[source] = hangs;
  if (!first_ns_.has_value()) first_ns_ = now_ns;
}

void HangMarks::Drop(const void* source) { sources_.erase(source); }

void HangMarks::TakeIn(int64_t now_ns) {
  wanted_.clear();
  for (const auto& [source, hangs] : sources_) {
    for (const Hang& hang : hangs.hangs()) {
      Hang& wanted = wanted_[hang.incident()];
      if (!wanted.is_broken()) wanted = hang;
      const auto mark = marks_.find(hang.incident());
      if (mark != marks_.end()) mark->second.named_ns = now_ns;
    }
  }
}

std::optional<HangMarks::Step> HangMarks::NextClear(int64_t now_ns) const {
  for (const auto& [incident, mark] : marks_) {
    const bool is_over = now_ns - mark.named_ns >= kStaysNs;
    if (is_over && now_ns >= mark.not_before_ns) return Step{Step::Kind::kClear, mark.hang};
  }
  return std::nullopt;
}

std::optional<HangMarks::Step> HangMarks::NextRaise(int64_t now_ns) {
  for (const auto& [incident, hang] : wanted_) {
    Mark& mark = marks_.emplace(incident, Mark{hang, false, now_ns, 0}).first->second;
    const bool has_become_broken = hang.is_broken() && !mark.hang.is_broken();
    if ((mark.is_known && !has_become_broken) || now_ns < mark.not_before_ns) continue;
    if (!mark.hang.is_broken()) mark.hang = hang;
    return Step{Step::Kind::kRaise, mark.hang};
  }
  return std::nullopt;
}

// What clears comes first: a raise that is refused for good must not hold it up.
std::optional<HangMarks::Step> HangMarks::Next(int64_t now_ns) {
  TakeIn(now_ns);
  std::optional<Step> step = NextClear(now_ns);
  if (!step.has_value()) step = NextRaise(now_ns);
  if (step.has_value()) return step;
  const bool is_quiet = marks_.empty() && first_ns_.has_value() && now_ns - *first_ns_ >= kStaysNs;
  if (is_quiet && !has_swept_ && now_ns >= sweep_not_before_ns_) {
    return Step{Step::Kind::kClearAll, {}};
  }
  return std::nullopt;
}

void HangMarks::Done(const Step& step, bool is_taken, int64_t now_ns) {
  if (step.kind == Step::Kind::kClearAll) {
    has_swept_ = is_taken;
    sweep_not_before_ns_ = now_ns + kRetryAfterNs;
    return;
  }
  const auto at = marks_.find(step.hang.incident());
  if (at == marks_.end()) return;
  if (is_taken && step.kind == Step::Kind::kClear) {
    marks_.erase(at);
    return;
  }
  at->second.is_known = is_taken;
  if (!is_taken) at->second.not_before_ns = now_ns + kRetryAfterNs;
}

}  // namespace rollcall
