// SPDX-License-Identifier: Apache-2.0
// Long sentences: which of their ranks and clauses stay.
#include "daemon/words/fit_sentence.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

namespace rollcall {
namespace {

TEST(FitSentenceTest, ListsOfRanksBecomeShorter) {
  for (const auto& [text, fewer] : {
           std::pair("ranks 0,2,4,6 wait", "ranks 0,2 and 2 more wait"),
           std::pair("ranks 0-3,8-11,16-19 and 40 more", "ranks 0-3,8-11 and 44 more"),
           std::pair("ranks 0,2, ranks 1,3,5: ranks 0-5",
                     "ranks 0,2, ranks 1,3 and 1 more: ranks 0-5"),
           std::pair("ranks 0,2,4 and 3 others", "ranks 0,2 and 1 more and 3 others"),
           std::pair("rank 3; 4 ranks have waited 9 s", "rank 3; 4 ranks have waited 9 s"),
           std::pair("all ranks - and none", "all ranks - and none"),
           std::pair("the ranks ", "the ranks "),
       }) {
    EXPECT_EQ(NameFewerRanks(text, 2), fewer);
  }
}

TEST(FitSentenceTest, NoMoreIsLeftOutThanNeeded) {
  const std::string text = "ranks 0,2,4,6,8,10,12,14,16,18 called AllReduce";
  EXPECT_EQ(FitSentence(text, text.size()), text);
  EXPECT_EQ(FitSentence(text, text.size() - 1), "ranks 0,2,4,6 and 6 more called AllReduce");
  EXPECT_EQ(FitSentence(text, 36), "ranks 0 and 9 more called AllReduce");
}

TEST(FitSentenceTest, ASentenceEndsBehindAClause) {
  const std::string text =
      "rank 1 called AllReduce(float32 x 8, sum) where rank 2 called Broadcast(float32 x 8, root 0): "
      "call #24";
  EXPECT_EQ(FitSentence(text, 90), "rank 1 called AllReduce(float32 x 8, sum)...");
  EXPECT_EQ(FitSentence(text, text.size() - 1),
            "rank 1 called AllReduce(float32 x 8, sum) where rank 2 called Broadcast(float32 x 8, "
            "root 0)...");
}

TEST(FitSentenceTest, OfALongClauseTheBeginStays) {
  const std::string text =
      "rank 3 called AllReduce(float32 x 3, sum), while it handles RuntimeError: The size of tensor a "
      "(8) must match the size of tensor b (4) at non-singleton dimension 0";
  EXPECT_EQ(FitSentence(text, 150), text.substr(0, 147) + "...");
}

TEST(FitSentenceTest, NoClauseEndsInsideOfANameOrOfParentheses) {
  EXPECT_EQ(FitSentence("rank 1 (n1, pid 71) on \"a, b and c\", more words than fit", 45),
            "rank 1 (n1, pid 71) on \"a, b and c\"...");
}

TEST(FitSentenceTest, AClauseThatIsTooLongIsCut) {
  const std::string text = std::string(100, 'x');
  EXPECT_EQ(FitSentence(text, 20), std::string(17, 'x') + "...");
  EXPECT_EQ(FitSentence(text, 2), "");
}

}  // namespace
}  // namespace rollcall
