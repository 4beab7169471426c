// SPDX-License-Identifier: Apache-2.0
#include "agent/symbols/source_blocks.h"

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace rollcall {
namespace {

constexpr int kBlank = -1;

// Returns the indentation of a line with code; kBlank: it has no code.
int Indentation(absl::string_view line) {
  int columns = 0;
  for (const char c : line) {
    if (c == ' ') {
      ++columns;
    } else if (c == '\t') {
      columns = columns / 8 * 8 + 8;  // as Python counts
    } else {
      return c == '#' || c == '\r' ? kBlank : columns;
    }
  }
  return kBlank;
}

bool BeginsWithAny(absl::string_view code, std::initializer_list<absl::string_view> words) {
  return std::any_of(words.begin(), words.end(), [&](absl::string_view word) {
    if (!absl::ConsumePrefix(&code, word)) return false;
    return code.empty() || code[0] == ' ' || code[0] == ':' || code[0] == '(' || code[0] == '*';
  });
}

// The end of a statement over several lines: "):".
bool Closes(absl::string_view code) {
  return !code.empty() && absl::StrContains(")]}", code.substr(0, 1));
}

bool IsFunction(absl::string_view code) { return BeginsWithAny(code, {"def", "class"}); }

// A `finally` runs without an exception, too. The interpreter's state shows one that passes
// through it.
std::optional<SourceBlockKind> KindOf(absl::string_view code) {
  if (BeginsWithAny(code, {"for", "while"})) return SourceBlockKind::kLoop;
  if (BeginsWithAny(code, {"if", "elif", "else", "match", "case"})) {
    return SourceBlockKind::kCondition;
  }
  if (BeginsWithAny(code, {"except"})) return SourceBlockKind::kHandler;
  return std::nullopt;
}

class Source {
 public:
  explicit Source(absl::string_view text) : lines_(absl::StrSplit(text, '\n')) {}

  int32_t size() const { return static_cast<int32_t>(lines_.size()); }
  int IndentationOf(int32_t line) const { return Indentation(lines_[line - 1]); }
  absl::string_view CodeOf(int32_t line) const {
    absl::string_view code = absl::StripLeadingAsciiWhitespace(lines_[line - 1]);
    absl::ConsumePrefix(&code, "async ");
    return code;
  }

  // The last line of the block that this line begins.
  int32_t EndOf(int32_t header) const {
    const int indentation = IndentationOf(header);
    int32_t last = header;
    for (int32_t line = header + 1; line <= size(); ++line) {
      const int inner = IndentationOf(line);
      if (inner == kBlank) continue;
      if (inner <= indentation && !Closes(CodeOf(line))) break;
      last = line;
    }
    return last;
  }

  // The line that begins the function around this one, or 0.
  int32_t FindFunction(int32_t line) const {
    if (line < 1 || line > size() || IndentationOf(line) == kBlank) return 0;
    int indentation = IndentationOf(line);
    for (int32_t at = line - 1; at >= 1 && indentation > 0; --at) {
      const int here = IndentationOf(at);
      if (here == kBlank || here >= indentation || Closes(CodeOf(at))) continue;
      if (IsFunction(CodeOf(at))) return at;
      indentation = here;
    }
    return 0;
  }

  // Returns nullopt if the line begins no block that decides anything, such as the else of a loop.
  std::optional<SourceBlock> Describe(int32_t first, int32_t last) const {
    const std::optional<SourceBlockKind> kind = KindOf(CodeOf(first));
    if (!kind.has_value()) return std::nullopt;
    SourceBlock block;
    block.kind = *kind;
    block.first = first;
    block.last = last;
    if (*kind == SourceBlockKind::kLoop) FindEnds(&block);
    if (*kind == SourceBlockKind::kCondition) {
      block.decides_at = FindDecision(first);
      if (block.decides_at == 0) return std::nullopt;
      block.ends_at = FindLastLeave(first, last);
      block.is_periodic = IsPeriodic(first) || IsPeriodic(block.decides_at);
    }
    return block;
  }

 private:
  // A line that also names a rank, or has two parts, may be true on some ranks only.
  bool IsPeriodic(int32_t line) const {
    const absl::string_view code = CodeOf(line);
    const auto has = [code](absl::string_view word) { return absl::StrContains(code, word); };
    return has(" % ") && !has(" and ") && !has(" or ") && !has("rank") && !has("main");
  }

  // The if or match whose branch the line begins, or 0.
  int32_t FindDecision(int32_t branch) const {
    if (BeginsWithAny(CodeOf(branch), {"if", "match"})) return branch;
    const bool is_case = BeginsWithAny(CodeOf(branch), {"case"});
    const int indentation = IndentationOf(branch);
    for (int32_t line = branch - 1; line >= 1; --line) {
      const int here = IndentationOf(line);
      const absl::string_view code = CodeOf(line);
      if (here == kBlank || here > indentation || Closes(code)) continue;
      if (is_case && here == indentation) continue;
      if (is_case) return BeginsWithAny(code, {"match"}) ? line : 0;
      if (here == indentation && BeginsWithAny(code, {"if"})) return line;
      if (here < indentation || !BeginsWithAny(code, {"elif"})) return 0;
    }
    return 0;
  }

  // The line of the last statement of the block, if it leaves the pass or the function, or 0.
  int32_t FindLastLeave(int32_t header, int32_t last) const {
    int body = 0;  // indentation; a header over several lines may go on deeper
    for (int32_t line = header + 1; line <= last; ++line) {
      const int here = IndentationOf(line);
      if (here > IndentationOf(header) && (body == 0 || here < body)) body = here;
    }
    for (int32_t line = last; line > header; --line) {
      if (IndentationOf(line) != body || Closes(CodeOf(line))) continue;
      const bool leaves = BeginsWithAny(CodeOf(line), {"return", "continue", "break", "raise"});
      return leaves ? line : 0;
    }
    return 0;
  }

  // Leaves out what belongs to a loop or a function inside.
  void FindEnds(SourceBlock* loop) const {
    int32_t inner_end = 0;
    for (int32_t line = loop->first + 1; line <= loop->last; ++line) {
      if (IndentationOf(line) == kBlank) continue;
      const absl::string_view code = CodeOf(line);
      if (line > inner_end && (IsFunction(code) || KindOf(code) == SourceBlockKind::kLoop)) {
        inner_end = EndOf(line);
      }
      if (line <= inner_end) continue;
      const bool skips = BeginsWithAny(code, {"continue", "except"});
      if (skips && loop->skips_at == 0) loop->skips_at = line;
      const bool ends = BeginsWithAny(code, {"break", "return"});
      if (ends && loop->ends_at == 0) loop->ends_at = line;
    }
  }

  const std::vector<absl::string_view> lines_;
};

}  // namespace

std::vector<SourceBlock> BlocksAround(absl::string_view text, int line, size_t most) {
  std::vector<SourceBlock> blocks;
  const Source source(text);
  if (line < 1 || line > source.size() || source.IndentationOf(line) == kBlank) return blocks;
  // A line that begins a loop stands in it: it asks for the next item.
  int indentation = source.IndentationOf(line) + 1;
  for (int32_t at = line; at >= 1 && indentation > 0; --at) {
    const int here = source.IndentationOf(at);
    if (here == kBlank || here >= indentation) continue;
    const absl::string_view code = source.CodeOf(at);
    if (Closes(code)) continue;  // the end of a header over several lines
    if (at != line || KindOf(code) == SourceBlockKind::kLoop) {
      if (IsFunction(code)) break;
      const int32_t end = source.EndOf(at);
      const std::optional<SourceBlock> block = source.Describe(at, end);
      if (block.has_value() && end >= line && blocks.size() < most) blocks.push_back(*block);
    }
    indentation = here;
  }
  std::reverse(blocks.begin(), blocks.end());
  return blocks;
}

int32_t ReturnBefore(absl::string_view text, int line) {
  const Source source(text);
  const int32_t begin = source.FindFunction(line);
  int32_t found = 0;
  for (int32_t at = begin + 1; begin != 0 && at < line; ++at) {
    if (source.IndentationOf(at) == kBlank) continue;
    const absl::string_view code = source.CodeOf(at);
    if (IsFunction(code)) {
      at = source.EndOf(at);
    } else if (BeginsWithAny(code, {"return"})) {
      found = at;
    }
  }
  return found;
}

}  // namespace rollcall
