// SPDX-License-Identifier: Apache-2.0
#include "cli/diagnose/say_logs.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "base/clean_text.h"
#include "base/cut_text.h"
#include "base/durations.h"
#include "daemon/report/wrap.h"
#include "daemon/words/terms.h"

namespace rollcall {
namespace {

constexpr size_t kMostLogsShown = 2;
constexpr int kMostLinesShown = 6;
constexpr double kLongestQuietSeconds = 365.0 * 24 * 3600;
constexpr char kIndent[] = "    ";

// "unchanged for 5 min"; empty if it has just changed, or unknown.
std::string QuietInWords(double seconds) {
  if (!std::isfinite(seconds) || seconds < 1) return "";
  const double quiet = std::min(seconds, kLongestQuietSeconds);
  return absl::StrCat(", unchanged for ",
                      DurationInWords(static_cast<int64_t>(quiet * static_cast<double>(kSecond))));
}

std::string OneLog(const LogOfRanks& of, int most_lines, size_t most_columns) {
  std::string text =
      absl::StrCat("  ", RanksInWords(of.ranks), " on ", CleanText(of.host), ": ",
                   CleanText(of.log.path()), QuietInWords(of.log.quiet_seconds()), "\n");
  for (int i = std::max(of.log.lines_size() - most_lines, 0); i < of.log.lines_size(); ++i) {
    absl::StrAppend(&text, kIndent, CutText(CleanText(of.log.lines(i)), most_columns, "..."), "\n");
  }
  return text;
}

}  // namespace

std::string LogsInShort(const LookedAtJob& job) {
  std::string text;
  const size_t shown = std::min(job.logs.size(), kMostLogsShown);
  for (size_t i = 0; i < shown; ++i) {
    if (!job.logs[i].of_culprit && i > 0) break;
    text += OneLog(job.logs[i], kMostLinesShown, kTextColumns - sizeof(kIndent) + 1);
  }
  return text.empty() ? "" : absl::StrCat("\nWhere the log ends\n", text);
}

std::string LogsInFull(const LookedAtJob& job) {
  std::string text;
  for (const LogOfRanks& of : job.logs) text += OneLog(of, of.log.lines_size(), std::string::npos);
  return text;
}

}  // namespace rollcall
