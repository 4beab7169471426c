// SPDX-License-Identifier: Apache-2.0
// Which children are sampled with a process, and what real ones show.
#include "agent/link/child_stacks.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "agent/link/stack_service.h"
#include "agent/outside/descendants.h"
#include "agent/outside/waited_descriptors.h"
#include "agent/processes/payer.h"
#include "agent/processes/proc_files.h"
#include "agent/processes/proc_stat.h"
#include "eventually.h"

namespace rollcall {
namespace {

v1::ProcessStack WithStates(const std::vector<std::string>& states) {
  v1::ProcessStack stack;
  for (const std::string& state : states) stack.add_children()->set_state(state);
  return stack;
}

struct ChoiceCase {
  const char* name;
  std::vector<std::string> states;
  std::vector<int> chosen;
};

const ChoiceCase kChoices[] = {
    {"none_without_children", {}, {}},
    {"parents_first", {"S", "D", "R"}, {0, 1, 2}},
    {"not_those_that_have_ended", {"Z", "S", "X"}, {1}},
    {"stopped_ones_last", {"T", "S", "t", "R"}, {1, 3, 0, 2}},
    {"eight", {"S", "S", "S", "S", "S", "S", "S", "S", "S"}, {0, 1, 2, 3, 4, 5, 6, 7}},
    {"a_late_one_before_a_stopped_one",
     {"T", "S", "S", "S", "S", "S", "S", "S", "S"},
     {1, 2, 3, 4, 5, 6, 7, 8}},
    {"not_those_of_an_unknown_state", {"", "SS", "?"}, {}},
};

class ChildrenToSampleTest : public testing::TestWithParam<ChoiceCase> {};

TEST_P(ChildrenToSampleTest, AreThese) {
  EXPECT_EQ(ChildrenToSample(WithStates(GetParam().states)), GetParam().chosen);
}

INSTANTIATE_TEST_SUITE_P(All, ChildrenToSampleTest, testing::ValuesIn(kChoices),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(ChildThreadsTest, AreThoseWithFrames) {
  v1::ProcessStack taken;
  taken.add_threads()->add_frames()->set_function("wait");
  taken.add_threads()->set_note("it has ended");
  v1::ChildProcess child;
  AddChildThreads(taken, &child);
  ASSERT_EQ(child.threads_size(), 1);
  EXPECT_EQ(child.threads(0).frames(0).function(), "wait");
}

void WaitForEver() {
  while (true) pause();
}

// A process with children that do this, all asleep.
class Parent {
 public:
  explicit Parent(const std::vector<std::function<void()>>& children) : pid_(fork()) {
    if (pid_ == 0) {
      for (const auto& run : children) Start(run);
      WaitForEver();
    }
    while (!AreAsleep(children.size())) usleep(1000);
  }
  ~Parent() {
    kill(pid_, SIGKILL);  // the children die with it
    waitpid(pid_, nullptr, 0);
  }
  ProcessId id() const { return {pid_, ReadProcStat("/proc", pid_)->start_time}; }

 private:
  static void Start(const std::function<void()>& run) {
    if (fork() != 0) return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    run();
    WaitForEver();
  }
  bool AreAsleep(size_t children) const {
    const Descendants found = FindDescendants("/proc", pid_);
    if (found.processes.size() != children) return false;
    for (const Descendant& child : found.processes) {
      const auto call = ReadProcFile(ProcPath("/proc", child.pid, "syscall"));
      if (child.state != 'S' || !call.ok() || call->find("0x") == std::string::npos) return false;
    }
    return true;
  }

  const pid_t pid_;
};

// Without the usual limit: tests ask until something is there.
StackServiceOptions Unlimited() {
  StackServiceOptions options;
  options.max_per_minute = 0;
  return options;
}

std::unique_ptr<StackService> ServiceFor(ProcessId id, StackServiceOptions options = Unlimited()) {
  options.namer = std::make_shared<StackNamer>(options.proc_root, ROLLCALL_PROGRAMS);
  return std::make_unique<StackService>(std::move(options),
                                        [id](ProcessId asked) { return asked == id; });
}

v1::ProcessStack Take(const Parent& parent, bool children,
                      StackServiceOptions options = Unlimited()) {
  return ServiceFor(parent.id(), std::move(options))->Take(parent.id(), children);
}

int Sampled(const v1::ProcessStack& stack) {
  int sampled = 0;
  for (const v1::ChildProcess& child : stack.children()) sampled += child.threads().empty() ? 0 : 1;
  return sampled;
}

void Become(std::vector<const char*> command, const char* variable) {
  command.push_back(nullptr);
  const char* environment[] = {variable, "PATH=/usr/bin:/bin", nullptr};
  execvpe(command[0], const_cast<char**>(command.data()), const_cast<char**>(environment));
  _exit(99);
}

bool KernelListsChildren() { return access("/proc/thread-self/children", R_OK) == 0; }

class ChildStacksTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!KernelListsChildren()) GTEST_SKIP() << "this kernel lists no children";
#ifdef __SANITIZE_THREAD__
    GTEST_SKIP() << "ThreadSanitizer adds a thread of its own";
#endif
  }
};

