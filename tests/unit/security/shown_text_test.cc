// SPDX-License-Identifier: Apache-2.0
#include "security/shown_text.h"

#include <gtest/gtest.h>

namespace rollcall {
namespace {

using std::string_literals::operator""s;

struct Shown {
  std::string written;
  std::string shown;
};

const Shown kShown[] = {
    {"", ""},
    {"plain\ttext\r\n", "plain\ttext\r\n"},
    {"\x1b[36mpassword\x1b[0m=\x1b[38;5;7mx", "password=x"},
    {"\x1b[2J\x1b[?25hx\x1b[K", "x"},
    {"Bearer\x1b[5Cx", "Bearer x"},
    {"\x1b]0;title\x07x", "x"},
    {"\x1b]8;;http://host\x1b\\link\x1b]8;;\x1b\\", "link"},
    {"\x1b]0;never ends\nnext", "\nnext"},
    {"\x1b(Bx\x1b=y\x1b", "xy"},
    {"\x1b[3", ""},
    {"\xc2\x9b"
     "1mx",
     "x"},
    {"p\0ass\x7fw\x01ord"s, "password"},
    {"pp\x08\x08password", "password"},
    {"one\n\x08\x08two", "one\ntwo"},
    {"\xc3\xa9\x08"
     "e",
     "e"},
    {"pass\xe2\x80\x8bword\xef\xbb\xbf", "password"},
    {"pass\xc2\xadword", "password"},
    {"a\xc2\xa0"
     "b\xe3\x80\x80"
     "c\xe2\x80\x89"
     "d\xc2\x85",
     "a b c d "},
    {"\xff\xfe x \xe2\x80", "\xff\xfe x \xe2?"},
    {"pass\xe2\x1b[0m\x80\x8bword", "pass\xe2??word"},
    {"Gr\xc3\xbc\xc3\x9f"
     "e \xe4\xb8\xad",
     "Gr\xc3\xbc\xc3\x9f"
     "e \xe4\xb8\xad"},
};

TEST(ShownTextTest, IsWhatATerminalShows) {
  for (const Shown& c : kShown) EXPECT_EQ(ShownText(c.written), c.shown) << c.written;
}

TEST(ShownTextTest, StaysAsItIsAndIsNeverLonger) {
  for (const Shown& c : kShown) {
    for (size_t size = 0; size <= c.written.size(); ++size) {
      const std::string once = ShownText(c.written.substr(0, size));
      EXPECT_LE(once.size(), size);
      EXPECT_EQ(ShownText(once), once);
    }
  }
}

}  // namespace
}  // namespace rollcall
