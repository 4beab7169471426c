// SPDX-License-Identifier: Apache-2.0
#include "cli/explained/explained_lines.h"

#include <algorithm>
#include <limits>
#include <string_view>

#include "base/clean_text.h"

namespace rollcall {
namespace {

constexpr size_t kLongestLogLine = size_t{64} << 10;  // FindExplanation() looks no further

std::string Shown(std::string_view line) {
  const size_t first = std::min(line.find_first_not_of(" \t"), line.size());
  return CleanText(line.substr(first, kLongestShownLine));
}

}  // namespace

std::vector<ExplainedLine> ExplainLines(std::istream& log) {
  std::vector<ExplainedLine> found;
  std::vector<char> buffer(kLongestLogLine + 1);
  for (uint64_t number = 1; log.good(); ++number) {
    log.getline(buffer.data(), static_cast<std::streamsize>(buffer.size()));
    const std::string_view line(buffer.data());
    if (log.fail() && !log.eof() && !log.bad()) {  // the line goes on
      log.clear();
      log.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
    }
    const Explanation* explanation = FindExplanation(line);
    if (explanation == nullptr) continue;
    const auto known = std::find_if(found.begin(), found.end(), [&](const ExplainedLine& other) {
      return other.explanation == explanation;
    });
    if (known != found.end()) {
      ++known->count;
    } else {
      found.push_back({explanation, Shown(line), number, 1});
    }
  }
  return found;
}

}  // namespace rollcall
