// SPDX-License-Identifier: Apache-2.0
// What two samples of a process say about the processes that it has started.
#include "daemon/agents/children_at_work.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "python_frame.h"
#include "rollcall/v1/incident.pb.h"

namespace rollcall {
namespace {

constexpr int32_t kMain = 100;

struct ChildUse {
  int32_t pid = 0;
  double cpu = 0;
  double moved = 0;
  int32_t parent = kMain;
  double age = 0;
};

v1::ProcessStack SampleAt(int64_t seconds, const std::vector<ChildUse>& children,
                          double ended = 0) {
  v1::ProcessStack stack;
  stack.set_pid(kMain);
  stack.mutable_taken_at()->set_seconds(seconds);
  stack.set_ended_children_cpu_seconds(ended);
  for (const ChildUse& use : children) {
    v1::ChildProcess* child = stack.add_children();
    child->set_pid(use.pid);
    child->set_parent(use.parent);
    child->set_name("worker");
    child->set_cpu_seconds(use.cpu);
    child->set_moved_bytes(use.moved);
    child->set_age_seconds(use.age);
  }
  return stack;
}

std::vector<int32_t> PidsOf(const std::vector<ChildAtWork>& children) {
  std::vector<int32_t> pids;
  for (const ChildAtWork& child : children) pids.push_back(child.pid);
  return pids;
}

struct WorkCase {
  const char* name;
  v1::ProcessStack before, after;
  std::vector<int32_t> working;
};

const WorkCase kCases[] = {
    {"busy_ones_most_first",
     SampleAt(10, {{7, 1}, {8, 1}, {9, 1}}),
     SampleAt(15, {{7, 1.01}, {8, 3}, {9, 6}}),
     {9, 8}},
    {"one_that_looks_around", SampleAt(10, {{7, 1}}), SampleAt(15, {{7, 1.2}}), {}},
    {"one_that_copies", SampleAt(10, {{7, 1, 0}}), SampleAt(15, {{7, 1.1, 1e8}}), {7}},
    {"a_new_one", SampleAt(10, {}), SampleAt(15, {{7, 2}}), {7}},
    {"a_new_one_of_known_age", SampleAt(10, {}), SampleAt(15, {{7, 2, 0, kMain, 4.5}}), {7}},
    {"an_old_one_that_is_new_in_the_list",
     SampleAt(10, {}),
     SampleAt(15, {{7, 2, 0, kMain, 500}}),
     {}},
    {"many_short_ones", SampleAt(10, {}, 5), SampleAt(15, {}, 9), {0}},
    {"an_idle_one_has_ended", SampleAt(10, {{7, 50}}, 1), SampleAt(15, {}, 51), {}},
    {"an_idle_grandchild_has_ended",
     SampleAt(10, {{7, 1}, {8, 50, 0, 7}}),
     SampleAt(15, {{7, 51}}),
     {}},
    {"a_child_and_its_own_have_ended",
     SampleAt(10, {{7, 1}, {8, 50, 0, 7}}, 1),
     SampleAt(15, {}, 52),
     {}},
    {"too_close", SampleAt(10, {{7, 1}}), SampleAt(10, {{7, 3}}), {}},
    {"none", SampleAt(10, {}), SampleAt(15, {}), {}},
};

class ChildrenAtWorkTest : public testing::TestWithParam<WorkCase> {};

TEST_P(ChildrenAtWorkTest, AreThoseThatUseACpuOrMoveBytes) {
  std::vector<int32_t> working;
  for (const ChildAtWork& child : FindChildrenAtWork(GetParam().before, GetParam().after)) {
    if (!child.is_slow) working.push_back(child.pid);
  }
  EXPECT_EQ(working, GetParam().working);
}

INSTANTIATE_TEST_SUITE_P(All, ChildrenAtWorkTest, testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(SlowChildrenTest, UseSomeCpuAndComeLast) {
  const auto found = FindChildrenAtWork(SampleAt(10, {{7, 1}, {8, 1}, {9, 1, 0}}),
                                        SampleAt(15, {{7, 1.1}, {8, 1.02}, {9, 1.2, 1e8}}));
  ASSERT_EQ(PidsOf(found), (std::vector<int32_t>{9, 7}));
  EXPECT_FALSE(found[0].is_slow);
  EXPECT_TRUE(found[1].is_slow);
}

TEST(RemoveRanksTest, RanksAndWhatTheyHaveStartedAreNotChildren) {
  v1::ProcessStack stack = SampleAt(10, {{7}, {8}, {9, 0, 0, 8}, {10, 0, 0, 9}});
  RemoveRanks({8}, &stack);
  ASSERT_EQ(stack.children_size(), 1);
  EXPECT_EQ(stack.children(0).pid(), 7);
}

v1::ThreadStack* AddThreadOf(int32_t tid, v1::ProcessStack* stack) {
  v1::ThreadStack* thread = stack->add_threads();
  thread->set_tid(tid);
  thread->set_state("S");
  return thread;
}

constexpr char kLibrary[] = "/usr/lib/python3.11/";

struct WaitCase {
  const char* name;
  std::string file;
  const char* function;
  bool waits;
};

const WaitCase kWaitCases[] = {
    {"subprocess", std::string(kLibrary) + "subprocess.py", "Popen.wait", true},
    {"pool", std::string(kLibrary) + "multiprocessing/pool.py", "ApplyResult.wait", true},
    {"executor", std::string(kLibrary) + "concurrent/futures/process.py",
     "_ExecutorManagerThread.run", true},
    {"data_loader", "/x/site-packages/torch/utils/data/dataloader.py",
     "_MultiProcessingDataLoaderIter._try_get_data", true},
    {"a_lock", std::string(kLibrary) + "threading.py", "Condition.wait", false},
    {"a_queue", std::string(kLibrary) + "queue.py", "Queue.get", false},
    {"the_programs_own_pool", "/home/user/pool.py", "get", false},
};

// Whether the process may wait for a child that uses so much of a CPU.
bool Awaited(const v1::ProcessStack& stack, double cpus) {
  std::vector<ChildAtWork> children = {{7, "worker", cpus}};
  KeepAwaited(stack, &children);
  return !children.empty();
}

class WaitsForChildrenTest : public testing::TestWithParam<WaitCase> {};

TEST_P(WaitsForChildrenTest, IsKnownByTheLibrary) {
  v1::ProcessStack stack = SampleAt(10, {{7}});
  AddPythonFrame(GetParam().file, GetParam().function, 1, AddThreadOf(kMain, &stack));
  EXPECT_EQ(Awaited(stack, 0.2), GetParam().waits);
}

// Another thread waits for the children, as that of an executor does, or of a program that is
// started to write metrics.
TEST(WaitsForChildrenByThreadTest, IsOneOfTheMainThreadAndNotOfAnyOther) {
  struct Case {
    const char* name;
    const char* file;
    const char* function;
    bool waits;
  };
  for (const Case& c : {
           Case{"a result", "/usr/lib/python3.11/concurrent/futures/_base.py", "Future.result",
                true},
           Case{"a queue", "/usr/lib/python3.11/queue.py", "Queue.get", true},
           Case{"a lock", "/home/user/train.py", "save", false},
           Case{"a read of a file", "/usr/lib/python3.11/pathlib.py", "Path.read_bytes", false},
       }) {
    v1::ProcessStack stack = SampleAt(10, {{7}});
    AddPythonFrame(c.file, c.function, 1, AddThreadOf(kMain, &stack));
    AddPythonFrame(absl::StrCat(kLibrary, "subprocess.py"), "Popen.wait", 1,
                   AddThreadOf(101, &stack));
    EXPECT_EQ(Awaited(stack, 0.2), c.waits) << c.name;
  }
}

TEST(WaitsForChildrenByThreadTest, IsKnownOfNativeCodeToo) {
  v1::ProcessStack stack = SampleAt(10, {{7}});
  v1::Frame* frame = AddThreadOf(kMain, &stack)->add_frames();
  v1::ThreadStack* other = AddThreadOf(101, &stack);
  other->set_wait_channel("do_wait");
  frame->set_function("pthread_mutex_lock");
  EXPECT_FALSE(Awaited(stack, 0.2));
  frame->set_function("pthread_cond_wait@@GLIBC_2.3.2");
  EXPECT_TRUE(Awaited(stack, 0.2));
}

INSTANTIATE_TEST_SUITE_P(All, WaitsForChildrenTest, testing::ValuesIn(kWaitCases),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(WaitForAChildTest, IsSeenAtItsPipeAndInASleepOfTheMainThread) {
  v1::ProcessStack stack = SampleAt(10, {{7}});
  v1::ThreadStack* main = AddThreadOf(kMain, &stack);
  main->mutable_other_end()->add_pids(8);
  EXPECT_FALSE(Awaited(stack, 0.9));
  main->mutable_other_end()->add_pids(7);
  EXPECT_TRUE(Awaited(stack, 0.2));
  main->clear_other_end();
  main->set_wait_channel("hrtimer_nanosleep");
  EXPECT_FALSE(Awaited(stack, 0.2));
  EXPECT_TRUE(Awaited(stack, 0.9));
}

void SetReceived(uint64_t inode, double bytes, v1::ThreadStack* thread) {
  v1::SocketBytes* socket = thread->mutable_other_end()->add_sockets();
  socket->set_inode(inode);
  socket->set_received(bytes);
}

TEST(BytesReceivedTest, OfTheSameThreadInBothSamplesCount) {
  v1::ProcessStack before = SampleAt(10, {}), after = SampleAt(15, {});
  SetReceived(7, 1000, AddThreadOf(kMain, &before));
  v1::ThreadStack* main = AddThreadOf(kMain, &after);
  SetReceived(7, 51'000, main);
  EXPECT_EQ(BytesReceivedASecond(before, after), 10'000);
  main->mutable_other_end()->mutable_sockets(0)->set_received(1500);
  EXPECT_EQ(BytesReceivedASecond(before, after), 0);
  main->set_tid(101);
  main->mutable_other_end()->mutable_sockets(0)->set_received(51'000);
  EXPECT_EQ(BytesReceivedASecond(before, after), 0);
}

// An event loop has a heartbeat, and a connection more than before, which is old.
TEST(BytesReceivedTest, CountsBytesOfOneConnectionAndAmongSeveralOnlyMany) {
  v1::ProcessStack before = SampleAt(10, {}), after = SampleAt(15, {});
  SetReceived(7, 1000, AddThreadOf(kMain, &before));
  v1::ThreadStack* main = AddThreadOf(kMain, &after);
  SetReceived(7, 51'000, main);
  SetReceived(8, 5e9, main);
  EXPECT_EQ(BytesReceivedASecond(before, after), 0);
  main->mutable_other_end()->mutable_sockets(0)->set_received(5e7 + 1000);
  EXPECT_EQ(BytesReceivedASecond(before, after), 1e7);
}

}  // namespace
}  // namespace rollcall
