// SPDX-License-Identifier: Apache-2.0
// What NVSentinel's platform connector gets: a real server of its service, on a Unix socket.
#include "agent/link/nvsentinel.h"

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/durations.h"
#include "base/steady_clock.h"
#include "eventually.h"
#include "nvsentinel/health_event.grpc.pb.h"
#include "temporary_tree.h"

namespace rollcall {
namespace {

using Kind = HangMarks::Step::Kind;

class Connector : public datamodels::PlatformConnector::Service {
 public:
  // `refused`: so many calls are refused, as by a connector that starts.
  explicit Connector(const std::string& socket, int refused = 0) : to_refuse_(refused) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort(absl::StrCat("unix:", socket), grpc::InsecureServerCredentials());
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }
  grpc::Status HealthEventOccurredV1(grpc::ServerContext* /*context*/,
                                     const datamodels::HealthEvents* events,
                                     google::protobuf::Empty* /*nothing*/) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (to_refuse_ > 0) {
      --to_refuse_;
      return {grpc::StatusCode::UNAVAILABLE, "not ready"};
    }
    events_.insert(events_.end(), events->events().begin(), events->events().end());
    return grpc::Status::OK;
  }
  std::vector<datamodels::HealthEvent> events() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return events_;
  }

 private:
  std::mutex mutex_;
  int to_refuse_;
  std::vector<datamodels::HealthEvent> events_;
  std::unique_ptr<grpc::Server> server_;
};

v1::HostHangs OneHang() {
  v1::HostHangs hangs;
  v1::HostHangs::Hang* hang = hangs.add_hangs();
  hang->set_incident("pretrain-1-7");
  hang->set_tenant("ml");
  hang->set_job("pretrain");
  hang->set_cause("stalled_in_flight");
  hang->set_is_broken(true);
  hang->set_summary("rank 3 does not end AllReduce");
  hang->add_gpus("GPU-1");
  hang->add_gpus("GPU-2");
  return hangs;
}

datamodels::HealthEvent EventFor(Kind kind, bool is_broken = true, bool may_remediate = false) {
  HangMarks::Step step{kind, OneHang().hangs(0)};
  step.hang.set_is_broken(is_broken);
  return HealthEventFor(step, {"", "node-7", may_remediate}, 1'790'000'000'500'000'000);
}

TEST(HealthEventTest, MarksANodeWhoseHardwareShowsAnError) {
  const datamodels::HealthEvent event = EventFor(Kind::kRaise);
  EXPECT_FALSE(event.ishealthy());
  EXPECT_TRUE(event.isfatal());
  EXPECT_EQ(event.nodename(), "node-7");
  EXPECT_EQ(event.agent(), "rollcall");
  EXPECT_EQ(event.checkname(), "RollcallTrainingHang");
  EXPECT_EQ(event.message(),
            "job pretrain hangs, and Rollcall blames this node, whose hardware "
            "shows an error: rollcall incident pretrain-1-7");
  EXPECT_EQ(event.entitiesimpacted_size(), 1);
  EXPECT_EQ(event.metadata().at("gpus"), "GPU-1 GPU-2");
  EXPECT_EQ(event.generatedtimestamp().seconds(), 1'790'000'000);
  EXPECT_EQ(event.recommendedaction(), datamodels::CONTACT_SUPPORT) << "nothing resets by itself";
}

TEST(HealthEventTest, MarksNoNodeWhoseProgramMayBeAtFault) {
  const datamodels::HealthEvent event = EventFor(Kind::kRaise, false);
  EXPECT_FALSE(event.ishealthy());
  EXPECT_FALSE(event.isfatal());
  EXPECT_EQ(event.recommendedaction(), datamodels::NONE);
}

TEST(HealthEventTest, IsStoredOnlyUnlessAnOperatorPermitsMore) {
  EXPECT_EQ(EventFor(Kind::kRaise).processingstrategy(), datamodels::STORE_ONLY);
  EXPECT_EQ(EventFor(Kind::kRaise, true, true).processingstrategy(),
            datamodels::EXECUTE_REMEDIATION);
  EXPECT_EQ(EventFor(Kind::kClear).processingstrategy(), datamodels::STORE_ONLY);
}

TEST(HealthEventTest, ClearsItsIncidentAlone) {
  const datamodels::HealthEvent event = EventFor(Kind::kClear);
  EXPECT_TRUE(event.ishealthy());
  EXPECT_FALSE(event.isfatal());
  ASSERT_EQ(event.entitiesimpacted_size(), 1);
  EXPECT_EQ(event.entitiesimpacted(0).entityvalue(),
            EventFor(Kind::kRaise).entitiesimpacted(0).entityvalue());
}

TEST(HealthEventTest, ClearsAllWithoutAnEntity) {
  const datamodels::HealthEvent event = EventFor(Kind::kClearAll);
  EXPECT_TRUE(event.ishealthy());
  EXPECT_TRUE(event.entitiesimpacted().empty());
}

TEST(HealthEventTest, AJobsNameCannotSplitWhatNvSentinelWrites) {
  HangMarks::Step step{Kind::kRaise, OneHang().hangs(0)};
  step.hang.set_job("a;\nINCIDENT:b");
  step.hang.set_incident("a;\nINCIDENT:b-1-7");
  const datamodels::HealthEvent event = HealthEventFor(step, {"", "node-7", false}, 0);
  EXPECT_EQ(event.message().find_first_of(";\n"), std::string::npos);
  EXPECT_EQ(event.entitiesimpacted(0).entityvalue().find_first_of("; :\n"), std::string::npos);
}

class NvSentinelTest : public testing::Test {
 protected:
  TemporaryTree tree_;
  const std::string socket_ = absl::StrCat(tree_.root(), "/nvsentinel.sock");
};

TEST_F(NvSentinelTest, TellsOfAHang) {
  Connector connector(socket_);
  NvSentinel sentinel({socket_, "node-7", false});
  sentinel.Set(this, OneHang());
  ASSERT_TRUE(Eventually([&] { return !connector.events().empty(); }));
  EXPECT_EQ(connector.events().at(0).metadata().at("incident"), "pretrain-1-7");
}

TEST_F(NvSentinelTest, TellsAgainWhatWasRefused) {
  Connector connector(socket_, 1);
  NvSentinel sentinel({socket_, "node-7", false});
  sentinel.Set(this, OneHang());
  ASSERT_TRUE(Eventually([&] { return !connector.events().empty(); }));
  EXPECT_EQ(connector.events().size(), 1u);
}

// The connection is accepted by the kernel, and no server answers.
TEST_F(NvSentinelTest, EndsAtOnceWhileACallWaitsForNvSentinel) {
  const int listener = socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  absl::SNPrintF(address.sun_path, sizeof(address.sun_path), "%s", socket_);
  ASSERT_EQ(bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  ASSERT_EQ(listen(listener, 1), 0);
  int64_t begun_ns = 0;
  {
    NvSentinel sentinel({socket_, "node-7", false});
    sentinel.Set(this, OneHang());
    pollfd connects = {listener, POLLIN, 0};
    ASSERT_EQ(poll(&connects, 1, int{kPatience.count()}), 1) << "the call has not begun";
    begun_ns = SteadyNs();
  }
  EXPECT_LT(SteadyNs() - begun_ns, 60 * kSecond);
  close(listener);
}

}  // namespace
}  // namespace rollcall
