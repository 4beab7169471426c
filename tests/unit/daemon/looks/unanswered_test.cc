// SPDX-License-Identifier: Apache-2.0
#include "daemon/looks/unanswered.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace rollcall {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

v1::HostLook Unanswered(const std::string& host, const std::string& error) {
  v1::HostLook look;
  look.set_host(host);
  look.set_error(error);
  return look;
}

TEST(UnansweredHostsTest, EachReasonIsALineOfMostHostsFirst) {
  std::vector<v1::HostLook> looks = {Unanswered("gone", "connect to host gone port 22: no route"),
                                     Unanswered("fine", "")};
  EXPECT_THAT(UnansweredHosts(looks),
              ElementsAre("host gone: connect to host gone port 22: no route"));
  for (int i = 1; i <= 6; ++i) {
    const std::string host = absl::StrCat("n", i);
    looks.push_back(Unanswered(host, absl::StrCat("connect to host ", host, " port 22: refused")));
  }
  EXPECT_THAT(UnansweredHosts(looks),
              ElementsAre("hosts n1, n2, n3, n4 and 2 more: connect to host * port 22: refused",
                          "host gone: connect to host gone port 22: no route"));
}

TEST(WhyUnseenTest, TheReasonOfASampleWithoutFramesIsTold) {
  v1::ProcessLook process;
  for (int i = 0; i < 3; ++i) {
    v1::ProcessStack* stack = process.add_samples()->mutable_stack();
    stack->add_threads()->set_state("S");  // /proc shows that much
    stack->set_error("the kernel did not permit it");
  }
  EXPECT_EQ(WhyUnseen(process, true), "the kernel did not permit it");
  for (v1::StackSample& sample : *process.mutable_samples())
    sample.mutable_stack()->mutable_threads(0)->add_frames()->set_function("poll");
  EXPECT_EQ(WhyUnseen(process, true), "") << "of one thread only";
}

TEST(UnansweredHostsTest, ManyReasonsAreCounted) {
  std::vector<v1::HostLook> looks;
  for (int i = 0; i < 100; ++i)
    looks.push_back(Unanswered(absl::StrCat("n", i), absl::StrCat("reason ", i)));
  const std::vector<std::string> lines = UnansweredHosts(looks);
  ASSERT_THAT(lines, SizeIs(kMostUnansweredLines));
  EXPECT_EQ(lines.back(), "hosts did not answer for 85 other reasons");
}

TEST(UnansweredHostsTest, NothingIsReportedOfThoseThatAnswered) {
  EXPECT_THAT(UnansweredHosts({Unanswered("fine", "")}), IsEmpty());
}

}  // namespace
}  // namespace rollcall
