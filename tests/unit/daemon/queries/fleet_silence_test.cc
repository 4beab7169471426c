// SPDX-License-Identifier: Apache-2.0
// Daemons that do not answer, or take this one for a stranger.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fleet_fixture.h"

namespace rollcall {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class FleetSilenceTest : public FleetQueriesTest {};

TEST_F(FleetSilenceTest, ADaemonThatTakesTheCallerForAStrangerIsSilent) {
  a_.Report("1");
  b_.Report("2");
  Change("b", [](DaemonRow* row) { row->secret = "another"; });
  const v1::StatusResponse status = StatusOf(*a_.fleet, {}, false);
  EXPECT_THAT(NamesIn(status), ElementsAre("1 at a"));
  EXPECT_THAT(SilentIn(status), ElementsAre("b"));
  const absl::Status job = JobOf(*a_.fleet, Named("2")).status();
  EXPECT_TRUE(absl::IsUnavailable(job)) << job;
  EXPECT_THAT(std::string(job.message()), HasSubstr("the daemon b ("));
  EXPECT_THAT(std::string(job.message()), testing::Not(HasSubstr("another")));
}

// A connection that is not accepted looks like a daemon that stands still.
class StandingStill {
 public:
  StandingStill() : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    address_.sin_family = AF_INET;
    address_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address_);
    EXPECT_EQ(bind(fd_, reinterpret_cast<sockaddr*>(&address_), size), 0);
    EXPECT_EQ(listen(fd_, 16), 0);
    EXPECT_EQ(getsockname(fd_, reinterpret_cast<sockaddr*>(&address_), &size), 0);
  }
  ~StandingStill() { close(fd_); }
  int port() const { return ntohs(address_.sin_port); }

 private:
  const int fd_;
  sockaddr_in address_ = {};
};

TEST_F(FleetSilenceTest, DaemonsThatDoNotAnswerAreNamedInTime) {
  const StandingStill still;
  a_.Report("1");
  c_.Report("3");
  Change("b", [&](DaemonRow* row) { row->address = absl::StrCat("127.0.0.1:", still.port()); });
  {
    const std::lock_guard<std::mutex> lock(town_.mutex);
    DaemonRow dead;
    dead.name = "d";
    dead.address = "127.0.0.1:1";  // no server listens
    town_.daemons.push_back(dead);
  }
  // Long enough for those that answer, also on a busy machine.
  auto options = PeerOptions();
  options.list_patience_ns = 10 * kSecond;
  const FleetQueries queries(&a_.local(), &a_.view, &a_.ownership, options);
  const auto begun = std::chrono::steady_clock::now();
  const v1::StatusResponse status = StatusOf(queries);
  EXPECT_LT(std::chrono::steady_clock::now() - begun, kPatience);
  EXPECT_THAT(NamesIn(status), ElementsAre("1 at a", "3 at c"));
  EXPECT_THAT(SilentIn(status), ElementsAre("b", "d"));
  EXPECT_THAT(std::string(JobOf(queries, Named("2")).status().message()),
              HasSubstr("without the jobs of b, d, which does not answer"));
}

TEST_F(FleetSilenceTest, ADaemonThatHasStartedAgainAnswersAgain) {
  a_.Report("1");
  b_.Report("2");
  const std::string address = town_.daemons[1].address;
  Change("b", [](DaemonRow* row) { row->address = "127.0.0.1:1"; });
  EXPECT_THAT(SilentIn(StatusOf(*a_.fleet, {}, false)), ElementsAre("b"));
  Change("b", [&](DaemonRow* row) {
    row->address = address;
    row->incarnation = "2";
  });
  const v1::StatusResponse status = StatusOf(*a_.fleet, {}, false);
  EXPECT_THAT(NamesIn(status), ElementsAre("1 at a", "2 at b"));
  EXPECT_THAT(SilentIn(status), IsEmpty());
}

}  // namespace
}  // namespace rollcall
