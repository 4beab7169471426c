// SPDX-License-Identifier: Apache-2.0
// Queries to a daemon about its attempts.
#include "cli/run/own_attempts.h"

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "temporary_tree.h"

namespace rollcall {
namespace {

using std::chrono::steady_clock;

// A daemon that knows nothing of any attempt.
class FakeDaemon : public v1::Query::Service {
 public:
  grpc::Status GetStatus(grpc::ServerContext* context, const v1::StatusRequest* request,
                         v1::StatusResponse* /*response*/) override {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      asked_.push_back(request->job());
    }
    while (answers_none && !context->IsCancelled()) std::this_thread::yield();
    return grpc::Status::OK;
  }

  grpc::Status ListProcesses(grpc::ServerContext* /*context*/,
                             const v1::ProcessesRequest* /*request*/,
                             v1::ProcessesResponse* /*response*/) override {
    return grpc::Status::OK;
  }

  std::vector<std::string> asked() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return asked_;
  }

  std::atomic<bool> answers_none{false};

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> asked_;  // jobs
};

class OwnAttemptsTest : public testing::Test {
 protected:
  void SetUp() override {
    grpc::ServerBuilder builder;
    builder.RegisterService(&daemon_);
    server_ = builder.BuildAndStart();
    stub_ = v1::Query::NewStub(server_->InProcessChannel(grpc::ChannelArguments()));
    own_ = std::make_unique<OwnAttempts>(stub_.get(), folder_.root(), "node-1");
  }

  FakeDaemon daemon_;
  TemporaryTree folder_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<v1::Query::Stub> stub_;
  std::unique_ptr<OwnAttempts> own_;
};

TEST_F(OwnAttemptsTest, AllQuestionsTogetherHaveOneDeadline) {
  daemon_.answers_none = true;
  std::set<JobKey> attempts;
  for (int job = 0; job < 50; ++job) attempts.insert(JobKey("job-" + std::to_string(job)));
  own_->Learn(attempts, steady_clock::now() + std::chrono::milliseconds(300));
  EXPECT_LT(daemon_.asked().size(), attempts.size());
  EXPECT_EQ(own_->Of(JobKey("job-0")), Ownership::kUnknown);
}

TEST_F(OwnAttemptsTest, AsksFirstAboutTheAttemptThatItHasNotAskedAboutForLongest) {
  const auto later = [] { return steady_clock::now() + std::chrono::minutes(1); };
  own_->Learn({JobKey("b")}, later(), /*at_once=*/true);
  own_->Learn({JobKey("a"), JobKey("b"), JobKey("c")}, later(), /*at_once=*/true);
  EXPECT_EQ(daemon_.asked(), (std::vector<std::string>{"b", "a", "c", "b"}));
  EXPECT_EQ(own_->Of(JobKey("a")), Ownership::kNo);
}

TEST_F(OwnAttemptsTest, AnAttemptWithoutAQueryIsUnknown) {
  own_->Learn({}, steady_clock::now());
  EXPECT_EQ(own_->Of(JobKey("a")), Ownership::kUnknown);
  EXPECT_TRUE(daemon_.asked().empty());
}

}  // namespace
}  // namespace rollcall