TEST_F(ChildStacksTest, AreTakenIfTheDaemonAsks) {
  const Parent parent({WaitForEver, WaitForEver});
  const v1::ProcessStack without = Take(parent, false);
  EXPECT_EQ(without.children_size(), 2);
  EXPECT_EQ(Sampled(without), 0);
  const v1::ProcessStack with = Take(parent, true);
  ASSERT_EQ(Sampled(with), 2) << with.DebugString();
  for (const v1::ChildProcess& child : with.children()) {
    ASSERT_EQ(child.threads_size(), 1);
    EXPECT_EQ(child.threads(0).tid(), child.pid());
    EXPECT_GT(child.threads(0).frames_size(), 0);
  }
}

TEST_F(ChildStacksTest, HaveTheSameSwitchesInEachSample) {
  const Parent parent({WaitForEver});
  const auto service = ServiceFor(parent.id());
  const v1::ProcessStack first = service->Take(parent.id(), true);
  const v1::ProcessStack second = service->Take(parent.id(), true);
  ASSERT_EQ(Sampled(first), 1);
  ASSERT_EQ(Sampled(second), 1);
  EXPECT_GT(first.children(0).threads(0).switches(), 0u);
  EXPECT_EQ(first.children(0).threads(0).switches(), second.children(0).threads(0).switches());
}

TEST_F(ChildStacksTest, AreThoseOfEightAtMost) {
  const Parent parent(std::vector<std::function<void()>>(10, WaitForEver));
  EXPECT_EQ(Sampled(Take(parent, true)), 8);
}

TEST_F(ChildStacksTest, EachCountsInTheLimit) {
  const Parent parent({WaitForEver, WaitForEver, WaitForEver});
  StackServiceOptions options;
  options.max_per_minute = 3;
  EXPECT_EQ(Sampled(Take(parent, true, options)), 2);
}

TEST_F(ChildStacksTest, AChildThatForbidsThemHasNone) {
  const Parent parent({[] { Become({"sleep", "1000"}, "ROLLCALL_STACKS=off"); },
                       [] { Become({"sleep", "1000"}, "ROLLCALL_STACKS=on"); }});
  v1::ProcessStack stack;
  EXPECT_TRUE(Eventually([&] { return (stack = Take(parent, true)).children_size() == 2; }));
  EXPECT_EQ(Sampled(stack), 1) << stack.DebugString();
}

TEST_F(ChildStacksTest, AChildOfAnotherUserHasNone) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root";
  const Parent parent({[] {
                         if (setuid(12345) != 0) _exit(1);
                         prctl(PR_SET_PDEATHSIG, SIGKILL);
                         WaitForEver();
                       },
                       WaitForEver});
  EXPECT_EQ(Sampled(Take(parent, true)), 1);
}

