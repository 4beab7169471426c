// SPDX-License-Identifier: Apache-2.0
#include "daemon/server/question_desk.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "absl/synchronization/notification.h"
#include "eventually.h"

namespace rollcall {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;

v1::CountIncidentsRequest By(const std::string& kind) {
  v1::CountIncidentsRequest request;
  request.set_by(kind);
  return request;
}

// A desk with a thread that answers how many questions it has worked on. Questions by "slow" wait for `go_on`.
class QuestionDeskTest : public testing::Test {
 protected:
  void TearDown() override {
    if (!go_on_.HasBeenNotified()) go_on_.Notify();
    desk_.End();
    thread_.join();
  }

  QuestionDesk::Answer Work(const v1::CountIncidentsRequest& request) {
    if (request.by() == "slow") go_on_.WaitForNotification();
    v1::CountIncidentsResponse response;
    response.set_total(++worked_on_);
    return response;
  }
  // The answer's number, or the code of the error.
  static std::string InWords(const QuestionDesk::Answer& answer) {
    return answer.ok() ? std::to_string(answer->total()) : absl::StatusCodeToString(answer.status().code());
  }
  std::string Ask(const std::string& kind, std::chrono::nanoseconds patience = minutes(1)) {
    return InWords(desk_.Ask(By(kind), patience));
  }

  std::atomic<int64_t> now_ns_{0};
  std::atomic<int> worked_on_{0};
  absl::Notification go_on_;
  QuestionDesk desk_{[this] { return now_ns_.load(); }};
  std::thread thread_{[this] { desk_.Run([this](const auto& request) { return Work(request); }); }};
};

TEST_F(QuestionDeskTest, AnswersEachQuestionAnewWhoseCallerWaits) {
  EXPECT_EQ(Ask("host"), "1");
  EXPECT_EQ(Ask("host"), "2");
}

TEST_F(QuestionDeskTest, GoesOnForACallerThatAsksAgain) {
  EXPECT_EQ(Ask("slow", milliseconds(1)), "ABORTED");
  go_on_.Notify();
  ASSERT_TRUE(Eventually([&] { return worked_on_ == 1; }));
  EXPECT_EQ(Ask("slow"), "1");
}

TEST_F(QuestionDeskTest, KeepsAnAnswerThatNobodyHasWaitedForForAMinute) {
  EXPECT_EQ(Ask("slow", milliseconds(1)), "ABORTED");
  go_on_.Notify();
  EXPECT_EQ(Ask("host"), "2") << "it is the next one, so the slow one is answered";
  now_ns_ = 59'000'000'000;
  EXPECT_EQ(Ask("slow"), "1");
  EXPECT_EQ(Ask("slow"), "1");
  now_ns_ = 60'000'000'000;
  EXPECT_EQ(Ask("slow"), "3");
}

TEST_F(QuestionDeskTest, WorksOnceOnAQuestionThatManyAsk) {
  for (int i = 0; i < 4; ++i) EXPECT_EQ(Ask("slow", milliseconds(1)), "ABORTED");
  go_on_.Notify();
  EXPECT_EQ(Ask("host"), "2");
}

TEST_F(QuestionDeskTest, RefusesQuestionsWhileTooManyWait) {
  EXPECT_EQ(Ask("slow", milliseconds(0)), "ABORTED");
  for (int i = 0; i < 31; ++i) EXPECT_EQ(Ask(std::to_string(i), milliseconds(0)), "ABORTED");
  EXPECT_EQ(Ask("another", milliseconds(0)), "UNAVAILABLE");
  EXPECT_EQ(Ask("slow", milliseconds(0)), "ABORTED") << "it is known";
}

TEST_F(QuestionDeskTest, NobodyWaitsForADeskThatEnds) {
  std::string answer;
  std::thread caller([&] { answer = Ask("slow", minutes(10)); });
  desk_.End();
  caller.join();
  EXPECT_TRUE(answer == "ABORTED" || answer == "UNAVAILABLE") << answer;
  EXPECT_EQ(Ask("slow"), "UNAVAILABLE");
}

}  // namespace
}  // namespace rollcall
