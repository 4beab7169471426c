// SPDX-License-Identifier: Apache-2.0
#include "cli/error_lines.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "base/clean_text.h"
#include "base/cut_text.h"

namespace rollcall {
namespace {

constexpr std::streamsize kMostBytes = 256 << 20;
constexpr size_t kMostErrors = 1024;  // writers of one log
constexpr size_t kLongestHost = 253;  // DNS
constexpr size_t kTimeWithin = 96;    // first characters of a line
// One byte more than the redactor searches, so that it leaves out a word that is cut there.
constexpr size_t kLongestLine = kMaxRedactedText + 1;

bool IsDigit(char c) { return absl::ascii_isdigit(static_cast<unsigned char>(c)); }

// The number at the beginning of `text`, which it takes away.
std::optional<int32_t> TakeNumber(absl::string_view* text) {
  size_t digits = 0;
  while (digits < text->size() && IsDigit((*text)[digits])) ++digits;
  int32_t number = 0;
  if (digits == 0 || !absl::SimpleAtoi(text->substr(0, digits), &number)) return std::nullopt;
  text->remove_prefix(digits);
  return number;
}

// 3 for "[rank3]: text" of torchrun, "[Rank 3] text" of PyTorch and "[1,3]<stderr>:text" of mpirun.
std::optional<int32_t> RankInLine(absl::string_view line) {
  for (const absl::string_view before : {"[rank", "[Rank ", "[1,"}) {
    const size_t at = line.find(before);
    if (at == absl::string_view::npos || at > kTimeWithin) continue;
    absl::string_view rest = line.substr(at + before.size());
    const std::optional<int32_t> rank = TakeNumber(&rest);
    if (rank && absl::StartsWith(rest, "]")) return rank;
  }
  return std::nullopt;
}

// Host and process of "node-17:4121:4130 [3] NCCL WARN text".
void ReadNcclPrefix(absl::string_view line, LogWriter* writer) {
  const size_t end = line.find(" NCCL ");
  if (end == absl::string_view::npos) return;
  for (const absl::string_view word : absl::StrSplit(line.substr(0, end), ' ', absl::SkipEmpty())) {
    const std::vector<absl::string_view> parts = absl::StrSplit(word, ':');
    int32_t pid = 0;
    if (parts.size() != 3 || parts[0].empty() || IsDigit(parts[0][0])) continue;
    if (!absl::SimpleAtoi(parts[1], &pid) || pid <= 0) continue;
    writer->host = CutText(CleanText(std::string(parts[0])), kLongestHost);
    writer->pid = pid;
  }
}

bool IsClock(absl::string_view text) {
  return text.size() >= 8 && IsDigit(text[0]) && IsDigit(text[1]) && text[2] == ':' &&
         IsDigit(text[3]) && IsDigit(text[4]) && text[5] == ':' && IsDigit(text[6]) &&
         IsDigit(text[7]);
}

bool IsDate(absl::string_view text) {
  return text.size() == 10 && text[4] == '-' && text[7] == '-' &&
         std::count_if(text.begin(), text.end(), IsDigit) == 8;
}

std::string TimeInLine(absl::string_view line) {
  line = line.substr(0, kTimeWithin);
  for (size_t i = 0; i + 8 <= line.size(); ++i) {
    if (!IsClock(line.substr(i)) || (i > 0 && IsDigit(line[i - 1]))) continue;
    size_t end = i + 8;
    while (end < line.size() && (IsDigit(line[end]) || line[end] == '.')) ++end;
    const bool dated = i >= 11 && IsDate(line.substr(i - 11, 10));
    const size_t begin = dated ? i - 11 : i;
    return std::string(line.substr(begin, end - begin));
  }
  return "";
}

// Removes what launchers put before a line: "[rank3]: ".
absl::string_view WithoutPrefix(absl::string_view line) {
  while (absl::StartsWith(line, "[rank") || absl::StartsWith(line, "[1,")) {
    const size_t end = line.find(':');
    if (end == absl::string_view::npos) break;
    line.remove_prefix(end + 1);
    if (absl::StartsWith(line, " ")) line.remove_prefix(1);
  }
  return line;
}

// "ValueError: text", "torch.cuda.OutOfMemoryError: text".
bool IsException(absl::string_view line) {
  const absl::string_view name = line.substr(0, line.find(':'));
  if (name.size() == line.size() || name.find(' ') != absl::string_view::npos) return false;
  return absl::EndsWith(name, "Error") || absl::EndsWith(name, "Exception");
}

bool IsError(absl::string_view line) {
  constexpr absl::string_view kMarks[] = {
      "NCCL WARN", "Watchdog caught",  "CUDA error", "Segmentation fault",
      "Bus error", "terminate called", "oom-kill"};
  return IsException(line) ||
         std::any_of(std::begin(kMarks), std::end(kMarks),
                     [line](absl::string_view mark) { return absl::StrContains(line, mark); });
}

// NCCL's text follows its prefix.
absl::string_view TextOf(absl::string_view line) {
  const size_t at = line.find("NCCL WARN");
  return at == absl::string_view::npos ? line : line.substr(at);
}

// No pattern matches a secret that has been cut, so the whole line is searched first.
std::string ShownError(absl::string_view line, const Redactor& redactor) {
  const std::string clean = CleanText(redactor.Redact(line));
  return CutText(std::string(absl::StripAsciiWhitespace(TextOf(clean))), kLongestErrorLine);
}

// The lines of a log, in limited memory: of a longer line than kLongestLine only its beginning.
class LogLines {
 public:
  explicit LogLines(std::istream& log) : log_(log) {}

