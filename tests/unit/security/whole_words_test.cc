// SPDX-License-Identifier: Apache-2.0
#include "security/whole_words.h"

#include <gtest/gtest.h>

namespace rollcall {
namespace {

TEST(WholeWordsTest, ATextThatFillsItsFieldLosesItsLastWord) {
  EXPECT_EQ(WithoutCutEnd("load from s3://me:hun", 21), "load from ...");
  EXPECT_EQ(WithoutCutEnd("load from s3://me:hun", 22), "load from s3://me:hun");
}

TEST(WholeWordsTest, OneWordThatFillsItsFieldIsANumber) {
  const std::string one = WithoutCutEnd("validate/imagenet/epoch_12/part_4", 33);
  EXPECT_EQ(one.find("imagenet"), std::string::npos);
  EXPECT_EQ(one, WithoutCutEnd("validate/imagenet/epoch_12/part_4", 33));
  EXPECT_NE(one, WithoutCutEnd("validate/imagenet/epoch_12/part_5", 33));
}

TEST(WholeWordsTest, ANameThatTheKernelHasCutShowsNoPartOfASecret) {
  for (const char* name : {"pg://u:hunter22", "u:hunter22@db.x", "job token=a1b2c"}) {
    const std::string shown = WithoutCutName(name);
    EXPECT_EQ(shown.find("hunter"), std::string::npos) << shown;
    EXPECT_EQ(shown.find("a1b"), std::string::npos) << shown;
  }
  EXPECT_EQ(WithoutCutName("job token=a1b2c"), "job ...");
}

TEST(WholeWordsTest, UsualNamesOfThreadsStay) {
  for (const char* name :
       {"pt_nccl_watchdg", "Thread-1 (worke", "ray::Trainer.fo", "u:hunter2@db"}) {
    EXPECT_EQ(WithoutCutName(name), name);
  }
}

TEST(WholeWordsTest, ATextOfWhichTheEndWasKeptLosesItsFirstWord) {
  EXPECT_EQ(WithoutCutBeginning("ter2@store/7/ready", 18), ".../7/ready");
  EXPECT_EQ(WithoutCutBeginning("ter2@store/7/ready", 19), "ter2@store/7/ready");
}

// Ranks that wait for the same key still wait for the same one.
TEST(WholeWordsTest, OneWordOfWhichTheEndWasKeptIsANumber) {
  const std::string one = WithoutCutBeginning(std::string(175, 'x'), 175);
  EXPECT_EQ(one.find('x'), std::string::npos);
  EXPECT_EQ(one, WithoutCutBeginning(std::string(175, 'x'), 175));
  EXPECT_NE(one, WithoutCutBeginning(std::string(174, 'x') + "y", 175));
}

TEST(WholeWordsTest, AnExceptionThatWasCutKeepsItsLine) {
  const std::string text = "ValueError: no s3://me:hun at train.py:57";
  EXPECT_EQ(WithoutCutMessage(text, text.size()), "ValueError: no ... at train.py:57");
  EXPECT_EQ(WithoutCutMessage(text, text.size() + 1), text);
}

struct NoSite {
  const char* name;
  const char* text;
};

class NoSiteTest : public testing::TestWithParam<NoSite> {};

// The message may look like its end.
TEST_P(NoSiteTest, LosesItsLastWord) {
  const std::string text = GetParam().text;
  EXPECT_EQ(WithoutCutMessage(text, text.size()), "KeyError: look at ...");
}

INSTANTIATE_TEST_SUITE_P(Texts, NoSiteTest,
                         testing::Values(NoSite{"an_address", "KeyError: look at s3://me:12"},
                                         NoSite{"a_path", "KeyError: look at /x/train.py:57"},
                                         NoSite{"a_host", "KeyError: look at me:1234"},
                                         NoSite{"no_line", "KeyError: look at train.py:5x"},
                                         NoSite{"nothing", "KeyError: look at train.py:"}),
                         [](const auto& one) { return std::string(one.param.name); });

}  // namespace
}  // namespace rollcall
