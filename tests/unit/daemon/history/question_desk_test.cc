// SPDX-License-Identifier: Apache-2.0
#include "daemon/history/question_desk.h"

#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "absl/strings/str_cat.h"
#include "eventually.h"

namespace rollcall {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;

v1::HistoryQuery By(const std::string& kind) {
  v1::HistoryQuery query;
  query.mutable_count()->set_by(kind);
  return query;
}

// A desk with a thread that answers how many queries it has worked on. A query by "slow" waits for
// GoOn().
class QuestionDeskTest : public testing::Test {
 protected:
  void TearDown() override {
    GoOn();
    desk_.End();
    thread_.join();
  }

  QuestionDesk::Answer Work(const v1::HistoryQuery& query) {
    ++begun_;
    if (query.count().by() == "slow") {
      std::unique_lock<std::mutex> lock(mutex_);
      wake_.wait(lock, [this] { return may_go_on_; });
    }
    const int number = ++worked_on_;
    if (query.count().by() == "bad") return absl::InternalError("bad");
    v1::HistoryAnswer answer;
    answer.mutable_count()->set_total(number);
    return answer;
  }
  void GoOn() {
    const std::lock_guard<std::mutex> lock(mutex_);
    may_go_on_ = true;
    wake_.notify_all();
  }
  // The answer's number, or the code of the error.
  static std::string InWords(const QuestionDesk::Answer& answer) {
    return answer.ok() ? std::to_string(answer->count().total())
                       : absl::StatusCodeToString(answer.status().code());
  }
  // Each query has a caller of its own.
  std::string Ask(const std::string& kind, std::chrono::nanoseconds patience = minutes(1)) {
    return InWords(desk_.Ask(By(kind), {kind, {}}, patience));
  }

