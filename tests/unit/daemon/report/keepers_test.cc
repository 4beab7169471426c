// SPDX-License-Identifier: Apache-2.0
// Which threads keep a process alive whose main thread has come to its end.
#include "daemon/report/keepers.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "daemon/report/program_line.h"
#include "python_frame.h"
#include "rollcall/v1/incident.pb.h"

namespace rollcall {
namespace {

constexpr int32_t kMainTid = 100;
constexpr char kThreading[] = "/usr/lib/python3.11/threading.py";

v1::ThreadStack* AddNamed(int32_t tid, const std::string& name, bool keeps,
                          v1::ProcessStack* stack) {
  v1::ThreadStack* thread = stack->add_threads();
  thread->set_tid(tid);
  thread->set_name(name);
  thread->set_state("S");
  thread->set_keeps_process(keeps);
  return thread;
}

// The main thread is in this function of the threading module.
v1::ProcessStack Process(const std::string& function) {
  v1::ProcessStack stack;
  stack.set_pid(kMainTid);
  AddPythonFrame(kThreading, function, 1560, AddNamed(kMainTid, "python", false, &stack));
  AddPythonFrame("/usr/lib/python3.11/queue.py", "Queue.get", 171,
                 AddNamed(101, "pool", true, &stack));
  v1::ThreadStack* sender = AddNamed(102, "uploads", true, &stack);
  AddPythonFrame("/usr/lib/python3.11/queue.py", "Queue.get", 171, sender);
  AddPythonFrame("/home/user/train.py", "send_files", 70, sender);
  AddPythonFrame("/home/user/train.py", "log", 80, AddNamed(103, "logger", false, &stack));
  return stack;
}

TEST(KeepersTest, ListsNonDaemonThreadsWithThoseOfTheProgramFirst) {
  const std::vector<ThreadPlace> keepers = FindKeepers(Process("_shutdown"));
  ASSERT_EQ(keepers.size(), 2u);
  EXPECT_EQ(keepers[0].name, "uploads");
  EXPECT_EQ(keepers[0].place.at, "/home/user/train.py:70 in send_files");
  EXPECT_EQ(keepers[1].name, "pool");
}

TEST(KeepersTest, AMainThreadThatJoinsAThreadHasNotEnded) {
  EXPECT_TRUE(FindKeepers(Process("Thread.join")).empty());
}

TEST(KeepersTest, AMainThreadInAHookOfTheProgramHasNotEnded) {
  v1::ProcessStack stack = Process("_shutdown");
  AddPythonFrame("/home/user/train.py", "at_exit", 90, stack.mutable_threads(0));
  EXPECT_TRUE(FindKeepers(stack).empty());
}

TEST(OtherEndOfAThreadTest, IsAChildOrAnotherProcess) {
  v1::ProcessStack stack = Process("Thread.join");
  AddPythonFrame("/home/user/train.py", "ask", 90, stack.mutable_threads(0));
  stack.add_children()->set_pid(7);
  stack.mutable_threads(0)->mutable_other_end()->add_pids(7);
  stack.mutable_threads(0)->mutable_other_end()->add_pids(8);
  const StackPlace place = FindPlace(stack);
  EXPECT_EQ(place.other_end, std::vector<int32_t>{8});
  EXPECT_NE(place.functions.find(kPipeOfAChild), std::string::npos);
}

// A service that the process has started calls it, or answers it.
TEST(OtherEndOfAThreadTest, AChildWithASessionOfItsOwnMayBeAClient) {
  v1::ProcessStack stack = Process("Thread.join");
  AddPythonFrame("/home/user/train.py", "serve", 90, stack.mutable_threads(0));
  stack.add_children()->set_pid(7);
  stack.mutable_children(0)->set_own_session(true);
  v1::OtherEnd* end = stack.mutable_threads(0)->mutable_other_end();
  end->set_kind("socket");
  end->add_pids(7);
  EXPECT_EQ(FindPlace(stack).other_end, std::vector<int32_t>{7});
  end->add_called(7);
  EXPECT_EQ(FindPlace(stack).other_end, std::vector<int32_t>{});
  end->clear_called();
  end->set_kind("pipe");
  EXPECT_EQ(FindPlace(stack).other_end, std::vector<int32_t>{});
}

TEST(OtherEndOfAThreadTest, IsASocketOrAPipeAlsoWithoutAKnownOtherEnd) {
  v1::ProcessStack stack = Process("Thread.join");
  AddPythonFrame("/home/user/train.py", "serve", 90, stack.mutable_threads(0));
  v1::ThreadStack* thread = stack.mutable_threads(0);
  EXPECT_EQ(FindPlace(stack).end, EndKind::kNone);
  thread->set_wait_channel("__skb_wait_for_more_packets");
  EXPECT_EQ(FindPlace(stack).end, EndKind::kSocket);
  thread->set_wait_channel("anon_pipe_read");
  EXPECT_EQ(FindPlace(stack).end, EndKind::kPipe);
  thread->set_wait_channel("futex_do_wait");
  EXPECT_EQ(FindPlace(stack).end, EndKind::kNone);
}

}  // namespace
}  // namespace rollcall
