// SPDX-License-Identifier: Apache-2.0
// Which samples of a process show that it stands.
#include "daemon/agents/standing_sample.h"

#include <gtest/gtest.h>

#include <memory>

#include "base/durations.h"
#include "python_frame.h"
#include "rollcall/v1/incident.pb.h"

namespace rollcall {
namespace {

constexpr int32_t kMain = 100, kOther = 101, kChild = 200;
using Row = std::shared_ptr<const Standing>;

void AddThread(int32_t tid, int line, uint64_t switches, v1::ProcessStack* stack) {
  v1::ThreadStack* thread = stack->add_threads();
  thread->set_tid(tid);
  thread->set_state("S");
  thread->set_switches(switches);
  AddPythonFrame("/usr/lib/python3.11/queue.py", "Queue.get", 171, thread);
  AddPythonFrame("/home/user/train.py", "train", line, thread);
}

struct Seen {
  int line = 7;
  uint64_t switches = 5;
  double cpu_seconds = 10, moved_bytes = 1000;
};

v1::ProcessStack Sample(const Seen& seen) {
  v1::ProcessStack stack;
  stack.set_pid(kMain);
  stack.set_cpu_seconds(seen.cpu_seconds);
  stack.set_moved_bytes(seen.moved_bytes);
  AddThread(kMain, seen.line, seen.switches, &stack);
  return stack;
}

// 10 s after the first one.
Row After(const v1::ProcessStack& first, const v1::ProcessStack& second) {
  return AddToRow(AddToRow(nullptr, first, 10 * kSecond), second, 20 * kSecond);
}

bool Stands(const Row& row) { return row != nullptr && row->since_ns == 10 * kSecond; }

TEST(StandingSampleTest, TheSamePlaceIsARow) {
  const Row row = After(Sample({}), Sample({}));
  ASSERT_TRUE(Stands(row));
  EXPECT_EQ(row->newest_ns, 20 * kSecond);
  EXPECT_FALSE(row->rests);
  EXPECT_EQ(row->place.at, "/home/user/train.py:7 in train");
}

TEST(StandingSampleTest, AnotherLineOrWorkBeginsANewRow) {
  const Seen moved[] = {{8}, {7, 5, 10.5}, {7, 5, 10, 40'000}};
  for (const Seen& seen : moved) EXPECT_FALSE(Stands(After(Sample({}), Sample(seen))));
}

TEST(StandingSampleTest, ATraceOfWorkIsNone) {
  EXPECT_TRUE(Stands(After(Sample({}), Sample({7, 5, 10.05, 5'000}))));
}

TEST(StandingSampleTest, AThreadThatPollsStandsAndOneThatWakesSeldomRests) {
  const Row polls = After(Sample({}), Sample({7, 105}));
  ASSERT_TRUE(Stands(polls));
  EXPECT_FALSE(polls->rests);
  const Row rests = After(Sample({}), Sample({7, 9}));
  ASSERT_TRUE(Stands(rests));
  EXPECT_TRUE(rests->rests);
}

// The row counts from its first sample: one that wakes every 8 s sleeps between two of them.
TEST(StandingSampleTest, TheWholeRowDecidesHowOftenAThreadWakes) {
  const Row once = After(Sample({}), Sample({7, 6}));  // a sample may wake it once
  ASSERT_TRUE(Stands(once));
  EXPECT_FALSE(once->rests);
  const Row row = AddToRow(once, Sample({7, 7}), 25 * kSecond);
  ASSERT_TRUE(Stands(row));
  EXPECT_TRUE(row->rests);
}

// Each sample of the others wakes it.
TEST(StandingSampleTest, AThreadThatWaitsForALockOfAFileNeverRests) {
  const auto in_lock = [](uint64_t switches) {
    v1::ProcessStack stack = Sample({7, switches});
    stack.mutable_threads(0)->mutable_frames()->DeleteSubrange(0, 1);  // no queue
    stack.mutable_threads(0)->set_wait_channel("locks_lock_inode_wait");
    return stack;
  };
  const Row row = After(in_lock(5), in_lock(9));
  ASSERT_TRUE(Stands(row));
  EXPECT_FALSE(row->rests);
}

TEST(StandingSampleTest, AThreadOfTheProgramThatComesOrGoesBeginsANewRow) {
  v1::ProcessStack two = Sample({});
  AddThread(kOther, 30, 1, &two);
  EXPECT_FALSE(Stands(After(Sample({}), two)));
  EXPECT_FALSE(Stands(After(two, Sample({}))));
}

TEST(StandingSampleTest, AChildThatWorksIsWork) {
  const auto with_child = [](int line, double cpu_seconds) {
    v1::ProcessStack stack = Sample({});
    v1::ChildProcess* child = stack.add_children();
    child->set_pid(kChild);
    child->set_parent(kMain);
    child->set_name("python");
    child->set_cpu_seconds(cpu_seconds);
    v1::ThreadStack* thread = child->add_threads();
    thread->set_tid(kChild);
    AddPythonFrame("/home/user/child.py", "work", line, thread);
    return stack;
  };
  const Row row = After(with_child(1, 1), with_child(1, 1));
  ASSERT_TRUE(Stands(row));
  ASSERT_EQ(row->children.size(), 1u);
  EXPECT_EQ(row->children[0].places.front().at, "/home/user/child.py:1 in work");
  EXPECT_FALSE(Stands(After(with_child(1, 1), with_child(2, 1))));
  EXPECT_FALSE(Stands(After(with_child(1, 1), with_child(1, 9))));
}

// In a loop that polls, the functions of the library change all the time.
// All of its frames are a library's.
TEST(StandingSampleTest, AThreadThatServesIsSeen) {
  v1::ProcessStack stack = Sample({});
  EXPECT_FALSE(AddToRow(nullptr, stack, 10 * kSecond)->has_server);
  v1::ThreadStack* server = stack.add_threads();
  server->set_tid(kOther);
  server->add_frames()->set_function("poll");
  AddPythonFrame("/usr/lib/python3.11/selectors.py", "_PollLikeSelector.select", 415, server);
  AddPythonFrame("/usr/lib/python3.11/socketserver.py", "BaseServer.serve_forever", 232, server);
  const Row row = AddToRow(nullptr, stack, 10 * kSecond);
  EXPECT_TRUE(row->has_server);
  EXPECT_TRUE(row->threads.empty());
}

TEST(StandingSampleTest, OtherFunctionsOfALibraryAreTheSamePlace) {
  v1::ProcessStack other = Sample({});
  other.mutable_threads(0)->mutable_frames(0)->set_line(180);
  EXPECT_TRUE(Stands(After(Sample({}), other)));
}

TEST(StandingSampleTest, ASampleWithoutFramesShowsNothing) {
  EXPECT_EQ(AddToRow(nullptr, v1::ProcessStack(), kSecond), nullptr);
}

}  // namespace
}  // namespace rollcall