  std::atomic<int64_t> now_ns_{0};
  std::atomic<int> begun_{0}, worked_on_{0};
  std::mutex mutex_;
  std::condition_variable wake_;
  bool may_go_on_ = false;
  QuestionDesk desk_{[this] { return now_ns_.load(); }};
  std::thread thread_{[this] { desk_.Run([this](const auto& query) { return Work(query); }); }};
};

TEST_F(QuestionDeskTest, AnswersEachQuestionAnewWhoseCallerWaits) {
  EXPECT_EQ(Ask("host"), "1");
  EXPECT_EQ(Ask("host"), "2");
}

TEST_F(QuestionDeskTest, GoesOnForACallerThatAsksAgain) {
  EXPECT_EQ(Ask("slow", milliseconds(1)), "ABORTED");
  EXPECT_EQ(Ask("slow", minutes(1)), "ABORTED") << "at once: it was put off";
  GoOn();
  EXPECT_EQ(Ask("host"), "2") << "the slow one was before it";
  EXPECT_EQ(Ask("slow"), "1");
}

TEST_F(QuestionDeskTest, KeepsTheAnswerOfWhoWasPutOffForAMinute) {
  EXPECT_EQ(Ask("slow", milliseconds(1)), "ABORTED");
  GoOn();
  EXPECT_EQ(Ask("host"), "2");
  now_ns_ = 59'000'000'000;
  EXPECT_EQ(Ask("slow"), "1");
  EXPECT_EQ(Ask("slow"), "1");
  now_ns_ = 60'000'000'000;
  EXPECT_EQ(Ask("slow"), "3");
}

TEST_F(QuestionDeskTest, KeepsTheAnswerForACallerThatWasPutOff) {
  std::string answer;
  std::thread caller([&] { answer = Ask("slow"); });
  ASSERT_TRUE(Eventually([&] { return begun_ == 1; })) << "its caller waits";
  EXPECT_EQ(Ask("slow", milliseconds(1)), "ABORTED");
  GoOn();
  caller.join();
  EXPECT_EQ(answer, "1");
  EXPECT_EQ(Ask("slow"), "1");
}

TEST_F(QuestionDeskTest, GivesAnErrorToOneCallerOnly) {
  EXPECT_EQ(Ask("slow", milliseconds(1)), "ABORTED");
  EXPECT_EQ(Ask("bad", milliseconds(0)), "ABORTED");
  GoOn();
  EXPECT_EQ(Ask("host"), "3");
  EXPECT_EQ(Ask("bad"), "INTERNAL");
  EXPECT_EQ(Ask("bad"), "INTERNAL");
  EXPECT_EQ(worked_on_, 4) << "the second time anew";
}

TEST_F(QuestionDeskTest, WorksOnceOnAQuestionThatManyAsk) {
  for (int i = 0; i < 4; ++i) EXPECT_EQ(Ask("slow", milliseconds(1)), "ABORTED");
  GoOn();
  EXPECT_EQ(Ask("host"), "2");
}

TEST_F(QuestionDeskTest, DropsAQuestionThatWasNotAskedForTenSeconds) {
  EXPECT_EQ(Ask("slow", milliseconds(0)), "ABORTED");
  ASSERT_TRUE(Eventually([&] { return begun_ == 1; }));
  EXPECT_EQ(Ask("gpu", milliseconds(0)), "ABORTED");
  EXPECT_EQ(Ask("user", milliseconds(0)), "ABORTED");
  now_ns_ = 9'000'000'000;
  EXPECT_EQ(Ask("user", milliseconds(0)), "ABORTED");
  now_ns_ = 10'000'000'000;
  GoOn();
  EXPECT_EQ(Ask("host"), "3") << "after slow and user";
  EXPECT_EQ(Ask("user"), "2");
}

TEST_F(QuestionDeskTest, RefusesQuestionsWhileTooManyWait) {
  EXPECT_EQ(Ask("slow", milliseconds(0)), "ABORTED");
  ASSERT_TRUE(Eventually([&] { return begun_ == 1; }));
  for (int i = 0; i < 12; ++i) EXPECT_EQ(Ask(std::to_string(i), milliseconds(0)), "ABORTED");
  EXPECT_EQ(Ask("another", milliseconds(0)), "RESOURCE_EXHAUSTED");
  EXPECT_EQ(Ask("slow", milliseconds(0)), "ABORTED") << "it is known";
  GoOn();
  ASSERT_TRUE(Eventually([&] { return worked_on_ == 13; }));
  EXPECT_EQ(Ask("another"), "14") << "answers that are kept take no room";
}

TEST_F(QuestionDeskTest, OneCallerAndTheCallersOfOneTenantLeaveRoomToOthers) {
  EXPECT_EQ(Ask("slow", milliseconds(0)), "ABORTED");
  ASSERT_TRUE(Eventually([&] { return begun_ == 1; }));
  const auto count = [this](const std::string& tenant, const std::string& who) {
    for (int i = 0; true; ++i) {
      HistoryCaller caller = {who, {}};
      if (!tenant.empty()) caller.tenants = {tenant};
      if (InWords(desk_.Ask(By(absl::StrCat(who, i)), caller, milliseconds(0))) != "ABORTED") {
        return i;
      }
    }
  };
  EXPECT_EQ(count("", "a viewer of all tenants"), 8);
  EXPECT_EQ(count("", "another one"), 4);
  EXPECT_EQ(count("one", "a viewer of one"), 2);
  EXPECT_EQ(count("other", "a viewer of another"), 1);
}

TEST_F(QuestionDeskTest, NoCallerWaitsForADeskThatEnds) {
  std::string answer;
  std::thread caller([&] { answer = Ask("slow", minutes(10)); });
  ASSERT_TRUE(Eventually([&] { return begun_ == 1; }));
  desk_.End();
  caller.join();
  EXPECT_EQ(answer, "UNAVAILABLE");
  EXPECT_EQ(Ask("host"), "UNAVAILABLE");
}

}  // namespace
}  // namespace rollcall
