// SPDX-License-Identifier: Apache-2.0
#include "service/settings_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

namespace rollcall {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string ErrorOf(const std::string& text) {
  const auto settings = ParseSettings(text, "a.yaml");
  return settings.ok() ? "" : std::string(settings.status().message());
}

TEST(SettingsFileTest, ReadsWordsAndListsWithTheirLines) {
  const auto settings = ParseSettings(
      "# a comment\nlisten: 0.0.0.0:7655\n\ngrant:\n  - agent=dns:*.a\n  - viewer=dns:b\n",
      "a.yaml");
  ASSERT_TRUE(settings.ok()) << settings.status();
  ASSERT_EQ(settings->size(), 2u);
  const Setting& listen = settings->at(0);
  EXPECT_EQ(listen.name, "listen");
  EXPECT_THAT(listen.values, ElementsAre("0.0.0.0:7655"));
  EXPECT_FALSE(listen.is_list);
  EXPECT_EQ(listen.line, 2);
  const Setting& grant = settings->at(1);
  EXPECT_THAT(grant.values, ElementsAre("agent=dns:*.a", "viewer=dns:b"));
  EXPECT_TRUE(grant.is_list);
  EXPECT_EQ(grant.line, 4);
}

// YAML takes off and no for false.
TEST(SettingsFileTest, TakesAValueAsItIsWritten) {
  const auto settings = ParseSettings("stacks: off\nhost: no\nkeep-jobs: 1h\n", "a.yaml");
  ASSERT_TRUE(settings.ok()) << settings.status();
  EXPECT_THAT(settings->at(0).values, ElementsAre("off"));
  EXPECT_THAT(settings->at(1).values, ElementsAre("no"));
}

TEST(SettingsFileTest, AFileWithOnlyCommentsSetsNothing) {
  for (const char* text : {"", "# nothing\n", "---\n"}) {
    const auto settings = ParseSettings(text, "a.yaml");
    ASSERT_TRUE(settings.ok()) << settings.status();
    EXPECT_THAT(*settings, IsEmpty()) << text;
  }
}

TEST(SettingsFileTest, NamesFileAndLineOfEachError) {
  EXPECT_EQ(ErrorOf("host: a\nlisten:\nhost: b\n"),
            "a.yaml:2: listen has no value; give one, or put # before the line\n"
            "a.yaml:3: host stands in line 1 already; keep one of them");
  EXPECT_THAT(ErrorOf("host: a\nlisten: [a\n"), HasSubstr("a.yaml:3: not YAML: "));
  EXPECT_THAT(ErrorOf("tls:\n  cert: a\n"), HasSubstr("a.yaml:1: tls has keys below it"));
  EXPECT_THAT(ErrorOf("grant: [[a]]\n"), HasSubstr("a.yaml:1: grant has a list with something"));
  EXPECT_THAT(ErrorOf("- host\n"), HasSubstr("a.yaml:1: write one flag a line"));
  EXPECT_THAT(ErrorOf("--host=a\n"), HasSubstr("a.yaml:1: write one flag a line"));
  EXPECT_THAT(ErrorOf("host: a\n---\nhost: b\n"), HasSubstr("a second document begins"));
}

class SettingsTextTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char folder[] = "/tmp/rollcall-settings-XXXXXX";
    ASSERT_NE(mkdtemp(folder), nullptr);
    folder_ = folder;
  }
  void TearDown() override {
    unlink(Path().c_str());
    rmdir(folder_.c_str());
  }
  std::string Path() const { return folder_ + "/a.yaml"; }
  std::string folder_;
};

TEST_F(SettingsTextTest, ReadsTheWholeFile) {
  const std::string text(100'000, 'a');
  std::ofstream(Path()) << text;
  const auto read = ReadSettingsText(Path());
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(*read, text);
}

TEST_F(SettingsTextTest, SaysWhyItCannotRead) {
  EXPECT_EQ(ReadSettingsText(Path()).status().message(),
            "cannot read " + Path() + ": No such file or directory");
  ASSERT_EQ(mkfifo(Path().c_str(), 0600), 0);
  EXPECT_EQ(ReadSettingsText(Path()).status().message(),
            "cannot read " + Path() + ": it is not a regular file");
  ASSERT_EQ(unlink(Path().c_str()), 0);
  std::ofstream(Path()) << std::string((1 << 20) + 1, 'a');
  EXPECT_THAT(std::string(ReadSettingsText(Path()).status().message()),
              HasSubstr("is larger than a MiB"));
}

}  // namespace
}  // namespace rollcall
