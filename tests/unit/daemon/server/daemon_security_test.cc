// SPDX-License-Identifier: Apache-2.0
#include "daemon/server/daemon_security.h"

#include <gtest/gtest.h>
#include <httplib.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <memory>
#include <sstream>
#include <string>
#include <thread>

#include "eventually.h"

namespace rollcall {
namespace {

// Only the thread of the test logs: Poll() does.
class DaemonSecurityTest : public testing::Test {
 protected:
  DaemonSecurityTest() {
    spdlog::set_default_logger(std::make_shared<spdlog::logger>(
        "test", std::make_shared<spdlog::sinks::ostream_sink_st>(log_)));
  }
  ~DaemonSecurityTest() override { spdlog::set_default_logger(before_); }

  const AllThreadsEnd all_threads_end_;
  std::ostringstream log_;
  const std::shared_ptr<spdlog::logger> before_ = spdlog::default_logger();
};

TEST_F(DaemonSecurityTest, SaysThatTheUrlOfTheKeysAnswersWithNothing) {
  httplib::Server server;
  server.Get("/keys", [](const httplib::Request&, httplib::Response&) {});
  const int port = server.bind_to_any_port("127.0.0.1");
  std::thread thread([&server] { server.listen_after_bind(); });
  SecurityOptions options;
  options.jwks = "http://127.0.0.1:" + std::to_string(port) + "/keys";
  auto security = DaemonSecurity::Open(options);
  ASSERT_TRUE(security.ok()) << security.status();
  EXPECT_TRUE(Eventually([&] {
    (*security)->Poll(0);
    return log_.str().find("/keys answers with nothing") != std::string::npos;
  }));
  *security = nullptr;
  server.stop();
  thread.join();
}

}  // namespace
}  // namespace rollcall
