// SPDX-License-Identifier: Apache-2.0
#include "cli/job_pages.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace rollcall {
namespace {

// A daemon with this many jobs that answers with at most so many.
class Jobs {
 public:
  Jobs(int count, int most) : count_(count), most_(most) {}

  bool Answer(const v1::StatusRequest& request, v1::StatusResponse* response) {
    ++questions_;
    if (questions_ == fails_at_) return false;
    response->set_rollcall_version("1");
    response->set_jobs_total(count_);
    response->add_silent_daemons("b");
    const int end = std::min(request.offset() + std::min(most_, request.limit()), count_);
    for (int i = request.offset(); i < end; ++i) {
      response->add_jobs()->set_name(absl::StrCat("job-", i));
    }
    return true;
  }

  AskStatus Ask() {
    return [this](const v1::StatusRequest& request, v1::StatusResponse* response) {
      return Answer(request, response);
    };
  }

  void FailAt(int question) { fails_at_ = question; }
  void Remove(int count) { count_ -= count; }
  int questions() const { return questions_; }

 private:
  int count_;
  const int most_;
  int fails_at_ = 0;
  int questions_ = 0;
};

TEST(FetchJobsTest, JoinsAllPages) {
  Jobs jobs(1234, 1000);
  v1::StatusResponse all;
  ASSERT_TRUE(FetchJobs({}, jobs.Ask(), &all));
  ASSERT_EQ(all.jobs_size(), 1234);
  EXPECT_EQ(all.jobs(0).name(), "job-0");
  EXPECT_EQ(all.jobs(1233).name(), "job-1233");
  EXPECT_EQ(all.jobs_total(), 1234);
  EXPECT_EQ(all.rollcall_version(), "1");
  EXPECT_EQ(all.silent_daemons_size(), 1);
  EXPECT_EQ(jobs.questions(), 7);
}

TEST(FetchJobsTest, AsksOnceForFewJobs) {
  Jobs jobs(3, 1000);
  v1::StatusResponse all;
  ASSERT_TRUE(FetchJobs({}, jobs.Ask(), &all));
  EXPECT_EQ(all.jobs_size(), 3);
  EXPECT_EQ(jobs.questions(), 1);
}

TEST(FetchJobsTest, EndsWhenJobsDisappearMeanwhile) {
  Jobs jobs(500, 1000);
  v1::StatusResponse all;
  ASSERT_TRUE(FetchJobs(
      {},
      [&](const v1::StatusRequest& request, v1::StatusResponse* response) {
        const bool answered = jobs.Answer(request, response);
        jobs.Remove(300);
        return answered;
      },
      &all));
  EXPECT_EQ(all.jobs_size(), 200);
}

std::set<std::string> Names(const v1::StatusResponse& all) {
  std::set<std::string> names;
  for (const v1::JobStatus& job : all.jobs()) names.insert(job.name());
  return names;
}

// Answers from a list that `change` changes after each answer.
AskStatus AskList(std::vector<std::string>* list, std::function<void()> change) {
  return [list, change](const v1::StatusRequest& request, v1::StatusResponse* response) {
    const size_t end = std::min<size_t>(request.offset() + request.limit(), list->size());
    for (size_t i = request.offset(); i < end; ++i) response->add_jobs()->set_name(list->at(i));
    response->set_jobs_total(static_cast<int>(list->size()));
    change();
    return true;
  };
}

class MovingJobsTest : public testing::Test {
 protected:
  MovingJobsTest() {
    for (int i = 0; i < 500; ++i) list_.push_back(absl::StrCat("job-", i));
  }
  // Changes the list after the first answer.
  void Fetch(const std::function<void()>& change) {
    const auto once = [this, change] {
      if (!std::exchange(is_changed_, true)) change();
    };
    ASSERT_TRUE(FetchJobs({}, AskList(&list_, once), &all_));
  }

  std::vector<std::string> list_;
  v1::StatusResponse all_;
  bool is_changed_ = false;
};

TEST_F(MovingJobsTest, MissesNoJobWhenOneBeforeItEnds) {
  Fetch([this] { list_.erase(list_.begin()); });
  EXPECT_EQ(Names(all_), std::set<std::string>(list_.begin(), list_.end()));
  EXPECT_EQ(all_.jobs_size(), 499);
}

TEST_F(MovingJobsTest, HasEachJobOnceWhenOneComes) {
  Fetch([this] { list_.insert(list_.begin(), "new"); });
  EXPECT_EQ(Names(all_).size(), 501u);
  EXPECT_EQ(all_.jobs_size(), 501);
}

TEST_F(MovingJobsTest, EndsThoughTheJobsNeverStandStill) {
  ASSERT_TRUE(FetchJobs(
      {}, AskList(&list_, [this] { std::rotate(list_.begin(), list_.end() - 1, list_.end()); }),
      &all_));
  EXPECT_EQ(Names(all_).size(), static_cast<size_t>(all_.jobs_size()));
  EXPECT_GT(all_.jobs_size(), 490);
}

TEST(FetchJobsTest, FailsIfAPageHasNoAnswer) {
  Jobs jobs(500, 1000);
  jobs.FailAt(2);
  v1::StatusResponse all;
  EXPECT_FALSE(FetchJobs({}, jobs.Ask(), &all));
}

}  // namespace
}  // namespace rollcall
