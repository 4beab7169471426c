// SPDX-License-Identifier: Apache-2.0
#include "agent/link/daemon_names.h"

#include <gtest/gtest.h>

#include "agent/link/daemon_channel.h"

namespace rollcall {
namespace {

using Addresses = std::vector<std::string>;

Addresses Resolved(const std::string& list, const Addresses& ips) {
  Addresses all;
  for (const NamedDaemon& daemon : ResolveDaemons(list, [&](const std::string&) { return ips; })) {
    all.push_back(daemon.name.empty() ? daemon.address : daemon.address + " " + daemon.name);
  }
  return all;
}

TEST(DaemonNamesTest, SplitsAListAtItsCommas) {
  EXPECT_EQ(SplitDaemons("a:1"), Addresses{"a:1"});
  EXPECT_EQ(SplitDaemons("a:1, b:2,"), (Addresses{"a:1", "b:2"}));
  EXPECT_EQ(SplitDaemons("unix:/run/rollcalld"), Addresses{"unix:/run/rollcalld"});
  EXPECT_EQ(SplitDaemons(""), Addresses{""});
}

TEST(DaemonNamesTest, TakesEachAddressOfANameForADaemonWithThatName) {
  EXPECT_EQ(Resolved("fleet.svc:7655", {"10.0.0.1", "fd00::2"}),
            (Addresses{"10.0.0.1:7655 fleet.svc", "[fd00::2]:7655 fleet.svc"}));
  EXPECT_EQ(Resolved("a:1,10.0.0.1:1,10.0.0.9:2", {"10.0.0.1", "10.0.0.2"}),
            (Addresses{"10.0.0.1:1 a", "10.0.0.2:1 a", "10.0.0.9:2"}));
}

TEST(DaemonNamesTest, LeavesANameWithOneAddressOrNoneAsItIs) {
  EXPECT_EQ(Resolved("host:7655", {"10.0.0.1"}), Addresses{"host:7655"});
  EXPECT_EQ(Resolved("host:7655", {}), Addresses{"host:7655"});
}

TEST(DaemonNamesTest, AsksNoServerAboutThisHostAndAboutIpAddresses) {
  const std::string list = "localhost:1,unix:/x,127.0.0.1:2,10.0.0.1:3,[fd00::1]:4";
  EXPECT_FALSE(MayNameSeveral(list));
  EXPECT_EQ(Resolved(list, {"1.1.1.1", "2.2.2.2"}),
            (Addresses{"localhost:1", "unix:/x", "127.0.0.1:2", "10.0.0.1:3", "[fd00::1]:4"}));
  EXPECT_TRUE(MayNameSeveral("10.0.0.1:3,host:4"));
}

// localhost has an address of each kind on most hosts.
TEST(DaemonNamesTest, TakesADaemonWithAnAddressOfEachKindForOne) {
  EXPECT_EQ(ResolveHost("localhost").size(), 1u);
  EXPECT_TRUE(ResolveHost("no-such-host.invalid").empty());
}

TEST(DaemonNamesTest, SaysWhichDaemonOfAListIsWrong) {
  DaemonAddress daemon;
  daemon.address = "10.0.0.1:7655,10.0.0.2";
  EXPECT_EQ(DaemonChannels::Open(daemon).status().message(),
            "the daemon's address \"10.0.0.2\" has no port: --daemon=HOST:7655");
  daemon.address = "10.0.0.1:7655,unix:/run/rollcalld";
  EXPECT_EQ(DaemonChannels::Open(daemon).status().message(),
            "the daemon at unix:/run/rollcalld is on this host: give --daemon=unix:/run/rollcalld "
            "alone, or HOST:PORT for each of several daemons");
  daemon.address = "10.0.0.1:7655,10.0.0.2:7655";
  EXPECT_TRUE(DaemonChannels::Open(daemon).ok());
}

}  // namespace
}  // namespace rollcall
