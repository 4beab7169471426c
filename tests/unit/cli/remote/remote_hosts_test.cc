// SPDX-License-Identifier: Apache-2.0
#include "cli/remote/remote_hosts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace rollcall {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

TEST(RemoteHostsTest, NamesAreSeparatedByCommas) {
  EXPECT_THAT(ParseHosts("node-1,node-2,,node-1, eve@node-3").value(),
              ElementsAre("node-1", "node-2", "eve@node-3"));
}

TEST(RemoteHostsTest, HostFilesOfMpiAreRead) {
  EXPECT_THAT(
      ParseHosts("# all\nnode-1 slots=8\r\nnode-2:8\n\n  node-3  # last\nfe80::1:2\n").value(),
      ElementsAre("node-1", "node-2", "node-3", "fe80::1:2"));
}

TEST(RemoteHostsTest, WhatSshCouldTakeForAFlagIsNotAHost) {
  for (const char* text : {"-oProxyCommand=reboot", "a,-l", "$(reboot)", "a;b", "a b,c'd",
                           "\x1b[2J", "", "#", "a/b", "`x`", "a\\b"}) {
    EXPECT_EQ(ParseHosts(text).ok(), std::string(text) == "a b") << text;
  }
  EXPECT_THAT(std::string(ParseHosts("a,-oX").status().message()),
              HasSubstr("\"-oX\" is not the name of a host"));
  EXPECT_FALSE(ParseHosts(std::string(300, 'a')).ok());
}

TEST(RemoteHostsTest, TooManyHostsAreAnError) {
  std::string text;
  for (size_t i = 0; i < kMostRemoteHosts; ++i) absl::StrAppend(&text, "node-", i, "\n");
  EXPECT_THAT(ParseHosts(text).value(), SizeIs(kMostRemoteHosts));
  EXPECT_FALSE(ParseHosts(text + "one-more").ok());
}

TEST(RemoteHostsTest, NamesOfKubernetesAndJobsOfSlurm) {
  EXPECT_TRUE(IsKubernetesName("train-0.x"));
  EXPECT_FALSE(IsKubernetesName("-train"));
  EXPECT_FALSE(IsKubernetesName("a/b"));
  EXPECT_FALSE(IsKubernetesName(""));
  EXPECT_TRUE(IsSlurmJob("123"));
  EXPECT_TRUE(IsSlurmJob("123_4"));
  EXPECT_TRUE(IsSlurmJob("123+1"));
  EXPECT_FALSE(IsSlurmJob("_4"));
  EXPECT_FALSE(IsSlurmJob("--all"));
  EXPECT_FALSE(IsSlurmJob("12 3"));
}

}  // namespace
}  // namespace rollcall