TEST_F(ChildStacksTest, ShowWhoIsAtTheOtherEnd) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const Parent parent({[&] {
    close(ends[1]);
    char byte;
    if (read(ends[0], &byte, 1) != 0) _exit(1);
  }});
  for (const int fd : ends) close(fd);  // this process is above both
  const v1::ProcessStack stack = Take(parent, true);
  ASSERT_EQ(Sampled(stack), 1) << stack.DebugString();
  const v1::OtherEnd& end = stack.children(0).threads(0).other_end();
  EXPECT_EQ(end.kind(), "pipe");
  ASSERT_EQ(end.pids_size(), 1);
  EXPECT_EQ(end.pids(0), stack.pid());
}

TEST_F(ChildStacksTest, AServiceHasASessionOfItsOwn) {
  const Parent parent({[] { setsid(); }, [] {}});
  const v1::ProcessStack stack = Take(parent, true);
  ASSERT_EQ(stack.children_size(), 2);
  EXPECT_TRUE(stack.children(0).own_session());
  EXPECT_FALSE(stack.children(1).own_session());
}

// Those of libraries have no stacks in such a sample.
TEST_F(ChildStacksTest, AThreadOfAServiceMayWaitForMoreThanALock) {
  const auto reads = [] {
    int ends[2];
    char byte;
    if (pipe(ends) != 0 || read(ends[0], &byte, 1) != 0) _exit(1);
  };
  const Parent reader({[&] {
    setsid();
    std::thread(reads).detach();
    WaitForEver();
  }});
  EXPECT_TRUE(Eventually([&] { return Take(reader, true).children(0).hides_a_wait(); }));
  const Parent alone({[] { setsid(); }});
  EXPECT_TRUE(Eventually([&] { return !Take(alone, true).children(0).hides_a_wait(); }));
}

int ConnectTo(const std::string& name) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  name.copy(address.sun_path + 1, sizeof(address.sun_path) - 2);
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  while (connect(fd, reinterpret_cast<sockaddr*>(&address), size) != 0) usleep(1000);
  return fd;
}

void Serve(const std::string& name) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  name.copy(address.sun_path + 1, sizeof(address.sun_path) - 2);
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  if (bind(fd, reinterpret_cast<sockaddr*>(&address), size) != 0 || listen(fd, 4) != 0) _exit(1);
  WaitForEver();
}

// A process that does this, without children.
class Alone {
 public:
  explicit Alone(const std::function<void()>& run) : pid_(fork()) {
    if (pid_ != 0) return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    run();
    _exit(1);
  }
  ~Alone() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  ProcessId id() const { return {pid_, ReadProcStat("/proc", pid_)->start_time}; }

 private:
  const pid_t pid_;
};

// A thread of a library watches the sockets of others.
TEST_F(ChildStacksTest, WhatAThreadWatchesForOthersIsKnown) {
  const std::string name = absl::StrCat("rollcall watched ", getpid());
  const Parent server({[&] { Serve(name); }});
  const Alone watcher([&] {
    std::thread([&] {
      const int many = epoll_create1(0);
      epoll_event event = {};
      event.events = EPOLLIN;
      epoll_ctl(many, EPOLL_CTL_ADD, ConnectTo(name), &event);
      while (epoll_wait(many, &event, 1, -1) < 0) {
      }
    }).detach();
    WaitForEver();
  });
  const ProcessId id = watcher.id();
  StackServiceOptions options = Unlimited();
  options.neighbours = [neighbour = server.id().pid] { return std::vector<pid_t>{neighbour}; };
  const auto service = ServiceFor(id, options);
  v1::OtherEnd watched;
  EXPECT_TRUE(Eventually([&] {
    const v1::ProcessStack stack = service->Take(id, true);
    for (const v1::ThreadStack& thread : stack.threads()) {
      EXPECT_FALSE(thread.has_other_end());
      if (thread.has_watched()) watched = thread.watched();
    }
    return !watched.pids().empty();
  }));
  const pid_t serving = FindDescendants("/proc", server.id().pid).processes.at(0).pid;
  EXPECT_EQ(watched.kind(), "socket");
  ASSERT_EQ(watched.pids_size(), 1);
  EXPECT_EQ(watched.pids(0), serving);
}

