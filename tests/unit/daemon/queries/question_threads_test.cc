// SPDX-License-Identifier: Apache-2.0
#include "daemon/queries/question_threads.h"

#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>

#include "eventually.h"

namespace rollcall {
namespace {

class QuestionThreadsTest : public testing::Test {
 protected:
  void Begin(const std::string& owner) {
    const std::lock_guard<std::mutex> lock(mutex_);
    begun_.insert(owner);
    ids_.insert(std::this_thread::get_id());
  }
  size_t begun(const std::string& owner) {
    const std::lock_guard<std::mutex> lock(mutex_);
    return begun_.count(owner);
  }
  size_t used_threads() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return ids_.size();
  }

  std::mutex mutex_;
  std::multiset<std::string> begun_;
  std::set<std::thread::id> ids_;
  std::promise<void> go_on_;
  std::unique_ptr<QuestionThreads> threads_ = std::make_unique<QuestionThreads>(4);
};

TEST_F(QuestionThreadsTest, ManyCallsOneAfterTheOtherNeedFewThreads) {
  for (size_t i = 1; i <= 20; ++i) {
    ASSERT_TRUE(threads_->Post("ann", [this] { Begin("ann"); }));
    ASSERT_TRUE(Eventually([this, i] { return begun("ann") == i; }));
  }
  EXPECT_LE(used_threads(), 4u);
}

TEST_F(QuestionThreadsTest, CallsThatWaitDoNotHoldUpTheNextOne) {
  const auto go_on = go_on_.get_future().share();
  for (const char* owner : {"ann", "ann", "ann", "ann", "ann", "bob"}) {
    threads_->Post(owner, [this, owner, go_on] {
      Begin(owner);
      go_on.wait();
    });
  }
  EXPECT_TRUE(Eventually([this] { return begun("bob") == 1; })) << "ann has three of four threads";
  EXPECT_EQ(begun("ann"), 3u);
  go_on_.set_value();
  EXPECT_TRUE(Eventually([this] { return begun("ann") == 5; }));
}

TEST_F(QuestionThreadsTest, AtTheEndAllThatWaitsIsDone) {
  const auto go_on = go_on_.get_future().share();
  for (int i = 0; i < 12; ++i) {
    threads_->Post("ann", [this, go_on] {
      go_on.wait();
      Begin("ann");
    });
  }
  go_on_.set_value();
  threads_.reset();
  EXPECT_EQ(begun("ann"), 12u);
}

}  // namespace
}  // namespace rollcall
