// SPDX-License-Identifier: Apache-2.0
// The ticks of a collector: what a tick has at first, after changes, and as a whole tick.
#include "agent/collector/collector.h"

#include <gtest/gtest.h>

#include "agent/collector/redact_update.h"
#include "base/durations.h"
#include "base/steady_clock.h"
#include "collector_fixture.h"
#include "interpose/clock.h"

namespace rollcall {
namespace {

namespace fs = std::filesystem;

TEST_F(CollectorTest, FirstTickHasTheCompleteStateAndTheNextOnlyChanges) {
  const Child child;
  const uint32_t comm = segment_.AddComm(5, 0, 2);
  segment_.AddAllReduce(comm, 5000);
  WriteSegment(child, &segment_);
  Collector collector(Options());
  const v1::Tick first = collector.Collect(kSecond, false);
  EXPECT_TRUE(Only(first).has_identity());
  ASSERT_EQ(Only(first).communicators_size(), 1);
  EXPECT_EQ(Only(first).communicators(0).records().op_size(), 1);
  EXPECT_EQ(Only(first).evidence().liveness(), v1::Evidence::ALIVE);

  segment_.AddAllReduce(comm, 6000);
  segment_.Write(SegmentPath(&segment_));
  const v1::Tick second = collector.Collect(kSecond + 1, false);
  EXPECT_FALSE(Only(second).has_identity());
  ASSERT_EQ(Only(second).communicators_size(), 1);
  EXPECT_EQ(Only(second).communicators(0).entered(), 2u);
  EXPECT_EQ(Only(second).communicators(0).records().op_size(), 1);
  EXPECT_EQ(Only(second).communicators(0).records().first_index(), 1u);
}

TEST_F(CollectorTest, WithoutChangesThereIsNoUpdate) {
  const Child child;
  segment_.AddAllReduce(segment_.AddComm(5, 0, 2), 5000);
  WriteSegment(child, &segment_);
  Collector collector(Options());
  collector.Collect(10 * kSecond, false);
  for (int i = 0; i < 3; ++i) {
    const v1::Tick tick = collector.Collect(10 * kSecond + i, false);
    for (const v1::ProcessUpdate& update : tick.processes()) {
      EXPECT_EQ(update.communicators_size(), 0);
      EXPECT_FALSE(update.has_identity());
    }
  }
}

TEST_F(CollectorTest, WholeTickHasTheCompleteStateAgain) {
  const Child child;
  const uint32_t comm = segment_.AddComm(5, 0, 2);
  for (int i = 0; i < 40; ++i) segment_.AddAllReduce(comm, 5000);
  segment_.entry(comm)->checkpoints[1].position = 16;
  WriteSegment(child, &segment_);
  Collector collector(Options());
  collector.Collect(kSecond, true);
  const v1::Tick again = collector.Collect(2 * kSecond, true);
  EXPECT_TRUE(again.whole());
  EXPECT_TRUE(Only(again).has_identity());
  EXPECT_TRUE(Only(again).has_evidence());
  ASSERT_EQ(Only(again).communicators_size(), 1);
  EXPECT_EQ(Only(again).communicators(0).records().op_size(), 40);
  EXPECT_EQ(Only(again).communicators(0).checkpoint_positions_size(), 1);
}

TEST_F(CollectorTest, ServesAProcessFromTheTickThatReportsItToThisStream) {
  const Child child;
  WriteSegment(child, &segment_);
  Collector collector(Options());
  const ProcessId process = {child.pid(), child.start_time()};
  EXPECT_FALSE(collector.served().Has(process));
  collector.Collect(kSecond, true);
  EXPECT_TRUE(collector.served().Has(process));
  collector.served().Clear();
  EXPECT_FALSE(collector.served().Has(process)) << "another daemon has not heard of it";
  collector.Collect(2 * kSecond, true);
  EXPECT_TRUE(collector.served().Has(process));
}

TEST_F(CollectorTest, GivesTheAgentsTenantToProcessesWithoutOne) {
  const Child child;
  WriteSegment(child, &segment_);
  CollectorOptions options = Options();
  options.tenant = "team-a";
  options.stacks_off = "--stacks=off of the agent";
  const v1::Tick tick = Collector(options).Collect(kSecond, true);
  EXPECT_EQ(Only(tick).identity().tenant(), "team-a");
  EXPECT_EQ(Only(tick).identity().stacks_off(), "--stacks=off of the agent");
}

TEST_F(CollectorTest, HidesSecretsInWhatTheProcessWrote) {
  const Child child;
  strcpy(segment_.header()->command, "train.py --db-password=hunter2 --job ticket-17");
  strcpy(segment_.header()->error, "ValueError: https://me:hunter2@db at train.py:57");
  segment_.header()->error_ticks = 5;
  strcpy(segment_.header()->failed_thread, "ticket-17");
  strcpy(segment_.header()->thread_error, "ValueError: https://me:hunter2@db at data.py:40");
  segment_.header()->thread_error_ticks = 6;
  WriteSegment(child, &segment_);
  CollectorOptions options = Options();
  options.redactor = *Redactor::Create({"ticket-([0-9]+)"});
  options.send_arguments = SendArguments::kAll;
  const v1::Tick tick = Collector(options).Collect(kSecond, true);
  EXPECT_EQ(Only(tick).identity().command(),
            "train.py --db-password=[redacted] --job "
            "ticket-[redacted]");
  EXPECT_EQ(Only(tick).evidence().error(), "ValueError: https://me:[redacted]@db at train.py:57");
  const v1::ThreadFailure& failure = Only(tick).evidence().thread_failure();
  EXPECT_EQ(failure.thread(), "ticket-[redacted]");
  EXPECT_EQ(failure.error(), "ValueError: https://me:[redacted]@db at data.py:40");
  EXPECT_NE(failure.failed_ns(), 0);
}

TEST_F(CollectorTest, HidesSecretsInTheKeyForWhichAThreadWaits) {
  const Child child;
  segment::AwaitedKey& key = segment_.header()->awaited_keys[2];
  strcpy(key.text, "/shards/https://me:hunter2@store/7");
  key.tid = 41;
  key.keys = 3;
  for (uint32_t i = 0; i < 2; ++i) {
    segment_.blocked(i)->tid = 41 + i;
    segment_.blocked(i)->op = static_cast<uint32_t>(Op::kstore_wait);
    segment_.blocked(i)->since = 5;
    segment_.blocked(i)->key = 1 + 2;
  }
  WriteSegment(child, &segment_);
  const v1::Tick tick = Collector(Options()).Collect(kSecond, true);
  ASSERT_EQ(Only(tick).evidence().blocked_size(), 2);
  EXPECT_EQ(Only(tick).evidence().blocked(0).key(), "/shards/https://me:[redacted]@store/7");
  EXPECT_EQ(Only(tick).evidence().blocked(0).keys(), 3u);
  EXPECT_EQ(Only(tick).evidence().blocked(1).key(), "") << "the key is another thread's";
}

// Before a process has a segment, its stack shows the key.
TEST(RedactStackTest, HidesTheSecretInTheKeyForWhichAThreadWaits) {
  v1::ProcessStack stack;
  stack.add_threads()->set_awaited_key("/shards/https://me:hunter2@store/7");
  Redact(*DefaultRedactor(), &stack);
  EXPECT_EQ(stack.threads(0).awaited_key(), "/shards/https://me:[redacted]@store/7");
}

// No pattern knows a secret of which the library has kept a part.
TEST_F(CollectorTest, SendsNoPartOfASecretInATextThatTheLibraryHasCut) {
  const Child child;
  segment::SegmentHeader* header = segment_.header();
  const auto fill = [](char* field, size_t size, const std::string& begin, const std::string& end) {
    const std::string text = begin + std::string(size - 1 - begin.size() - end.size(), '7') + end;
    memcpy(field, text.c_str(), size);
  };
  const std::string address = "no answer of s3://me:hunter2";
  fill(header->error, segment::kErrorBytes, "ValueError: " + address, " at train.py:57");
  fill(header->thread_error, segment::kErrorBytes, "KeyError: " + address, "");
  fill(header->failed_thread, segment::kThreadNameBytes, "load " + address, "");
  fill(reinterpret_cast<char*>(header->annotations.phase), sizeof(header->annotations.phase),
       address, "");
  fill(header->awaited_keys[0].text, sizeof(header->awaited_keys[0].text), "hunter2",
       "@store/ready");
  fill(header->command, sizeof(header->command),
       std::string("train.py\0--from\0s3://me:hunter2", 31), "");
  header->error_ticks = header->thread_error_ticks = 5;
  header->awaited_keys[0].tid = segment_.blocked(0)->tid = 41;
  segment_.blocked(0)->op = static_cast<uint32_t>(Op::kstore_wait);
  segment_.blocked(0)->since = 5;
  segment_.blocked(0)->key = 1;
  WriteSegment(child, &segment_);
  CollectorOptions options = Options();
  options.send_arguments = SendArguments::kAll;
  const v1::Tick tick = Collector(options).Collect(kSecond, true);
  EXPECT_EQ(tick.DebugString().find("hunter2"), std::string::npos) << tick.DebugString();
  const v1::Evidence& evidence = Only(tick).evidence();
  EXPECT_EQ(evidence.error(), "ValueError: no answer of ... at train.py:57");
  EXPECT_EQ(evidence.thread_failure().error(), "KeyError: no answer of ...");
  EXPECT_EQ(evidence.thread_failure().thread(), "load no answer of ...");
  EXPECT_EQ(evidence.phase(), "no answer of ...");
  ASSERT_EQ(evidence.blocked_size(), 1);
  EXPECT_EQ(evidence.blocked(0).key(), ".../ready");
  EXPECT_EQ(Only(tick).identity().command(), "train.py --from");
}

TEST_F(CollectorTest, SendsOfACommandLineWhatIsKnownToBeHarmless) {
  const Child child;
  const char command[] = "python\0train.py\0--lr\0003\0--note\0two words";
  memcpy(segment_.header()->command, command, sizeof(command));
  WriteSegment(child, &segment_);
  const v1::Tick tick = Collector(Options()).Collect(kSecond, true);
  EXPECT_EQ(Only(tick).identity().command(), "python train.py --lr 3 --note [9 characters]");
}

TEST_F(CollectorTest, FindsASegmentThatIsCreatedLater) {
  Collector collector(Options());
  EXPECT_EQ(collector.Collect(kSecond, true).processes_size(), 0);
  const Child child;
  segment_.AddComm(5, 0, 2);
  WriteSegment(child, &segment_);
  EXPECT_TRUE(Only(collector.Collect(2 * kSecond, false)).identity().has_segment());
}

TEST_F(CollectorTest, ReportsAnOpenCallAgainWhenItHasReturned) {
  const Child child;
  const uint32_t comm = segment_.AddComm(5, 0, 2);
  segment_.AddAllReduce(comm, 5000);
  segment_.record(comm, 0)->returned = 0;
  segment_.entry(comm)->returned = 0;
  WriteSegment(child, &segment_);
  Collector collector(Options());
  const v1::Tick open = collector.Collect(kSecond, false);
  EXPECT_EQ(Only(open).communicators(0).records().duration_ns(0), -1);
  segment_.record(comm, 0)->returned = 9000;
  segment_.entry(comm)->returned = 1;
  segment_.Write(SegmentPath(&segment_));
  const v1::Tick returned = collector.Collect(kSecond + 1, false);
  EXPECT_EQ(Only(returned).communicators(0).records().first_index(), 0u);
  EXPECT_EQ(Only(returned).communicators(0).records().duration_ns(0), 4000);
}

TEST_F(CollectorTest, FollowsAProcessThroughExec) {
  const Child child;
  segment_.AddAllReduce(segment_.AddComm(5, 0, 2), 5000);
  WriteSegment(child, &segment_);
  Collector collector(Options());
  collector.Collect(kSecond, false);
  // After exec() the process creates a new file with the same name.
  fs::remove(SegmentPath(&segment_));
  SegmentBuilder fresh;
  fresh.AddAllReduce(fresh.AddComm(77, 1, 2), 5000);
  WriteSegment(child, &fresh);
  collector.Collect(2 * kSecond, false);
  const v1::Tick tick = collector.Collect(3 * kSecond, true);
  ASSERT_EQ(Only(tick).communicators_size(), 1);
  EXPECT_EQ(Only(tick).communicators(0).id(), 77u);
}

// The segment has times of the CPU's counter, as the library writes them. The collector measures
// the rate of the counter, and each measurement differs a little. The header's clocks are those of
// a time namespace that is a day ahead.
TEST_F(CollectorTest, TimesOfTheCounterHardlyChangeBetweenTicks) {
  const Child child;
  const uint32_t comm = segment_.AddComm(5, 0, 2);
  segment::SegmentHeader* header = segment_.header();
  const uint64_t ticks = CounterTicks();
  header->clock_source = segment::ClockSource::kCounter;
  header->first_clock.ticks = ticks / 2;
  const uint64_t up = ClockNs(CLOCK_MONOTONIC);
  header->first_clock.monotonic_ns = up / 2 + 86'400 * uint64_t{kSecond};
  header->first_clock.realtime_ns = ClockNs(CLOCK_REALTIME) - (up - up / 2);
  segment_.entry(comm)->init_entered = ticks - 3000;
  segment_.AddAllReduce(comm, ticks - 2000);
  segment_.AddAllReduce(comm, ticks - 1000);
  segment_.entry(comm)->flags |= segment::kFlagMarkers;
  segment_.lane(comm, 0)->started = 2;
  segment_.lane(comm, 0)->finished = 1;
  WriteSegment(child, &segment_);

  Collector collector(Options());
  const v1::Tick first = collector.Collect(kSecond, false);
  ASSERT_EQ(Only(first).communicators_size(), 1);
  const int64_t since = Only(first).communicators(0).waiting_since_ns();
  EXPECT_NEAR(static_cast<double>(SteadyNs() - since), 0, 5e9) << "a wrong start of the wait";
  int changes = 0;
  for (int second = 2; second < 20; ++second) {
    const v1::Tick next = collector.Collect(second * kSecond, false);
    for (const v1::ProcessUpdate& update : next.processes()) {
      changes += update.communicators_size();
    }
  }
  EXPECT_LE(changes, 3) << "one for each better measurement of the rate";
}

TEST_F(CollectorTest, ReadsABlockWithANewCommunicatorFromTheStart) {
  const Child child;
  const uint32_t comm = segment_.AddComm(5, 0, 2);
  for (int i = 0; i < 3; ++i) segment_.AddAllReduce(comm, 5000);
  WriteSegment(child, &segment_);
  Collector collector(Options());
  collector.Collect(kSecond, false);
  SegmentBuilder reused;
  reused.AddAllReduce(reused.AddComm(6, 1, 2), 8000);
  reused.entry(0)->init_entered = 7000;
  reused.BelongTo(child.pid(), child.start_time());
  reused.Write(SegmentPath(&reused));
  const v1::Tick tick = collector.Collect(2 * kSecond, false);
  EXPECT_EQ(Only(tick).communicators(0).id(), 6u);
  EXPECT_EQ(Only(tick).communicators(0).records().op_size(), 1);
}

TEST_F(CollectorTest, NoWaitStartsBeforeTheWaitFloor) {
  const Child child;
  const uint32_t comm = segment_.AddComm(5, 0, 2);
  segment_.AddAllReduce(comm, 5000);
  segment_.entry(comm)->returned = 0;
  segment_.blocked(0)->tid = static_cast<uint32_t>(child.pid());
  segment_.blocked(0)->op = static_cast<uint32_t>(Op::kAllReduce);
  segment_.blocked(0)->comm = comm;
  segment_.blocked(0)->since = ClockNs(CLOCK_MONOTONIC);
  const uint32_t creating = segment_.AddComm(6, 0, 2);
  segment_.entry(creating)->state = static_cast<uint32_t>(segment::CommState::kInitializing);
  WriteSegment(child, &segment_);
  Collector collector(Options());
  const int64_t held_ns = SteadyNs();
  const v1::Tick before = collector.Collect(held_ns, true);
  EXPECT_LT(Only(before).communicators(0).waiting_since_ns(), held_ns);
  EXPECT_GT(Only(before).communicators(0).waiting_since_ns(), 0);
  collector.SetWaitFloor(held_ns);
  const v1::Tick after = collector.Collect(held_ns + kSecond, false);
  ASSERT_EQ(Only(after).communicators_size(), 2);
  EXPECT_EQ(Only(after).communicators(0).waiting_since_ns(), held_ns);
  EXPECT_EQ(Only(after).communicators(0).host_blocked_since_ns(), held_ns);
  EXPECT_EQ(Only(after).communicators(1).init_entered_ns(), held_ns);
  EXPECT_EQ(Only(after).evidence().blocked(0).since_ns(), held_ns);
}

}  // namespace
}  // namespace rollcall
