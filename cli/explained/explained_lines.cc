// SPDX-License-Identifier: Apache-2.0
#include "cli/explained/explained_lines.h"

#include <algorithm>
#include <string_view>

#include "base/clean_text.h"

namespace rollcall {
namespace {

constexpr size_t kLongestLogLine = size_t{64} << 10;  // FindExplanation() looks no further

std::string Shown(std::string_view line) {
  const size_t first = std::min(line.find_first_not_of(" \t"), line.size());
  return CleanText(line.substr(first, kLongestShownLine));
}

void Add(const Explanation& explanation, std::string_view line, uint64_t number,
         std::vector<ExplainedLine>* found) {
  const auto known = std::find_if(found->begin(), found->end(), [&](const ExplainedLine& other) {
    return other.explanation == &explanation;
  });
  if (known != found->end()) {
    ++known->count;
  } else {
    found->push_back({&explanation, Shown(line), number, 1});
  }
}

// Whether the line of which the stream has kept the beginning goes on.
bool GoesOn(const std::istream& log) { return log.fail() && !log.eof() && !log.bad(); }

// False if the line does not end within `most` bytes.
bool SkipLine(std::istream& log, uint64_t most) {
  log.clear();
  log.ignore(static_cast<std::streamsize>(most), '\n');
  return log.gcount() < static_cast<std::streamsize>(most);
}

}  // namespace

ExplainedLog ExplainLines(std::istream& log, uint64_t longest_line) {
  ExplainedLog found;
  std::vector<char> buffer(kLongestLogLine + 1);
  for (uint64_t number = 1; log.good(); ++number) {
    log.getline(buffer.data(), static_cast<std::streamsize>(buffer.size()));
    const std::string_view line(buffer.data());
    if (const Explanation* explanation = FindExplanation(line); explanation != nullptr) {
      Add(*explanation, line, number, &found.lines);
    }
    if (GoesOn(log) && !SkipLine(log, longest_line)) {
      found.endless_line = number;
      break;
    }
  }
  return found;
}

}  // namespace rollcall