// Asks a server, and waits for its answer.
void AskServer(const std::string& name) {
  const int fd = ConnectTo(name);
  char byte;
  if (recv(fd, &byte, 1, 0) != 0) _exit(1);
}
// A coordinator that rank 0 has started, and rank 2 asks.
TEST_F(ChildStacksTest, ADescendantOfAnotherProcessOfTheJobMayBeAtTheOtherEnd) {
  const std::string name = absl::StrCat("rollcall coordinator ", getpid());
  const Parent first({[&] { Serve(name); }});
  const Parent asker({[&] { AskServer(name); }});
  StackServiceOptions options;
  options.neighbours = [pid = first.id().pid] { return std::vector<pid_t>{pid}; };
  v1::OtherEnd end;
  EXPECT_TRUE(Eventually([&] {
    const v1::ProcessStack stack = Take(asker, true, options);
    if (Sampled(stack) == 1) end = stack.children(0).threads(0).other_end();
    return !end.pids().empty();
  }));
  EXPECT_EQ(end.kind(), "socket");
  const pid_t coordinator = FindDescendants("/proc", first.id().pid).processes.at(0).pid;
  ASSERT_EQ(end.pids_size(), 1);
  EXPECT_EQ(end.pids(0), coordinator);
  EXPECT_EQ(end.names(0), ReadProcStat("/proc", coordinator)->name);
}

// A coordinator that the launcher has started beside the ranks.
TEST_F(ChildStacksTest, AProcessAtTheOtherEndThatIsNotARankIsSampledToo) {
  const std::string name = absl::StrCat("rollcall beside ", getpid());
  const Alone coordinator([&] { Serve(name); });
  const Alone asker([&] { AskServer(name); });
  const auto take = [&](std::vector<pid_t> ranks) {
    StackServiceOptions options;
    options.neighbours = [ranks = std::move(ranks)] { return ranks; };
    return ServiceFor(asker.id(), std::move(options))->Take(asker.id(), true);
  };
  v1::ProcessStack stack;
  EXPECT_TRUE(Eventually([&] { return !(stack = take({})).others().empty(); }));
  ASSERT_EQ(stack.others_size(), 1);
  const v1::ChildProcess& other = stack.others(0);
  EXPECT_EQ(other.pid(), coordinator.id().pid);
  EXPECT_EQ(other.parent(), getpid());
  EXPECT_EQ(other.threads_size(), 1);
  EXPECT_FALSE(other.hides_a_wait());
  // A rank has a sample of its own.
  EXPECT_EQ(take({coordinator.id().pid}).others_size(), 0);
}

// A process of another user could block a reader of its files.
TEST_F(ChildStacksTest, DoesNotSearchProcessesOfOtherUsersForTheOtherEnd) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can become others";
  for (const uid_t user : {0u, 12345u}) {
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    const pid_t holder = fork();
    if (holder == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (setresuid(user, user, user) != 0) _exit(1);
      prctl(PR_SET_DUMPABLE, 1);  // else its folder in /proc is root's
      WaitForEver();
    }
    while (PayerOfReads("/proc", holder) != user) usleep(1000);
    close(ends[1]);
    const pid_t reader = fork();
    if (reader == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      char byte;
      _exit(static_cast<int>(read(ends[0], &byte, 1)));
    }
    const ProcessId id = {reader, ReadProcStat("/proc", reader)->start_time};
    StackServiceOptions options = Unlimited();
    options.neighbours = [holder] { return std::vector<pid_t>{holder}; };
    const auto service = ServiceFor(id, std::move(options));
    EXPECT_TRUE(Eventually([&] {
      const std::optional<SystemCall> call = ReadSystemCall("/proc", reader, reader);
      return call.has_value() && call->number == SYS_read;
    }));
    v1::ProcessStack stack;
    EXPECT_TRUE(Eventually([&] { return (stack = service->Take(id)).threads_size() == 1; }));
    if (stack.threads_size() == 1) {
      EXPECT_EQ(stack.threads(0).other_end().pids_size(), user == 0 ? 1 : 0);
    }
    for (const pid_t child : {holder, reader}) {
      kill(child, SIGKILL);
      waitpid(child, nullptr, 0);
    }
    close(ends[0]);
  }
}

