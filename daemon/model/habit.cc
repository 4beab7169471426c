// SPDX-License-Identifier: Apache-2.0
#include "daemon/model/habit.h"

#include <algorithm>

namespace rollcall {
namespace {

// A habit needs this many steps, and this many calls. The layers of a model also make equal calls:
// within the first step of a job a short period is not a step.
constexpr size_t kLeastSteps = 3;
constexpr size_t kLeastCalls = 24;
constexpr size_t kShortPeriod = 4;
constexpr size_t kLeastCallsOfShort = 40;

size_t LeastKept(size_t period) {
  const size_t calls = period <= kShortPeriod ? kLeastCallsOfShort : kLeastCalls;
  return std::max(period * kLeastSteps, calls);
}

// By distance d: the number of newest calls before `end` that equal the calls d before them. It is
// the Z function of the reversed sequence.
std::vector<size_t> RepeatLengths(const std::vector<CallToken>& calls, size_t end) {
  std::vector<size_t> lengths(end, 0);
  const auto newest = [&](size_t i) { return calls[end - 1 - i]; };
  size_t begin = 0, match_end = 0;  // of the match that reaches furthest
  for (size_t d = 1; d < end; ++d) {
    size_t length = d < match_end ? std::min(match_end - d, lengths[d - begin]) : 0;
    while (d + length < end && newest(length) == newest(d + length)) ++length;
    lengths[d] = length;
    if (d + length > match_end) {
      begin = d;
      match_end = d + length;
    }
  }
  return lengths;
}

size_t LeastKeptOfGuess(size_t period) { return period * kLeastSteps; }

// A longer period must explain a whole step of its own more than every shorter one.
Habit ChooseHabit(const std::vector<size_t>& lengths, size_t (*least_kept)(size_t) = LeastKept) {
  Habit best;
  size_t explained = 0;  // the most calls that a shorter period explains
  for (size_t period = 1; period * kLeastSteps <= lengths.size(); ++period) {
    const size_t kept = lengths[period] + period;
    if (kept >= least_kept(period) && kept >= explained + period) best = {period, kept};
    explained = std::max(explained, kept);
  }
  return best;
}

// True if the call has followed the calls of a whole step before.
bool HasFollowed(const std::vector<CallToken>& calls, size_t at, size_t period,
                 const std::vector<size_t>& lengths) {
  for (size_t before = period; before < at; ++before) {
    if (calls[before] == calls[at] && lengths[at - before] >= period) return true;
  }
  return false;
}

// The calls from `at` on beside those that the habit expects.
class Departure {
 public:
  Departure(const std::vector<CallToken>& calls, size_t at, size_t period)
      : calls_(calls), at_(at), period_(period), made_(calls.size() - at) {}

  // The index, one step earlier, of the nth call that the habit expects.
  size_t Expected(size_t n) const { return at_ - period_ + n % period_; }

  // The least number of skipped calls after which the others follow, or 0.
  size_t Skipped() const {
    for (size_t skipped = 1; skipped < period_; ++skipped) {
      if (Follows(0, skipped)) return skipped;
    }
    return 0;
  }

  // The least number of extra calls after which the expected ones follow, or 0.
  size_t Extra() const {
    for (size_t extra = 1; extra < std::min(made_, period_ + 1); ++extra) {
      if (Follows(extra, 0)) return extra;
    }
    return 0;
  }

  size_t made() const { return made_; }

 private:
  // True if the calls made from the nth on are the expected ones from `expected` on, for a step.
  bool Follows(size_t n, size_t expected) const {
    const size_t end = std::min(made_, n + period_);
    for (size_t i = n; i < end; ++i) {
      if (calls_[at_ + i] != calls_[Expected(expected + i - n)]) return false;
    }
    return true;
  }

  const std::vector<CallToken>& calls_;
  const size_t at_, period_, made_;
};

// A sequence without the extra calls that do not concern the caller.
struct Rest {
  std::vector<CallToken> calls;
  std::vector<size_t> index;  // of each call in the whole sequence
};

using Concerns = std::function<bool(size_t)>;

bool Any(const std::vector<size_t>& calls, const Concerns& concerns) {
  return std::any_of(calls.begin(), calls.end(), concerns);
}

// The shorter of both explanations; of equal ones, and for the newest call alone, the one that
// concerns the caller.
Slip Classify(const Rest& rest, size_t at, const Habit& habit, const Concerns& concerns) {
  const Departure departure(rest.calls, at, habit.period);
  Slip skip, extra;
  skip.kind = Slip::Kind::kSkipped;
  extra.kind = Slip::Kind::kExtra;
  skip.habit = extra.habit = habit;
  const size_t skipped = departure.Skipped();
  const bool is_newest = departure.made() == 1;
  const size_t added = is_newest ? 1 : departure.Extra();
  for (size_t i = 0; i < skipped; ++i) skip.calls.push_back(rest.index[departure.Expected(i)]);
  for (size_t i = 0; i < added; ++i) extra.calls.push_back(rest.index[at + i]);
  if (skipped == 0 && added == 0) return Slip();
  if (skipped == 0 || added == 0) return added == 0 ? skip : extra;
  if (!is_newest && skipped != added) return skipped < added ? skip : extra;
  return Any(extra.calls, concerns) && !Any(skip.calls, concerns) ? extra : skip;
}

}  // namespace

Judged JudgeCall(const std::vector<CallToken>& calls, size_t at) {
  Judged judged;
  const std::vector<size_t> lengths = RepeatLengths(calls, at);
  judged.habit = ChooseHabit(lengths);
  const size_t period = judged.habit.period;
  if (period == 0) return judged;
  if (calls[at] == calls[at - period]) {
    judged.conduct = Conduct::kKept;
  } else if (!HasFollowed(calls, at, period, lengths)) {
    judged.conduct = Conduct::kBroken;
  }
  return judged;
}

Habit GuessHabit(const std::vector<CallToken>& calls, size_t at) {
  return ChooseHabit(RepeatLengths(calls, at), LeastKeptOfGuess);
}

Slip FindSlip(const std::vector<CallToken>& calls, size_t horizon, const Concerns& concerns) {
  Rest rest;
  rest.calls = calls;
  for (size_t i = 0; i < calls.size(); ++i) rest.index.push_back(i);
  Slip newest;
  size_t at = std::max<size_t>(calls.size() - std::min(horizon, calls.size()), 1);
  while (at < rest.calls.size()) {
    const Judged judged = JudgeCall(rest.calls, at);
    newest.habit = judged.habit;
    newest.kind = judged.conduct == Conduct::kKept ? Slip::Kind::kNone : Slip::Kind::kUnknown;
    if (judged.conduct != Conduct::kBroken) {
      ++at;
      continue;
    }
    const Slip slip = Classify(rest, at, judged.habit, concerns);
    if (Any(slip.calls, concerns)) return slip;
    if (slip.kind != Slip::Kind::kExtra) return Slip();
    const auto from = static_cast<std::ptrdiff_t>(at);
    const auto to = from + static_cast<std::ptrdiff_t>(slip.calls.size());
    rest.calls.erase(rest.calls.begin() + from, rest.calls.begin() + to);
    rest.index.erase(rest.index.begin() + from, rest.index.begin() + to);
    newest.kind = Slip::Kind::kNone;
  }
  return newest;
}

}  // namespace rollcall
