// SPDX-License-Identifier: Apache-2.0
// Which answers the cache keeps, for how long, and in how much memory.
#include "daemon/queries/answer_cache.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace rollcall {
namespace {

constexpr int64_t kLeast = 100, kMost = 1000;

class AnswerCacheTest : public testing::Test {
 protected:
  // Requests an answer of this size; returns whether it was made anew.
  bool Make(const std::string& key, size_t size, int64_t now_ns = 5000) {
    bool made = false;
    const auto answer = cache_.Get(key, 1, now_ns, [&] {
      made = true;
      return absl::StatusOr<std::string>(std::string(size, 'x'));
    });
    EXPECT_EQ((*answer)->json.size(), size);
    return made;
  }

  AnswerCache cache_{kLeast, kMost, 100'000};
};

TEST_F(AnswerCacheTest, MakesAnAnswerOnceForManyViewers) {
  EXPECT_TRUE(Make("a", 1000));
  EXPECT_FALSE(Make("a", 1000));
  EXPECT_TRUE(Make("a", 1000, 5000 + kMost));
}

TEST_F(AnswerCacheTest, KeepsTheNewestAnswersUpToANumberOfBytes) {
  EXPECT_TRUE(Make("viewed", 1000));
  for (int i = 0; i < 1000; ++i) {
    Make(absl::StrCat("made up ", i), 20'000);
    EXPECT_FALSE(Make("viewed", 1000));
    EXPECT_LE(cache_.bytes(), 100'000u);
  }
  EXPECT_TRUE(Make("made up 3", 20'000));
  EXPECT_FALSE(Make("made up 999", 20'000));
}

TEST_F(AnswerCacheTest, DoesNotKeepAnAnswerThatIsLargerThanItsRoom) {
  EXPECT_TRUE(Make("large", 200'000));
  EXPECT_EQ(cache_.bytes(), 0u);
}

TEST_F(AnswerCacheTest, DoesNotKeepErrors) {
  for (int i = 0; i < 10; ++i) {
    const auto answer = cache_.Get(absl::StrCat(i), 1, 5000, [] {
      return absl::StatusOr<std::string>(absl::NotFoundError("no such job"));
    });
    EXPECT_FALSE(answer.ok());
  }
  EXPECT_EQ(cache_.bytes(), 0u);
}

TEST_F(AnswerCacheTest, CountsAReplacedAnswerOnce) {
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(Make("a", 30'000, 5000 + i * kMost));
  EXPECT_FALSE(Make("a", 30'000, 5000 + 19 * kMost));
  EXPECT_LT(cache_.bytes(), 40'000u);
}

}  // namespace
}  // namespace rollcall
