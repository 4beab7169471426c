// SPDX-License-Identifier: Apache-2.0
#include "base/clean_stream.h"

#include <gtest/gtest.h>

#include <sstream>

namespace rollcall {
namespace {

TEST(CleanStreamTest, PassesTextAndLinesAndNoControlCharacters) {
  std::ostringstream out;
  {
    const CleanStream clean(&out);
    out << "rollcall: no job " << "\x1b[31mGr\xc3\xb6\xc3\x9f"
        << "e\xe2\x80\xae" << 'x' << '\x07' << 7 << "\n  next" << std::endl;
  }
  EXPECT_EQ(out.str(),
            "rollcall: no job ?[31mGr\xc3\xb6\xc3\x9f"
            "e?x?7\n  next\n");
  out << "\x1b";
  EXPECT_EQ(out.str().back(), '\x1b') << "it has ended";
}

}  // namespace
}  // namespace rollcall
