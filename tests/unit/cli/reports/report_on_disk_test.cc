// SPDX-License-Identifier: Apache-2.0
#include "cli/reports/report_on_disk.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "daemon/report/json.h"
#include "daemon/report/writer.h"
#include "temporary_tree.h"

namespace rollcall {
namespace {

using testing::HasSubstr;

v1::Incident Hang() {
  v1::Incident incident;
  incident.set_id("train-1");
  incident.set_job("train");
  incident.add_verdicts()->set_cause("missing_rank");
  return incident;
}

TEST(ReportOnDiskTest, AReportIsReadAsItWasWritten) {
  const TemporaryTree tree;
  const auto folder = CreateReport(tree.root(), Hang());
  ASSERT_TRUE(folder.ok()) << folder.status();
  for (const std::string& path : {*folder, *folder + "/incident.json"}) {
    const auto read = ReadReport(path);
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(read->id(), "train-1");
    EXPECT_EQ(read->verdicts(0).cause(), "missing_rank");
  }
}

TEST(ReportOnDiskTest, FieldsOfALaterReleaseAreLeftOutAndTextsAreCleaned) {
  const TemporaryTree tree;
  tree.Write("r/incident.json", R"({"id": "a\u001b[2J", "look": {"why": "x"}, "new": [1]})");
  const auto read = ReadReport(tree.root() + "/r");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->id(), "a?[2J");
}

struct BadCase {
  const char* content;  // nullptr if there is no file
  const char* words;
};

TEST(ReportOnDiskTest, WhatIsDamagedIsAnErrorWithItsName) {
  const std::string whole = ToJson(Hang()).value();
  const std::string cut = whole.substr(0, whole.size() / 2);
  const BadCase cases[] = {
      {nullptr, "is not the folder of a report: it has no incident.json"},
      {"", "is damaged: it is empty"},
      {cut.c_str(), "is damaged: it does not hold one incident"},
      {"[1, 2]", "is damaged"},
      {"{\"verdicts\": 7}", "is damaged"},
      {"{}", "holds no incident"},
      {"\x7f\x45\x4c\x46\xff", "is damaged"},
  };
  for (const BadCase& bad : cases) {
    const TemporaryTree tree;
    tree.Write("other", "");
    if (bad.content != nullptr) tree.Write("incident.json", bad.content);
    EXPECT_THAT(std::string(ReadReport(tree.root()).status().message()), HasSubstr(bad.words));
    EXPECT_THAT(std::string(ReadReport(tree.root()).status().message()), HasSubstr(tree.root()));
  }
}

TEST(ReportOnDiskTest, WhatIsNotAFileIsNotOpened) {
  const TemporaryTree tree;
  ASSERT_EQ(mkfifo((tree.root() + "/incident.json").c_str(), 0600), 0);
  EXPECT_THAT(std::string(ReadReport(tree.root()).status().message()),
              HasSubstr("is not a regular file"));
  EXPECT_THAT(std::string(ReadReport(tree.root() + "/none").status().message()),
              HasSubstr("No such file"));
}

TEST(ReportOnDiskTest, NestingWithoutEndIsAnError) {
  const TemporaryTree tree;
  tree.Write("deep.json", absl::StrCat("{\"a\":", std::string(100'000, '[')));
  EXPECT_FALSE(ReadReport(tree.root() + "/deep.json").ok());
}

TEST(ReportOnDiskTest, AnIdIsNotAPath) {
  const TemporaryTree tree;
  tree.Write("train-1/notes", "");
  tree.Write("report/incident.json", "{}");
  tree.Write("kept.json", "{}");
  const std::string before = std::filesystem::current_path();
  std::filesystem::current_path(tree.root());
  for (const char* path : {"report", "kept.json", "./train-1", "../x", "/none", "."})
    EXPECT_TRUE(IsReportPath(path)) << path;
  for (const char* id : {"train-1", "none.json", "a:train-1", "models/llama-1", ""})
    EXPECT_FALSE(IsReportPath(id)) << id;
  std::filesystem::current_path(before);
}

}  // namespace
}  // namespace rollcall
