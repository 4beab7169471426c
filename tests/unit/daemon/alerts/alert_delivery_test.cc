// SPDX-License-Identifier: Apache-2.0
// One attempt at a delivery ends in time, and leaves nothing behind.
#include "daemon/alerts/alert_delivery.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "alert_test_receivers.h"
#include "eventually.h"

namespace rollcall {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

TEST(AlertDeliveryTest, ASlowResponseDoesNotExtendTheDeadline) {
  const Slow trickle("HTTP/1.1 200 OK\r\nX: ");
  Cancellation cancellation;
  const auto begun = std::chrono::steady_clock::now();
  EXPECT_TRUE(absl::IsUnavailable(
      SendAlertRequests({{"POST", trickle.url(), "{}"}}, "job-1/1", "", &cancellation)));
  EXPECT_LT(std::chrono::steady_clock::now() - begun, kDeliverWithin + kPatience);
}

TEST(AlertDeliveryTest, ACommandThatIsKilledLeavesNothingBehind) {
  const std::string file = testing::TempDir() + "/alert-pid-" + std::to_string(getpid());
  Cancellation cancellation;
  std::thread cancels([&] {
    Eventually([&] { return fs::exists(file) && fs::file_size(file) > 0; });
    cancellation.Cancel();
  });
  const absl::Status status =
      RunAlertCommand("sleep 1000 & echo $! > " + file + "; wait", "{}", 0, &cancellation);
  cancels.join();
  EXPECT_THAT(std::string(status.message()), HasSubstr("the daemon stopped"));
  pid_t grandchild = 0;
  std::ifstream(file) >> grandchild;
  ASSERT_GT(grandchild, 1);
  // Dead, or a zombie that init has not collected yet.
  EXPECT_TRUE(Eventually([&] {
    std::ifstream stat("/proc/" + std::to_string(grandchild) + "/stat");
    std::string pid, name, state;
    return !(stat >> pid >> name >> state) || state == "Z";
  }));
  fs::remove(file);
}

TEST(AlertDeliveryTest, ACommandHasTheUsualLimitOfOpenFiles) {
  Cancellation cancellation;
  EXPECT_TRUE(RunAlertCommand("test $(ulimit -S -n) = 123", "{}", 123, &cancellation).ok());
}

TEST(AlertDeliveryTest, ABrokenPipeEndsACommandAlthoughTheDaemonIgnoresIt) {
  const auto before = signal(SIGPIPE, SIG_IGN);
  Cancellation cancellation;
  const absl::Status status = RunAlertCommand("kill -PIPE $$", "{}", 0, &cancellation);
  signal(SIGPIPE, before);
  EXPECT_FALSE(status.ok()) << "the command has ignored the signal";
}

}  // namespace
}  // namespace rollcall
