// SPDX-License-Identifier: Apache-2.0
#include "daemon/words/fit_sentence.h"

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/cut_text.h"
#include "daemon/words/rank_ranges.h"

namespace rollcall {
namespace {

constexpr char kRanks[] = "ranks ";
constexpr absl::string_view kAnd = " and ", kMore = " more", kEnd = "...";
constexpr size_t kFewRanges[] = {8, 4, 2, 1};
constexpr size_t kMostLost = 60;  // bytes of room behind the last clause that ends in it
// Behind these a clause ends.
constexpr absl::string_view kClauseEnds[] = {", ", "; ", ": ", " where ", " and "};

size_t SpanOf(absl::string_view text, absl::string_view letters) {
  return std::min(text.find_first_not_of(letters), text.size());
}

// A list at the begin of a text: "0,2,4,6 and 10 more".
struct RankListInText {
  RankRanges ranks;
  size_t unnamed = 0;
  size_t length = 0;  // of its text; 0 if there is no list
};

RankListInText ReadRanks(absl::string_view text) {
  RankListInText list;
  list.length = SpanOf(text, "0123456789,-");
  while (list.length > 0 && text[list.length - 1] == ',') --list.length;  // of the sentence
  list.ranks = RankRanges(std::string(text.substr(0, list.length)));
  if (list.ranks.empty()) list.length = 0;
  absl::string_view rest = text.substr(list.length);
  if (list.length == 0 || !absl::StartsWith(rest, kAnd)) return list;
  rest.remove_prefix(kAnd.size());
  const size_t digits = SpanOf(rest, "0123456789");
  const bool is_count = absl::SimpleAtoi(rest.substr(0, digits), &list.unnamed) &&
                        absl::StartsWith(rest.substr(digits), kMore);
  if (is_count) list.length += kAnd.size() + digits + kMore.size();
  if (!is_count) list.unnamed = 0;
  return list;
}

std::string Shortened(const RankListInText& list, size_t ranges) {
  std::vector<RankRange> first = list.ranks.ranges();
  first.resize(std::min(first.size(), ranges));
  const RankRanges named(std::move(first));
  const size_t more = list.unnamed + list.ranks.size() - named.size();
  return absl::StrCat(named.List(), more == 0 ? "" : absl::StrCat(kAnd, more, kMore));
}

// True if a clause may end here: not inside of a name in quotes or of words in parentheses.
class Nesting {
 public:
  bool IsOutside() const { return depth_ == 0 && !quoted_ && !named_; }
  void Pass(char letter) {
    if (letter == '"') quoted_ = !quoted_;
    if (letter == '`') named_ = !named_;
    if (letter == '(') ++depth_;
    if (letter == ')' && depth_ > 0) --depth_;
  }

 private:
  int depth_ = 0;
  bool quoted_ = false, named_ = false;
};

// Where the last clause ends that has room; 0 if none does.
size_t FindClauseEnd(const std::string& text, size_t most) {
  Nesting nesting;
  size_t end = 0;
  for (size_t i = 0; i <= std::min(most, text.size() - 1); ++i) {
    const absl::string_view rest = absl::string_view(text).substr(i);
    const bool ends =
        std::any_of(std::begin(kClauseEnds), std::end(kClauseEnds),
                    [rest](absl::string_view mark) { return absl::StartsWith(rest, mark); });
    if (ends && nesting.IsOutside()) end = i;
    nesting.Pass(text[i]);
  }
  return end;
}

}  // namespace

std::string NameFewerRanks(const std::string& text, size_t ranges) {
  std::string result;
  size_t at = 0;
  while (true) {
    const size_t found = text.find(kRanks, at);
    if (found == std::string::npos) break;
    const size_t begin = found + sizeof(kRanks) - 1;
    const RankListInText list = ReadRanks(absl::string_view(text).substr(begin));
    absl::StrAppend(&result, text.substr(at, begin - at),
                    list.length == 0 ? "" : Shortened(list, ranges));
    at = begin + list.length;
  }
  return result + text.substr(at);
}

std::string FitSentence(const std::string& text, size_t most) {
  if (text.size() <= most) return text;
  std::string fewer = text;
  for (const size_t ranges : kFewRanges) {
    fewer = NameFewerRanks(text, ranges);
    if (fewer.size() <= most) return fewer;
  }
  if (most < kEnd.size()) return "";
  const size_t end = FindClauseEnd(fewer, most - kEnd.size());
  // Of a long clause, such as the text of an exception, a part is better than nothing.
  if (end < most / 3 || most - end > kMostLost) return CutText(fewer, most, std::string(kEnd));
  return absl::StrCat(fewer.substr(0, end), kEnd);
}

}  // namespace rollcall
