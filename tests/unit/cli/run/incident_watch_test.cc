// SPDX-License-Identifier: Apache-2.0
// What `rollcall run` writes here of the incidents of a daemon elsewhere.
#include "cli/run/incident_watch.h"

#include <google/protobuf/util/json_util.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>

#include "base/read_file.h"
#include "eventually.h"
#include "rollcall/v1/query.grpc.pb.h"
#include "temporary_tree.h"

namespace rollcall {
namespace {

// A daemon with one incident of the job "train", which has one process.
class FakeDaemon : public v1::Query::Service {
 public:
  grpc::Status ListIncidents(grpc::ServerContext* /*context*/,
                             const v1::ListIncidentsRequest* /*request*/,
                             v1::ListIncidentsResponse* response) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    *response->add_incidents() = incident_;
    return grpc::Status::OK;
  }

  grpc::Status GetStatus(grpc::ServerContext* /*context*/, const v1::StatusRequest* /*request*/,
                         v1::StatusResponse* /*response*/) override {
    return grpc::Status::OK;
  }

  grpc::Status ListProcesses(grpc::ServerContext* /*context*/,
                             const v1::ProcessesRequest* /*request*/,
                             v1::ProcessesResponse* response) override {
    response->add_processes()->set_pid(process);
    return grpc::Status::OK;
  }

  void Set(v1::Incident incident) {
    const std::lock_guard<std::mutex> lock(mutex_);
    incident_ = std::move(incident);
  }

  std::atomic<pid_t> process{0};

 private:
  std::mutex mutex_;
  v1::Incident incident_;
};

// Of the stacks of two ranks.
v1::Incident WithStacks() {
  v1::Incident incident;
  incident.set_id("train-1");
  incident.set_job("train");
  incident.set_tenant("default");
  incident.set_state("confirmed");
  incident.mutable_opened_at()->set_seconds(1000);
  incident.mutable_confirmed_at()->set_seconds(1001);
  incident.add_verdicts()->set_summary("rank 1 stands still");
  for (int rank = 0; rank < 2; ++rank) {
    v1::ProcessStack* stack = incident.add_stacks();
    stack->set_host("node-1");
    stack->set_rank(rank);
    stack->set_pid(100 + rank);
    v1::ThreadStack* thread = stack->add_threads();
    thread->add_frames()->set_function("wait_of_rank");
    thread->add_frames()->set_function("main");
  }
  return incident;
}

v1::Incident WithMergedStacks() {
  v1::Incident incident = WithStacks();
  incident.mutable_stack_tree()->add_nodes()->set_rank_count(64);
  return incident;
}

class IncidentWatchTest : public testing::Test {
 protected:
  void SetUp() override {
    grpc::ServerBuilder builder;
    builder.RegisterService(&daemon_);
    server_ = builder.BuildAndStart();
    watch_ = IncidentWatch::OfDaemonAt(
        "127.0.0.1:1", [this] { return server_->InProcessChannel(grpc::ChannelArguments()); },
        "train", folder_.root(), "node-1", reports());
    StartProcess();
  }

  void TearDown() override {
    kill(daemon_.process, SIGKILL);
    waitpid(daemon_.process, nullptr, 0);
  }

  // Gives the job a process of this run.
  void StartProcess() {
    char program[] = "/bin/sleep", seconds[] = "1000";
    char* arguments[] = {program, seconds, nullptr};
    pid_t pid = 0;
    ASSERT_EQ(posix_spawn(&pid, program, nullptr, nullptr, arguments, environ), 0);
    daemon_.process = pid;
  }

  std::string reports() const { return folder_.root() + "/reports"; }

  // The incident of the report here, or empty.
  std::string Written() const {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_.root())) {
      if (entry.path().filename() != "incident.json") continue;
      return ReadFile(entry.path()).value_or("");
    }
    return "";
  }
  v1::Incident Report() const {
    v1::Incident incident;
    EXPECT_TRUE(google::protobuf::util::JsonStringToMessage(Written(), &incident).ok())
        << Written();
    return incident;
  }

  TemporaryTree folder_;
  FakeDaemon daemon_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<IncidentWatch> watch_;
};

TEST_F(IncidentWatchTest, TheReportHasTheStacksThatTheDaemonHasMerged) {
  daemon_.Set(WithMergedStacks());
  watch_->Look(true);
  ASSERT_EQ(Report().stack_tree().nodes_size(), 1);
  EXPECT_EQ(Report().stack_tree().nodes(0).rank_count(), 64);
}

TEST_F(IncidentWatchTest, TheReportWaitsForTheStacksThatTheDaemonMerges) {
  daemon_.Set(WithStacks());
  watch_->Look();
  daemon_.Set(WithMergedStacks());
  ASSERT_TRUE(Eventually([this] {
    watch_->Look();
    return !Written().empty();
  }));
  EXPECT_EQ(Report().stack_tree().nodes(0).rank_count(), 64);
}

TEST_F(IncidentWatchTest, TheReportWaitsForMergedStacksForALittleOnly) {
  daemon_.Set(WithStacks());
  ASSERT_TRUE(Eventually([this] {
    watch_->Look();
    return !Written().empty();
  }));
  EXPECT_EQ(Report().stack_tree().nodes(0).rank_count(), 2);
}

TEST_F(IncidentWatchTest, TheReportOfAJobThatEndsHasItsStacksMerged) {
  daemon_.Set(WithStacks());
  watch_->Look(true);
  ASSERT_EQ(Report().stack_tree().nodes_size(), 3) << "all threads, main, wait_of_rank";
  EXPECT_EQ(Report().stack_tree().nodes(0).rank_count(), 2);
}

}  // namespace
}  // namespace rollcall
