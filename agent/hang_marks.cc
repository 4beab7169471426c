// SPDX-License-Identifier: Apache-2.0
#include "agent/hang_marks.h"

namespace rollcall {

void HangMarks::Set(const void* source, const v1::HostHangs& hangs, int64_t now_ns) {
  sources_[source] = hangs;
  if (!first_ns_.has_value()) first_ns_ = now_ns;
}

void HangMarks::Drop(const void* source) { sources_.erase(source); }

std::map<std::string, HangMarks::Hang> HangMarks::Wanted() const {
  std::map<std::string, Hang> wanted;
  for (const auto& [source, hangs] : sources_) {
    for (const Hang& hang : hangs.hangs()) wanted[hang.incident()] = hang;
  }
  return wanted;
}

// A verdict that is no longer certain takes its mark back first: an event for people would not.
std::optional<HangMarks::Step> HangMarks::Correct(const Hang& wanted, const Hang* told) {
  if (told == nullptr) return Step{Step::Kind::kRaise, wanted};
  if (IsCertain(*told) == IsCertain(wanted)) return std::nullopt;
  return Step{IsCertain(*told) ? Step::Kind::kClear : Step::Kind::kRaise, wanted};
}

std::optional<HangMarks::Step> HangMarks::Next(int64_t now_ns) {
  const std::map<std::string, Hang> wanted = Wanted();
  for (const auto& [incident, hang] : wanted) {
    if (told_.count(incident) != 0) named_[incident] = now_ns;
  }
  if (now_ns < not_before_ns_) return std::nullopt;
  for (const auto& [incident, hang] : wanted) {
    const auto told = told_.find(incident);
    auto step = Correct(hang, told == told_.end() ? nullptr : &told->second);
    if (step.has_value()) return step;
  }
  for (const auto& [incident, hang] : told_) {
    if (now_ns - named_.at(incident) >= kStaysNs) return Step{Step::Kind::kClear, hang};
  }
  const bool is_quiet = told_.empty() && first_ns_.has_value() && now_ns - *first_ns_ >= kStaysNs;
  if (is_quiet && !has_swept_) return Step{Step::Kind::kClearAll, {}};
  return std::nullopt;
}

void HangMarks::Done(const Step& step, bool is_taken, int64_t now_ns) {
  if (!is_taken) {
    not_before_ns_ = now_ns + kRetryAfterNs;
    return;
  }
  const std::string& incident = step.hang.incident();
  switch (step.kind) {
    case Step::Kind::kRaise:
      told_[incident] = step.hang;
      named_[incident] = now_ns;
      break;
    case Step::Kind::kClear:
      told_.erase(incident);
      named_.erase(incident);
      break;
    case Step::Kind::kClearAll:
      has_swept_ = true;
      break;
  }
}

}  // namespace rollcall