TEST_F(ChildStacksTest, WhoHasStartedTheProcessMayBeAtTheOtherEnd) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const pid_t pid = fork();
  if (pid == 0) {
    close(ends[1]);
    char byte;
    if (read(ends[0], &byte, 1) != 0) _exit(1);
    _exit(0);
  }
  const ProcessId id = {pid, ReadProcStat("/proc", pid)->start_time};
  const auto service = ServiceFor(id);
  v1::ProcessStack stack;
  EXPECT_TRUE(Eventually([&] {
    stack = service->Take(id);
    return stack.threads_size() == 1 && stack.threads(0).has_other_end();
  }));
  ASSERT_EQ(stack.threads_size(), 1) << stack.error();
  ASSERT_EQ(stack.threads(0).other_end().pids_size(), 1);
  EXPECT_EQ(stack.threads(0).other_end().pids(0), getpid());
  kill(pid, SIGKILL);
  waitpid(pid, nullptr, 0);
  for (const int fd : ends) close(fd);
}

constexpr char kSixThreads[] =
    "import threading, time\n"
    "def wait(): time.sleep(1000)\n"
    "for i in range(6): threading.Thread(target=wait, daemon=True).start()\n"
    "wait()\n";

bool ShowsPython(const v1::ThreadStack& thread) {
  for (const v1::Frame& frame : thread.frames()) {
    if (frame.python() && frame.function() == "wait") return true;
  }
  return false;
}

TEST_F(ChildStacksTest, AreTheMainThreadAndThreeThatRunPython) {
  const Parent parent({[] { Become({"python3", "-c", kSixThreads}, "HOME=/"); }});
  const auto service = ServiceFor(parent.id());
  v1::ProcessStack stack;
  EXPECT_TRUE(Eventually([&] {  // until it has started them
    stack = service->Take(parent.id(), true);
    const bool is_there = Sampled(stack) == 1 && stack.children(0).threads_size() == 4;
    return is_there && ShowsPython(stack.children(0).threads(3));
  }));
  ASSERT_EQ(Sampled(stack), 1) << stack.DebugString();
  ASSERT_EQ(stack.children(0).threads_size(), 4);
  EXPECT_EQ(stack.children(0).threads(0).tid(), stack.children(0).pid());
  for (const v1::ThreadStack& thread : stack.children(0).threads()) {
    EXPECT_TRUE(ShowsPython(thread)) << thread.DebugString();
    EXPECT_LE(thread.frames_size(), 32);
    EXPECT_GT(thread.switches(), 0u);
  }
  const v1::ProcessStack next = service->Take(parent.id(), true);
  const v1::ProcessStack later = service->Take(parent.id(), true);
  ASSERT_EQ(later.children(0).threads_size(), 4);
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(later.children(0).threads(i).switches(), next.children(0).threads(i).switches());
  }
}

TEST(LocksOfChildrenTest, ShowTheHolderForWhomAChildWaits) {
  if (access("/proc/locks", R_OK) != 0) GTEST_SKIP() << "this kernel lists no locks";
  char path[] = "/tmp/rollcall-child-locks-XXXXXX";
  const int fd = mkstemp(path);
  ASSERT_EQ(flock(fd, LOCK_EX), 0);
  const Parent parent({[fd, &path] {
    close(fd);
    flock(open(path, O_RDWR), LOCK_EX);
  }});
  const std::unique_ptr<StackService> service = ServiceFor(parent.id());
  v1::ProcessStack stack;
  ASSERT_TRUE(
      Eventually([&] { return !(stack = service->Take(parent.id(), true)).locks().empty(); }));
  const v1::FileLock& lock = stack.locks(0);
  EXPECT_TRUE(lock.waits()) << stack.DebugString();
  EXPECT_EQ(lock.child(), stack.children(0).pid());
  EXPECT_EQ(lock.holder(), getpid());
  EXPECT_EQ(lock.path(), path);
  unlink(path);
  close(fd);
}

}  // namespace
}  // namespace rollcall
