// SPDX-License-Identifier: Apache-2.0
// Channels to the first of several daemons, for commands that any of them can answer.
#include "agent/link/daemon_channel.h"

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <ifaddrs.h>
#include <netdb.h>

#include <chrono>
#include <deque>
#include <memory>

#include "absl/strings/str_cat.h"
#include "eventually.h"
#include "fake_daemon.h"

namespace rollcall {
namespace {

// "" if this machine has no network.
std::string OwnAddressOnTheNetwork() {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return "";
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owned(list, &freeifaddrs);
  for (const ifaddrs* at = list; at != nullptr; at = at->ifa_next) {
    if (at->ifa_addr == nullptr || at->ifa_addr->sa_family != AF_INET) continue;
    char text[NI_MAXHOST];
    if (getnameinfo(at->ifa_addr, sizeof(sockaddr_in), text, sizeof(text), nullptr, 0,
                    NI_NUMERICHOST) != 0) {
      continue;
    }
    if (std::string(text).rfind("127.", 0) != 0) return text;
  }
  return "";
}

std::shared_ptr<DaemonChannels> Open(const std::string& list) {
  DaemonAddress daemon;
  daemon.address = list;
  auto channels = DaemonChannels::Open(daemon);
  EXPECT_TRUE(channels.ok()) << channels.status();
  return *channels;
}

// How a stream over the channel begins.
grpc::Status Greet(const std::shared_ptr<grpc::Channel>& channel) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kPatience);
  const auto stub = v1::AgentLink::NewStub(channel);
  const auto stream = stub->Connect(&context);
  v1::AgentMessage hello;
  hello.mutable_hello()->set_host("node-1");
  stream->Write(hello);
  stream->WritesDone();
  v1::DaemonMessage welcome;
  while (stream->Read(&welcome)) {
  }
  return stream->Finish();
}

TEST(DaemonChannelTest, LeadsToTheFirstDaemonThatAccepts) {
  FakeDaemon dead, second, third;
  dead.Kill();
  const auto channels =
      Open(absl::StrCat(dead.address(), ",", second.address(), ",", third.address()));
  EXPECT_TRUE(Greet(channels->Connect()).ok());
  EXPECT_EQ(second.hello().host(), "node-1");
  EXPECT_EQ(third.hello().host(), "");
}

TEST(DaemonChannelTest, LeadsToTheFirstDaemonOnTheNetworkThatAccepts) {
  const std::string own = OwnAddressOnTheNetwork();
  if (own.empty()) GTEST_SKIP() << "this machine has no address but loopback";
  FakeDaemon living(own);
  std::string list;
  {
    std::deque<FakeDaemon> dead;  // so many that two seconds for each were longer than kPatience
    for (int i = 0; i < 40; ++i) list += dead.emplace_back(own).address() + ",";
  }
  const auto channels = Open(list + living.address());
  const auto begun = std::chrono::steady_clock::now();
  EXPECT_TRUE(Greet(channels->Connect()).ok());
  EXPECT_LT(std::chrono::steady_clock::now() - begun, kPatience) << "each has refused at once";
  EXPECT_EQ(living.hello().host(), "node-1");
}

TEST(DaemonChannelTest, SaysThatTheFirstDaemonCannotBeReachedIfNoneCan) {
  FakeDaemon dead, gone;
  dead.Kill();
  gone.Kill();
  const auto channels = Open(absl::StrCat(dead.address(), ",", gone.address()));
  const grpc::Status status = Greet(channels->Connect());
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_NE(channels->Explain(status).find("Connection refused"), std::string::npos)
      << channels->Explain(status);
}

TEST(DaemonChannelTest, LeadsToOneOfThemWithTheSameFlags) {
  FakeDaemon first, second;
  const auto channels = Open(absl::StrCat(first.address(), ",", second.address()));
  const auto one = channels->For(second.address(), "");
  EXPECT_EQ(one->address(), second.address());
  EXPECT_TRUE(Greet(one->Connect(Keepalive::kQuick)).ok());
  EXPECT_EQ(second.hello().host(), "node-1");
}

TEST(DaemonChannelTest, SaysWhatIsWrongWithAnAddressThatADaemonNamed) {
  FakeDaemon daemon;
  const auto wrong = Open(daemon.address())->For("no-port", "");
  const grpc::Status status = Greet(wrong->Connect());
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(wrong->Explain(status),
            "the daemon's address \"no-port\" has no port: --daemon=HOST:7655");
}

}  // namespace
}  // namespace rollcall
