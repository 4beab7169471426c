// SPDX-License-Identifier: Apache-2.0
#include "agent/host_facts/fact.h"

#include <iterator>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/clean_text.h"
#include "security/whole_words.h"

namespace rollcall {
namespace {

constexpr const char* kOutcomes[] = {"ok", "absent", "denied", "late", "failed"};
constexpr size_t kColumns = 6;
constexpr char kEnd[] = "end";

using Columns = std::vector<absl::string_view>;

std::string_view View(absl::string_view text) { return {text.data(), text.size()}; }

// A longer text loses the word in which it is cut, because a part of a secret does not look like
// one.
std::string Field(std::string_view text) {
  constexpr size_t kRoom = kMostFactText - 16;  // for what stands in the place of that word
  if (text.size() <= kMostFactText) return CleanText(text);
  return CleanText(WithoutCutEnd(std::string(text.substr(0, kRoom)), kRoom));
}

bool ReadFact(const Columns& columns, Fact* fact) {
  if (columns.size() != kColumns) return false;
  fact->kind = FindHostFactKind(View(columns[0]));
  fact->subject = Field(View(columns[1]));
  fact->text = Field(View(columns[5]));
  const auto number = [&columns](size_t at, auto* value) {
    return absl::SimpleAtoi(columns[at], value);
  };
  return fact->kind != HostFactKind::kUnknown && number(2, &fact->value) &&
         number(3, &fact->age_ns) && number(4, &fact->pid) && fact->age_ns >= 0 && fact->pid >= 0;
}

void ReadEnd(const Columns& columns, ProbeResult* result) {
  for (size_t i = 0; i < std::size(kOutcomes); ++i) {
    if (columns[1] == kOutcomes[i]) result->outcome = static_cast<ProbeOutcome>(i);
  }
  result->note = Field(View(columns[2]));
}

}  // namespace

const char* ProbeOutcomeName(ProbeOutcome outcome) {
  return kOutcomes[static_cast<size_t>(outcome)];
}

std::string ToLines(const ProbeResult& result) {
  std::string lines;
  for (const Fact& fact : result.facts) {
    absl::StrAppend(&lines, InfoOf(fact.kind).text, "\t", Field(fact.subject), "\t", fact.value,
                    "\t", fact.age_ns, "\t", fact.pid, "\t", Field(fact.text), "\n");
  }
  absl::StrAppend(&lines, kEnd, "\t", ProbeOutcomeName(result.outcome), "\t", Field(result.note),
                  "\n");
  return lines;
}

ProbeResult FromLines(std::string_view lines) {
  ProbeResult result;
  result.outcome = ProbeOutcome::kFailed;
  result.note = "it ended early";
  while (!lines.empty()) {
    const size_t end = lines.find('\n');
    if (end == std::string_view::npos) break;  // half a line
    const Columns columns = absl::StrSplit(absl::string_view(lines.data(), end), '\t');
    lines.remove_prefix(end + 1);
    Fact fact;
    if (columns.size() == 3 && columns[0] == kEnd) {
      ReadEnd(columns, &result);
      break;
    }
    if (result.facts.size() < kMostHostFacts && ReadFact(columns, &fact)) {
      result.facts.push_back(std::move(fact));
    }
  }
  return result;
}

}  // namespace rollcall
