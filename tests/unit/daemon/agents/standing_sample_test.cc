// SPDX-License-Identifier: Apache-2.0
// Which samples of a process show that it stands.
#include "daemon/agents/standing_sample.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

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

TEST(StandingSampleTest, ATraceOfWorkDoesNotCount) {
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

// MPI, NCCL and CUDA ask again and again. Only who looks at a job for some seconds takes that for a
// wait (`may_spin`).
TEST(StandingSampleTest, AMainThreadThatSpinsInALibraryStands) {
  const auto in_mpi = [](int line, double cpu_seconds) {
    v1::ProcessStack stack;
    stack.set_pid(kMain);
    stack.set_cpu_seconds(cpu_seconds);
    v1::ThreadStack* thread = stack.add_threads();
    thread->set_tid(kMain);
    thread->set_state("R");
    v1::Frame* frame = thread->add_frames();
    frame->set_function("PMPI_Barrier");
    frame->set_module("/usr/lib/libmpi.so.40");
    AddPythonFrame("/home/user/train.py", "train", line, thread);
    return stack;
  };
  const auto after = [](const v1::ProcessStack& first, const v1::ProcessStack& second, bool spin) {
    return AddToRow(AddToRow(nullptr, first, 10 * kSecond, spin), second, 20 * kSecond, spin);
  };
  const Row row = after(in_mpi(7, 10), in_mpi(7, 20), true);
  ASSERT_TRUE(Stands(row));
  EXPECT_TRUE(row->spins);
  const Row watched = after(in_mpi(7, 10), in_mpi(7, 20), false);
  EXPECT_TRUE(Stands(watched)) << "one CPU is that of the wait";
  EXPECT_FALSE(watched->spins);
  EXPECT_FALSE(Stands(after(in_mpi(7, 10), in_mpi(7, 30), false))) << "other threads compute";
  EXPECT_FALSE(Stands(after(in_mpi(7, 10), in_mpi(8, 20), true))) << "another line";
  EXPECT_FALSE(after(in_mpi(7, 10), in_mpi(7, 10), true)->spins) << "it sleeps";
  EXPECT_FALSE(Stands(After(Sample({}), Sample({7, 5, 20})))) << "a queue does not spin";
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

// Of a data loader: it looks every 5 s whether its parent lives.
TEST(StandingSampleTest, AWorkerWithoutWorkThatAsksForItNeverRests) {
  const auto with_worker = [](uint64_t switches, double moved_bytes) {
    v1::ProcessStack stack = Sample({7, 5, 10, moved_bytes});
    v1::ChildProcess* child = stack.add_children();
    child->set_pid(kChild);
    v1::ThreadStack* thread = child->add_threads();
    thread->set_tid(kChild);
    thread->set_state("S");
    thread->set_switches(switches);
    AddPythonFrame("/usr/lib/python3.11/multiprocessing/queues.py", "Queue.get", 113, thread);
    AddPythonFrame("/x/site-packages/torch/utils/data/_utils/worker.py", "_worker_loop", 275,
                   thread);
    return stack;
  };
  const Row row = After(with_worker(1, 1000), with_worker(3, 1000));
  ASSERT_TRUE(Stands(row));
  EXPECT_FALSE(row->rests);
  const Row works = After(with_worker(1, 1000), with_worker(3, 1100));
  ASSERT_TRUE(Stands(works));
  EXPECT_TRUE(works->rests);
}

// A manager of multiprocessing that another rank has started, and that has a copy of the socket at
// which this one waits: its main thread looks each second whether it should end.
TEST(StandingSampleTest, AProcessAtTheOtherEndThatWaitsForRequestsNeverRests) {
  const auto with_manager = [](uint64_t switches, double moved_bytes) {
    v1::ProcessStack stack = Sample({7, 5, 10, moved_bytes});
    v1::ChildProcess* other = stack.add_others();
    other->set_pid(kChild);
    v1::ThreadStack* thread = other->add_threads();
    thread->set_tid(kChild);
    thread->set_state("S");
    thread->set_switches(switches);
    AddPythonFrame("/usr/lib/python3.11/threading.py", "Event.wait", 622, thread);
    AddPythonFrame("/usr/lib/python3.11/multiprocessing/managers.py", "Server.serve_forever", 176,
                   thread);
    return stack;
  };
  const Row row = After(with_manager(1, 1000), with_manager(11, 1000));
  ASSERT_TRUE(Stands(row));
  EXPECT_FALSE(row->rests);
  EXPECT_TRUE(After(with_manager(1, 1000), with_manager(11, 1100))->rests) << "it answers";
}

TEST(StandingSampleTest, ARankThatWaitsInMpiMayUseItsCpu) {
  const auto in_mpi = [](const char* function, double cpu_seconds) {
    v1::ProcessStack stack = Sample({7, 5, cpu_seconds});
    v1::Frame* frame = stack.mutable_threads(0)->mutable_frames(0);
    *frame = v1::Frame();
    frame->set_function(function);
    frame->set_module("libmpi.so.40");
    return stack;
  };
  EXPECT_TRUE(Stands(After(in_mpi("PMPI_Win_lock", 10), in_mpi("PMPI_Win_lock", 20))));
  EXPECT_FALSE(Stands(After(in_mpi("PMPI_Win_lock", 10), in_mpi("PMPI_Win_lock", 25))));
  EXPECT_FALSE(Stands(After(in_mpi("dgemm_", 10), in_mpi("dgemm_", 20))));
}

// Which thread of a library watches them changes.
TEST(StandingSampleTest, WhatLibrariesHaveWatchedInTheRowIsKept) {
  v1::ProcessStack first = Sample({});
  first.add_threads()->mutable_watched()->add_pids(300);
  first.mutable_threads(1)->mutable_watched()->add_called(300);
  const Row row = After(first, Sample({}));
  ASSERT_TRUE(Stands(row));
  EXPECT_TRUE(row->sockets.known);
  EXPECT_EQ(row->sockets.with, std::vector<int32_t>{300});
  EXPECT_EQ(row->sockets.called, std::vector<int32_t>{300});
  EXPECT_TRUE(After(first, Sample({8}))->sockets.with.empty());
}

// It waits for them.
TEST(StandingSampleTest, WhatAProcessAtTheOtherEndDoesIsWork) {
  const auto with_other = [](int line, double cpu_seconds) {
    v1::ProcessStack stack = Sample({});
    v1::ChildProcess* other = stack.add_others();
    other->set_pid(kChild);
    other->set_name("python");
    other->set_cpu_seconds(cpu_seconds);
    v1::ThreadStack* thread = other->add_threads();
    thread->set_tid(kChild);
    AddPythonFrame("/home/user/coordinator.py", "work", line, thread);
    return stack;
  };
  const Row row = After(with_other(1, 1), with_other(1, 1));
  ASSERT_TRUE(Stands(row));
  ASSERT_EQ(row->others.size(), 1u);
  EXPECT_EQ(row->others[0].places.front().at, "/home/user/coordinator.py:1 in work");
  EXPECT_FALSE(Stands(After(with_other(1, 1), with_other(2, 1))));
  EXPECT_FALSE(Stands(After(with_other(1, 1), with_other(1, 9))));
}

TEST(StandingSampleTest, WhatLibrariesWatchIsKnown) {
  v1::ProcessStack stack = Sample({});
  v1::OtherEnd* watched = stack.add_threads()->mutable_watched();
  watched->set_kind("socket");
  watched->set_received_bytes(77);
  watched->set_listens(true);
  for (const int32_t pid : {300, 301}) watched->add_pids(pid);
  watched->add_called(301);
  const Row row = AddToRow(nullptr, stack, kSecond);
  ASSERT_NE(row, nullptr);
  EXPECT_TRUE(row->sockets.known);
  EXPECT_TRUE(row->sockets.listens);
  EXPECT_EQ(row->sockets.received_bytes, 77);
  EXPECT_EQ(row->sockets.with, (std::vector<int32_t>{300, 301}));
  EXPECT_EQ(row->sockets.called, std::vector<int32_t>{301});
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
// MPI uses the CPU while it waits, and no child does so for it.
TEST(StandingSampleTest, AChildThatWorksIsWorkThoughItsParentSpins) {
  const auto in_mpi = [](double cpu_seconds, double child_seconds) {
    v1::ProcessStack stack;
    stack.set_pid(kMain);
    stack.set_cpu_seconds(cpu_seconds);
    v1::ThreadStack* thread = stack.add_threads();
    thread->set_tid(kMain);
    thread->set_state("R");
    thread->add_frames()->set_function("PMPI_Barrier");
    AddPythonFrame("/home/user/train.py", "train", 7, thread);
    v1::ChildProcess* child = stack.add_children();
    child->set_pid(kChild);
    child->set_cpu_seconds(child_seconds);
    return stack;
  };
  EXPECT_TRUE(Stands(After(in_mpi(10, 1), in_mpi(20, 1))));
  EXPECT_FALSE(Stands(After(in_mpi(10, 1), in_mpi(10, 2))));
}

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

// The kernel did not answer in time, or the thread was in an uninterruptible wait.
TEST(StandingSampleTest, AThreadWithoutFramesIsNotKnownToMove) {
  v1::ProcessStack two = Sample({});
  AddThread(kOther, 30, 5, &two);
  v1::ProcessStack without_main = two, without_other = two, elsewhere = two;
  without_main.mutable_threads(0)->clear_frames();
  without_other.mutable_threads(1)->clear_frames();
  EXPECT_TRUE(Stands(After(two, without_other)));
  EXPECT_TRUE(Stands(After(without_other, two)));
  const Row row = After(two, without_main);
  ASSERT_TRUE(Stands(row));
  EXPECT_EQ(row->place.at, "/home/user/train.py:7 in train") << "as before";
  elsewhere.mutable_threads(0)->mutable_frames(1)->set_line(8);
  EXPECT_EQ(AddToRow(row, elsewhere, 30 * kSecond)->since_ns, 30 * kSecond)
      << "compared with the last sample that has its frames";
  EXPECT_EQ(AddToRow(row, two, 30 * kSecond)->since_ns, 10 * kSecond);
}

TEST(StandingSampleTest, ASampleWithoutFramesShowsNothing) {
  EXPECT_EQ(AddToRow(nullptr, v1::ProcessStack(), kSecond), nullptr);
}

}  // namespace
}  // namespace rollcall
