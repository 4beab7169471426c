// SPDX-License-Identifier: Apache-2.0
#include "daemon/words/alignment.h"

#include <algorithm>

namespace rollcall {
namespace {

constexpr size_t kMostCompared = 256;  // calls after the first difference; the table is its square
constexpr size_t kBefore = 2;          // equal calls before the first difference
constexpr size_t kLines = 24;

using Calls = std::vector<HistoryCall>;

// Length of the longest common subsequence of the two rests, for every pair of starts.
class Common {
 public:
  Common(const Calls& a, const Calls& b, size_t begin)
      : rows_(std::min(a.size() - begin, kMostCompared) + 1),
        columns_(std::min(b.size() - begin, kMostCompared) + 1),
        length_(rows_ * columns_, 0) {
    for (size_t i = rows_ - 1; i-- > 0;) {
      for (size_t k = columns_ - 1; k-- > 0;) {
        Cell(i, k) = SameCall(a[begin + i].args, b[begin + k].args)
                         ? static_cast<uint16_t>(At(i + 1, k + 1) + 1)
                         : std::max(At(i + 1, k), At(i, k + 1));
      }
    }
  }
  size_t rows() const { return rows_ - 1; }
  size_t columns() const { return columns_ - 1; }
  uint16_t At(size_t i, size_t k) const { return length_[i * columns_ + k]; }

 private:
  uint16_t& Cell(size_t i, size_t k) { return length_[i * columns_ + k]; }
  size_t rows_, columns_;
  std::vector<uint16_t> length_;
};

size_t FirstDifference(const Calls& a, const Calls& b) {
  size_t i = 0;
  while (i < a.size() && i < b.size() && SameCall(a[i].args, b[i].args)) ++i;
  return i;
}

AlignedCall Line(const HistoryCall* others, const HistoryCall* culprits) {
  AlignedCall line;
  if (others != nullptr) {
    line.position = others->position;
    line.others = others->args;
  }
  if (culprits != nullptr) {
    line.culprit_position = culprits->position;
    line.culprits = culprits->args;
  }
  return line;
}

// The lines up to the end of the shorter history. Later calls are not a difference yet.
std::vector<AlignedCall> LinesFrom(const Calls& a, const Calls& b, size_t begin,
                                   const Common& common) {
  std::vector<AlignedCall> lines;
  size_t i = 0, k = 0;
  while (i < common.rows() && k < common.columns() && lines.size() < kLines) {
    const HistoryCall& other = a[begin + i];
    const HistoryCall& culprit = b[begin + k];
    if (SameCall(other.args, culprit.args)) {
      lines.push_back(Line(&other, &culprit));
      ++i;
      ++k;
    } else if (common.At(i + 1, k + 1) == common.At(i, k)) {
      lines.push_back(Line(&other, &culprit));  // neither call follows later: it is a replacement
      ++i;
      ++k;
    } else if (common.At(i, k + 1) >= common.At(i + 1, k)) {
      lines.push_back(Line(nullptr, &culprit));
      ++k;
    } else {
      lines.push_back(Line(&other, nullptr));
      ++i;
    }
  }
  return lines;
}

bool OnlyOthers(const AlignedCall& l) { return l.culprits.op == Op::kNone; }
bool OnlyCulprits(const AlignedCall& l) { return l.others.op == Op::kNone; }

// Classifies the difference by the lines up to the point where the sides agree again.
void Classify(Alignment* alignment) {
  size_t extra = 0, skipped = 0, replaced = 0;
  const AlignedCall* first_extra = nullptr;
  const AlignedCall* first_skipped = nullptr;
  size_t agreed = 0;
  for (const AlignedCall& line : alignment->lines) {
    if (OnlyCulprits(line)) {
      ++extra;
      if (first_extra == nullptr) first_extra = &line;
    } else if (OnlyOthers(line)) {
      ++skipped;
      if (first_skipped == nullptr) first_skipped = &line;
    } else if (!SameCall(line.others, line.culprits)) {
      ++replaced;
    } else if (extra + skipped + replaced > 0 && ++agreed > 2) {
      break;
    }
  }
  const bool swapped = extra > 0 && extra == skipped && replaced == 0 &&
                       SameCall(first_extra->culprits, first_skipped->others);
  alignment->length = std::max(extra, skipped);
  if (swapped) {
    alignment->kind = DivergenceKind::kSwapped;
  } else if (extra > 0 && skipped == 0 && replaced == 0) {
    alignment->kind = DivergenceKind::kExtra;
  } else if (skipped > 0 && extra == 0 && replaced == 0) {
    alignment->kind = DivergenceKind::kSkipped;
  } else {
    alignment->kind = DivergenceKind::kReplaced;
  }
}

}  // namespace

bool SameCall(const CallArgs& a, const CallArgs& b) {
  return Canonical(a.op) == Canonical(b.op) && a.dtype == b.dtype && a.count == b.count &&
         a.reduction == b.reduction && a.peer == b.peer;
}

Alignment Align(const Calls& others, const Calls& culprits) {
  Alignment alignment;
  const size_t begin = FirstDifference(others, culprits);
  if (begin == others.size() || begin == culprits.size()) return alignment;
  const Common common(others, culprits, begin);
  alignment.lines = LinesFrom(others, culprits, begin, common);
  Classify(&alignment);
  std::vector<AlignedCall> before;
  for (size_t i = begin - std::min(begin, kBefore); i < begin; ++i) {
    before.push_back(Line(&others[i], &culprits[i]));
  }
  alignment.lines.insert(alignment.lines.begin(), before.begin(), before.end());
  return alignment;
}

}  // namespace rollcall
