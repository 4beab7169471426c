// SPDX-License-Identifier: Apache-2.0
// CleanText() on text from jobs and the network.
#include "base/clean_text.h"

#include <gtest/gtest.h>

#include <string>

namespace rollcall {
namespace {

struct Case {
  const char* name;
  std::string text, clean;
};

class CleanTextTest : public testing::TestWithParam<Case> {};

TEST_P(CleanTextTest, Becomes) {
  EXPECT_EQ(CleanText(GetParam().text), GetParam().clean);
  EXPECT_EQ(IsCleanText(GetParam().text), GetParam().text == GetParam().clean);
  EXPECT_TRUE(IsCleanText(GetParam().clean));
}

INSTANTIATE_TEST_SUITE_P(
    Text, CleanTextTest,
    testing::Values(Case{"words_stay", "train.py --lr=3e-4 'a b'", "train.py --lr=3e-4 'a b'"},
                    Case{"other_scripts_stay", "Größe \xe8\xae\xad\xe7\xbb\x83 \xf0\x9f\x98\x80",
                         "Größe \xe8\xae\xad\xe7\xbb\x83 \xf0\x9f\x98\x80"},
                    Case{"escape", "a\x1b[2Jb", "a?[2Jb"},
                    Case{"zero_byte", std::string("a\0b", 3), "a?b"},
                    Case{"white_space_is_one_line", "a\tb\r\nc", "a b  c"},
                    Case{"delete",
                         "a\x7f"
                         "b",
                         "a?b"},
                    Case{"c1_as_utf8",
                         "a\xc2\x9b"
                         "2Jb",
                         "a?2Jb"},
                    Case{"all_of_c1", "\xc2\x80\xc2\x9f\xc2\xa0", "??\xc2\xa0"},
                    Case{"next_line",
                         "a\xc2\x85"
                         "b",
                         "a b"},
                    Case{"line_separators",
                         "a\xe2\x80\xa8"
                         "b\xe2\x80\xa9"
                         "c",
                         "a b c"},
                    Case{"c1_as_a_byte",
                         "a\x9b"
                         "2Jb",
                         "a?2Jb"},
                    Case{"right_to_left_override",
                         "a\xe2\x80\xae"
                         "b",
                         "a?b"},
                    Case{"isolates", "\xe2\x81\xa6\xe2\x81\xa9\xd8\x9c\xe2\x80\x8f", "????"},
                    Case{"cut_sequence", "a\xe2\x80", "a??"},
                    Case{"overlong", "\xc0\xaf\xe0\x80\xaf", "?????"},
                    Case{"surrogate", "\xed\xa0\x80", "???"},
                    Case{"beyond_unicode", "\xf4\x90\x80\x80", "????"}, Case{"nothing", "", ""}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(CleanLines, CleansEachLineAndKeepsTheLines) {
  EXPECT_EQ(CleanLines("no job \x1b[31m\n  type:  rollcall\tstatus\r\n\xff\xe2\x80\xae"),
            "no job ?[31m\n  type:  rollcall status \n??");
  EXPECT_EQ(CleanLines(""), "");
  EXPECT_EQ(CleanLines("\n"), "\n");
}

}  // namespace
}  // namespace rollcall
