// SPDX-License-Identifier: Apache-2.0
// What lines of the logs of distributed training jobs mean: log_lines.txt has the lines.
#include "cli/explained/explanations.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/read_file.h"

namespace rollcall {
namespace {

// A line of a log, and the row that explains it; "-": none.
struct Case {
  std::string id, line;
};

std::vector<Case> Cases() {
  std::vector<Case> cases;
  std::ifstream file(ROLLCALL_LOG_LINES);
  for (std::string id, line; file >> id && std::getline(file >> std::ws, line);) {
    if (id != "#") cases.push_back({id, line});
  }
  return cases;
}

std::string IdOf(std::string_view line) {
  const Explanation* row = FindExplanation(line);
  return row == nullptr ? "-" : row->id;
}

TEST(ExplanationsTest, EachLineFindsItsRow) {
  for (const Case& c : Cases()) EXPECT_EQ(IdOf(c.line), c.id) << c.line;
}

TEST(ExplanationsTest, EachRowHasALineAndHealthyJobsHaveMany) {
  std::map<std::string, size_t> lines;
  for (const Case& c : Cases()) ++lines[c.id];
  for (const Explanation& row : Explanations()) EXPECT_GE(lines[row.id], 1u) << row.id;
  EXPECT_GE(lines["-"], 40u);
  EXPECT_EQ(lines.size(), Explanations().size() + 1);
}

TEST(ExplanationsTest, IdsAreUnique) {
  std::set<std::string> ids;
  for (const Explanation& row : Explanations()) EXPECT_TRUE(ids.insert(row.id).second) << row.id;
}

TEST(ExplanationsTest, NoFieldIsEmptyOrTooLong) {
  for (const Explanation& row : Explanations()) {
    EXPECT_STRNE(row.id, "");
    EXPECT_NE(row.texts[0], "") << row.id;
    EXPECT_STRNE(row.means, "") << row.id;
    EXPECT_STRNE(row.run, "") << row.id;
    EXPECT_STRNE(row.source, "") << row.id;
    for (const char* field : {row.means, row.beware, row.run}) {
      EXPECT_LE(std::strlen(field), 300u) << row.id << ": " << field;
    }
  }
}

TEST(ExplanationsTest, EmptyTextsAreAtTheEnd) {
  for (const Explanation& row : Explanations()) {
    EXPECT_TRUE(std::is_partitioned(std::begin(row.texts), std::end(row.texts),
                                    [](std::string_view text) { return !text.empty(); }))
        << row.id;
  }
}

TEST(ExplanationsTest, TheCaseOfLettersDoesNotCount) {
  EXPECT_EQ(IdOf("NCCL watchdog: WATCHDOG CAUGHT COLLECTIVE OPERATION TIMEOUT"),
            "torch-watchdog-timeout");
}

TEST(ExplanationsTest, TheOrderOfTheTextsCounts) {
  EXPECT_EQ(IdOf("keys: 0; wait timeout after 300000 steps, ms"), "-");
  EXPECT_EQ(IdOf("wait timeout after 300000ms, keys: 0"), "store-wait-timeout");
}

TEST(ExplanationsTest, TheFirstRowThatMatchesCounts) {
  EXPECT_EQ(IdOf("NCCL watchdog thread terminated with exception: Watchdog caught collective "
                 "operation timeout"),
            "torch-watchdog-timeout");
}

TEST(ExplanationsTest, OnlyTheFirst64KiBOfALineCount) {
  constexpr std::string_view kText = "Watchdog caught collective operation timeout";
  const size_t limit = size_t{64} << 10;
  EXPECT_EQ(IdOf(std::string(limit - kText.size(), ' ').append(kText)), "torch-watchdog-timeout");
  EXPECT_EQ(IdOf(std::string(limit - kText.size() + 1, ' ').append(kText)), "-");
}

TEST(ExplanationsTest, AnyBytesAreALine) {
  EXPECT_EQ(IdOf(std::string_view()), "-");
  EXPECT_EQ(IdOf(std::string_view("\0\xff\n", 3)), "-");
}

std::string Document() {
  std::string text =
      "# Lines of logs\n\nLook up here what a well-known line in the log of a training job means, what "
      "it does not mean, and what to run next. `rollcall explain \"THE LINE\"` and `rollcall explain "
      "FILE` find the entry for you. `ROLLCALL_WRITE_DOCS=1 cli_library_test` generates this page "
      "from the tables in `cli/explained/`.\n";
  for (const Explanation& row : Explanations()) {
    text += std::string("\n## ") + row.id + "\n\n*The line:* `";
    for (const std::string_view part : row.texts) {
      if (!part.empty()) text += (part == row.texts[0] ? "" : " ... ") + std::string(part);
    }
    text += std::string("`\n\n") + row.means + "\n\n";
    if (*row.beware != '\0') text += std::string("*Beware:* ") + row.beware + "\n\n";
    text += std::string("**Next:** ") + row.run + "\n\n*Source:* " + row.source + "\n";
  }
  return text;
}

TEST(ExplanationsTest, TheDocumentationIsTheTable) {
  const std::string path = ROLLCALL_DOCS "/log_lines.md";
  if (std::getenv("ROLLCALL_WRITE_DOCS") != nullptr) std::ofstream(path) << Document();
  const std::string text = ReadFile(path).value_or("");
  EXPECT_EQ(text, Document()) << "run: ROLLCALL_WRITE_DOCS=1 cli_library_test";
}

}  // namespace
}  // namespace rollcall
