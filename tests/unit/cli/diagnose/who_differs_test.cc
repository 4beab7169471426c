// SPDX-License-Identifier: Apache-2.0
#include "cli/diagnose/who_differs.h"

#include <gtest/gtest.h>

#include <vector>

#include "look_builder.h"

namespace rollcall {
namespace {

RankStack At(int32_t rank, int line, const char* function) {
  RankStack stack = {rank, {}};
  FillStack({{{"__recv", ""}, {function, "/x/train.py", line}}}, kFirstPid + rank, &stack.second);
  return stack;
}

TEST(WhoDiffersTest, NamesTheFewestFirst) {
  EXPECT_EQ(WhoDiffers({At(0, 20, "train"), At(1, 50, "validate"), At(2, 20, "train")}),
            "rank 1 is at train.py:50 in validate; ranks 0,2 are at train.py:20 in train");
}

TEST(WhoDiffersTest, SaysThatAllAreAtOneLine) {
  EXPECT_EQ(WhoDiffers({At(0, 20, "train"), At(1, 20, "train")}),
            "all 2 ranks are at train.py:20 in train");
}

TEST(WhoDiffersTest, NamesAFewPlaces) {
  std::vector<RankStack> stacks;
  for (int rank = 0; rank < 6; ++rank) stacks.push_back(At(rank, 10 + rank, "train"));
  EXPECT_NE(WhoDiffers(stacks).find("and 2 more places"), std::string::npos) << WhoDiffers(stacks);
}

TEST(WhoDiffersTest, SaysNothingWithoutAProgram) {
  RankStack stack = {0, {}};
  FillStack({{{"__recv", ""}}}, kFirstPid, &stack.second);
  EXPECT_EQ(WhoDiffers({stack}), "");
}

TEST(WithoutInterpreterTest, KeepsTheOtherFrames) {
  v1::ProcessStack stack;
  FillStack({{{"read", ""}, {"_PyEval_EvalFrameDefault", ""}, {"train", "/x/train.py", 9}}}, 1,
            &stack);
  stack.mutable_threads(0)->mutable_frames(1)->set_interpreter(true);
  const v1::ProcessStack rest = WithoutInterpreter(stack);
  ASSERT_EQ(rest.threads(0).frames_size(), 2);
  EXPECT_EQ(rest.threads(0).frames(1).function(), "train");
}

}  // namespace
}  // namespace rollcall
