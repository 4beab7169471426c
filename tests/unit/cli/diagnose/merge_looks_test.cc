// SPDX-License-Identifier: Apache-2.0
#include "cli/diagnose/merge_looks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "look_builder.h"

namespace rollcall {
namespace {

using testing::SizeIs;

const SeenStack kSomewhere = {{{"read", ""}, {"train", "/x/train.py", 20}}};

v1::HostLook LookWith(int64_t begun_ns, uint64_t switches) {
  LookBuilder builder;
  builder.Add(0, {kSomewhere, kSomewhere});
  builder.look.set_begun_ns(begun_ns);
  for (v1::StackSample& sample : *builder.look.mutable_processes(0)->mutable_samples())
    sample.mutable_stack()->mutable_threads(0)->set_switches(switches);
  return builder.look;
}

uint64_t SwitchesAt(const v1::HostLook& look, int sample) {
  return look.processes(0).samples(sample).stack().threads(0).switches();
}

TEST(MergeLooksTest, AProcessHasTheSamplesOfBothInTheirOrder) {
  const v1::HostLook merged = MergeLooks(LookWith(5, 100), LookWith(9, 104));
  ASSERT_THAT(merged.processes(), SizeIs(1));
  ASSERT_THAT(merged.processes(0).samples(), SizeIs(4));
  EXPECT_EQ(merged.begun_ns(), 5);
  EXPECT_EQ(SwitchesAt(merged, 1), 100u);
}

TEST(MergeLooksTest, IgnoresMovementThatEarlierSamplesCaused) {
  EXPECT_EQ(SwitchesAt(MergeLooks(LookWith(5, 100), LookWith(9, 104)), 2), 100u);
  EXPECT_EQ(SwitchesAt(MergeLooks(LookWith(5, 100), LookWith(9, 101)), 2), 100u);
  EXPECT_EQ(SwitchesAt(MergeLooks(LookWith(5, 100), LookWith(9, 150)), 2), 146u);
  EXPECT_EQ(SwitchesAt(MergeLooks(LookWith(5, 0), LookWith(9, 150)), 2), 150u);
  EXPECT_EQ(SwitchesAt(MergeLooks(LookWith(5, 100), LookWith(9, 0)), 2), 0u);
}

TEST(MergeLooksTest, AnotherProcessWithTheSameNumberIsAnotherOne) {
  v1::HostLook later = LookWith(9, 104);
  later.mutable_processes(0)->mutable_process()->set_start_time(78);
  EXPECT_THAT(MergeLooks(LookWith(5, 100), later).processes(0).samples(), SizeIs(2));
  EXPECT_THAT(MergeLooks(LookWith(5, 100), v1::HostLook()).processes(), SizeIs(0));
}

}  // namespace
}  // namespace rollcall
