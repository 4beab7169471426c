// SPDX-License-Identifier: Apache-2.0
#include "cli/explained/explanations.h"

#include <array>
#include <cstddef>
#include <utility>

namespace rollcall {
namespace {

// The text of several rows.
constexpr char kAnalyzeFolder[] =
    "Put the Flight Recorder dumps and the logs of all ranks into one folder: `rollcall analyze "
    "FOLDER`.";
constexpr char kNoAnswerMeans[] =
    "NCCL over InfiniBand or RoCE: the peer in the line did not answer, after all retries (status "
    "12, retry exceeded).";
constexpr char kNoAnswerBeware[] =
    "A bad cable is only one reason. A peer that ended, a host that stopped or a congested fabric "
    "gives the same line. Which rank is at fault does not follow.";
constexpr char kNoAnswerRun[] =
    "First check whether the peer's process lives. Then its link: `ibstat`, counters of NIC and "
    "switch. NCCL_IB_TIMEOUT allows a longer silence.";

constexpr size_t kLongestLine = size_t{64} << 10;  // what comes after it does not count

using LowerTexts = std::array<std::string, 3>;

// Follows the C locale, whatever the locale of the process.
char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

std::string Lower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = Lower(c);
  return lower;
}

// The texts of Explanations(), in its order.
const std::vector<LowerTexts>& AllLowerTexts() {
  static const std::vector<LowerTexts> all = [] {
    std::vector<LowerTexts> made;
    made.reserve(Explanations().size());
    for (const Explanation& row : Explanations()) {
      LowerTexts texts;
      for (size_t i = 0; i < texts.size(); ++i) texts[i] = Lower(row.texts[i]);
      made.push_back(std::move(texts));
    }
    return made;
  }();
  return all;
}

bool HasInOrder(std::string_view lower_line, const LowerTexts& texts) {
  size_t at = 0;
  for (const std::string& text : texts) {
    if (text.empty()) break;
    at = lower_line.find(text, at);
    if (at == std::string_view::npos) return false;
    at += text.size();
  }
  return true;
}

}  // namespace

const std::vector<Explanation>& Explanations() {
  static const std::vector<Explanation> rows = {
#include "cli/explained/launchers.def"
#include "cli/explained/pytorch.def"
#include "cli/explained/stores.def"
// Before NCCL, which prints these texts, too.
#include "cli/explained/engines.def"
#include "cli/explained/gpu.def"
#include "cli/explained/kernel.def"
#include "cli/explained/mpi.def"
#include "cli/explained/nccl.def"
// Last, because a line with one of these often has a more exact text, too.
#include "cli/explained/ends.def"
  };
  return rows;
}

const Explanation* FindExplanation(std::string_view line) {
  const std::string lower = Lower(line.substr(0, kLongestLine));
  const std::vector<LowerTexts>& all = AllLowerTexts();
  for (size_t i = 0; i < all.size(); ++i) {
    if (HasInOrder(lower, all[i])) return &Explanations()[i];
  }
  return nullptr;
}

}  // namespace rollcall