  // Returns false at the end, or when all that may be read has been read.
  bool Next() {
    if (bytes_ >= kMostBytes) return false;
    log_.getline(buffer_.data(), static_cast<std::streamsize>(buffer_.size()));
    const std::streamsize got = log_.gcount();
    if (got == 0) return false;
    bytes_ += got;
    const bool goes_on = log_.fail() && !log_.eof() && !log_.bad();
    // Without the end of the line.
    length_ = static_cast<size_t>(got) - (goes_on || log_.eof() ? 0 : 1);
    if (goes_on) SkipRest();
    return true;
  }
  absl::string_view line() const { return absl::string_view(buffer_.data(), length_); }

 private:
  void SkipRest() {
    log_.clear();
    log_.ignore(kMostBytes, '\n');
    bytes_ += log_.gcount();
  }

  std::istream& log_;
  std::vector<char> buffer_ = std::vector<char>(kLongestLine + 1);
  size_t length_ = 0;
  std::streamsize bytes_ = 0;  // read
};

}  // namespace

int32_t RankInPath(const std::string& path) {
  const std::vector<absl::string_view> parts = absl::StrSplit(path, '/', absl::SkipEmpty());
  if (parts.empty()) return -1;
  const size_t at = parts.back().rfind("rank");
  if (at != absl::string_view::npos) {
    absl::string_view rest = parts.back().substr(at + 4);
    if (!rest.empty() && !IsDigit(rest[0])) rest.remove_prefix(1);
    if (const std::optional<int32_t> rank = TakeNumber(&rest)) return *rank;
  }
  int32_t rank = -1;
  const bool is_stream =
      absl::StartsWith(parts.back(), "stderr") || absl::StartsWith(parts.back(), "stdout");
  if (is_stream && parts.size() > 1 && absl::SimpleAtoi(parts[parts.size() - 2], &rank))
    return rank;
  return -1;
}

std::vector<ErrorLine> FindFirstErrors(std::istream& log, const std::string& path,
                                       const Redactor& redactor) {
  std::vector<ErrorLine> errors;
  std::set<std::tuple<int32_t, std::string, int32_t>> known;
  const int32_t rank_of_log = RankInPath(path);
  LogLines lines(log);
  for (uint64_t number = 1; errors.size() < kMostErrors && lines.Next(); ++number) {
    const absl::string_view line = lines.line();
    const absl::string_view text = WithoutPrefix(line);
    if (!IsError(text)) continue;
    ErrorLine error;
    error.writer.rank = RankInLine(line).value_or(rank_of_log);
    if (error.writer.rank < 0) ReadNcclPrefix(line, &error.writer);
    if (!known.emplace(error.writer.rank, error.writer.host, error.writer.pid).second) continue;
    error.time = TimeInLine(line);
    error.text = ShownError(text, redactor);
    error.path = path;
    error.line = number;
    errors.push_back(std::move(error));
  }
  return errors;
}

}  // namespace rollcall
