// SPDX-License-Identifier: Apache-2.0
// Who is at the other end of the pipes and sockets that real threads wait for.
#include "agent/outside/other_ends.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "agent/outside/ancestors.h"
#include "agent/outside/tcp_table.h"
#include "agent/outside/waited_descriptors.h"
#include "agent/processes/payer.h"
#include "agent/processes/proc_files.h"
#include "agent/processes/proc_stat.h"
#include "eventually.h"

namespace rollcall {
namespace {

constexpr int64_t kNoDeadline = std::numeric_limits<int64_t>::max();

TEST(SystemCallTest, IsReadFromTheKernelsText) {
  const auto call = ParseSystemCall("7 0x7ffc10 0x1 0xdbba0 0x0 0x0 0x7f00 0x7ffc00 0x7f8b\n");
  ASSERT_TRUE(call.has_value());
  EXPECT_EQ(call->number, 7);
  EXPECT_EQ(call->arguments[0], 0x7ffc10u);
  EXPECT_EQ(call->arguments[1], 1u);
  for (const char* text : {"", "running\n", "-1 0x7ffc 0x7f8b\n", "7 0x1",
                           "x 0x1 0x1 0x1 0x1 0x1 0x1", "7 0x1 0x1 0x1 0x1 0x1 y"}) {
    EXPECT_FALSE(ParseSystemCall(text).has_value()) << text;
  }
}

constexpr char kTable[] =
    "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid timeout inode\n"
    "   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  0 0 100 1 0 1 0\n"
    "   1: 0100007F:9C40 0100007F:1F90 01 00000000:00000000 00:00000000 00000000  0 0 101 1 0 1 0\n"
    "   2: 0100007F:1F90 0100007F:9C40 01 00000000:00000000 00:00000000 00000000  0 0 102 1 0 1 0\n"
    "   3: 0100007F:9C41 0100007F:1F90 01 00000000:00000000 00:00000000 00000000  0 0 103 1 0 1 0\n"
    "   4: 0100007F:1F90 0100007F:9C41 01 00000000:00000000 00:00000000 00000000  0 0 0 1 0 1 0\n"
    "   5: 0A00000A:9C42 0B00000A:01BB 01 00000000:00000000 00:00000000 00000000  0 0 104 1 0 1 0\n"
    "   6: 0100007F:9C43 0100007F:2328 01 00000000:00000000 00:00000000 00000000  0 0 105 1 0 1 0\n"
    "   7: 00000000000000000000000000000000:2328 00000000000000000000000000000000:0000 0A "
    "00000000:00000000 00:00000000 00000000  0 0 106 1 0 1 0\n"
    "   8: 0000000000000000FFFF00000100007F:2328 0000000000000000FFFF00000100007F:9C43 01 "
    "00000000:00000000 00:00000000 00000000  0 0 107 1 0 1 0\n"
    "   9: garbage:zz 1 2 3 4 5 6 7 8 9\n"
    "  10: 0A00000A:9C44 0B00000A:2328 01 00000000:00000000 00:00000000 00000000  0 0 108 1 0 1 0\n"
    "  11: 0A00000A:9C45 0A00000A:2328 01 00000000:00000000 00:00000000 00000000  0 0 109 1 0 1 0\n";

TEST(TcpTableTest, TheOtherEndIsTheSocketWithTheAddressesExchanged) {
  const std::vector<TcpSocket> table = ParseTcpTable(kTable);
  EXPECT_EQ(table.size(), 11u);
  EXPECT_EQ(FindOtherSocket(table, 101), 102u);
  EXPECT_EQ(FindOtherSocket(table, 102), 101u);
  EXPECT_EQ(FindOtherSocket(table, 103), 100u);  // not accepted yet: who listens
  EXPECT_EQ(FindOtherSocket(table, 104), 0u);    // another host
  EXPECT_EQ(FindOtherSocket(table, 105), 107u);  // accepted by IPv6
  EXPECT_EQ(FindOtherSocket(table, 108), 0u);    // another host's server of the same port
  EXPECT_EQ(FindOtherSocket(table, 109), 106u);  // this host's, by its address
  EXPECT_EQ(FindOtherSocket(table, 100), 0u);
  EXPECT_EQ(FindOtherSocket(table, 0), 0u);
  EXPECT_EQ(FindOtherSocket(table, 999), 0u);
}

TEST(TcpTableTest, WhoConnectedIsTheSideThatLeadsToAListener) {
  const std::vector<TcpSocket> table = ParseTcpTable(kTable);
  const auto leads = [&](uint64_t inode) {
    return LeadsToAListener(table, *FindConnection(table, inode));
  };
  EXPECT_TRUE(leads(101));
  EXPECT_FALSE(leads(102));
  EXPECT_TRUE(leads(103));   // not accepted yet
  EXPECT_FALSE(leads(104));  // another host
  EXPECT_TRUE(leads(109));   // by the address of this host
}

TEST(TcpTableTest, ASocketListensToNoPeerUntilOneIsAccepted) {
  std::vector<TcpSocket> table = ParseTcpTable(kTable);
  EXPECT_FALSE(ListensToNobody(table, 100));
  EXPECT_FALSE(ListensToNobody(table, 102));  // a connection
  EXPECT_FALSE(ListensToNobody(table, 0));
  table.erase(table.begin() + 2);  // the accepted one; another one waits
  EXPECT_TRUE(ListensToNobody(table, 100));
}

// A child that does this, asleep.
class Sleeper {
 public:
  explicit Sleeper(const std::function<void()>& run) : pid_(fork()) {
    if (pid_ == 0) {
      run();
      _exit(1);
    }
    AwaitState('S');
  }
  void StopAndContinue() const {
    kill(pid_, SIGSTOP);
    AwaitState('T');
    kill(pid_, SIGCONT);
    AwaitState('S');
  }
  ~Sleeper() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  pid_t pid() const { return pid_; }

 private:
  void AwaitState(char state) const {
    EXPECT_TRUE(Eventually([&] { return ReadProcStat("/proc", pid_)->state == state; }));
  }

  const pid_t pid_;
};

// The ways to wait for a descriptor.
struct WayToWait {
  const char* name;
  void (*wait)(int fd);
};

const WayToWait kWays[] = {
    {"read",
     [](int fd) {
       char byte;
       static_cast<void>(!read(fd, &byte, 1));
     }},
    {"poll",
     [](int fd) {
       pollfd ready = {fd, POLLIN, 0};
       poll(&ready, 1, 900'000);
     }},
    {"select",
     [](int fd) {
       fd_set ready;
       FD_ZERO(&ready);
       FD_SET(fd, &ready);
       select(fd + 1, &ready, nullptr, nullptr, nullptr);
     }},
    {"epoll",
     [](int fd) {
       const int many = epoll_create1(0);
       epoll_event event = {};
       event.events = EPOLLIN;
       epoll_ctl(many, EPOLL_CTL_ADD, fd, &event);
       while (epoll_wait(many, &event, 1, -1) < 0) {  // a stop ends it
       }
     }},
};

// What the main thread of the process waits for, among this process only.
OtherEnd FindFor(pid_t pid, int64_t deadline_ns, ProcessMemory* memory) {
  return FindOtherEnds("/proc", {{pid, {pid}, memory}}, {{getpid()}}, deadline_ns)[0][0];
}

class OtherEndTest : public testing::TestWithParam<WayToWait> {
 protected:
  // What the agent finds for a child that waits for `fd`.
  OtherEnd Find(int fd) const {
    const Sleeper sleeper([fd] { GetParam().wait(fd); });
    // Asleep already before it waits there, perhaps.
    TracerMemory memory(sleeper.pid());
    if (FindIn(sleeper, &memory).pids.empty()) return {};
    sleeper.StopAndContinue();  // as a process that takes its stacks does
    return FindIn(sleeper, &memory);
  }

 private:
  static OtherEnd FindIn(const Sleeper& sleeper, ProcessMemory* memory) {
    OtherEnd end;
    Eventually([&] { return !(end = FindFor(sleeper.pid(), kNoDeadline, memory)).pids.empty(); });
    return end;
  }
};

TEST_P(OtherEndTest, OfAPipeIsFound) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const OtherEnd end = Find(ends[0]);
  EXPECT_EQ(end.kind, "pipe");
  EXPECT_EQ(end.pids, std::vector<pid_t>{getpid()});
  close(ends[0]);
  close(ends[1]);
}

TEST_P(OtherEndTest, OfAPipeWithANameIsFound) {
  const std::string path = absl::StrCat(testing::TempDir(), "/pipe-", getpid());
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  const int reads = open(path.c_str(), O_RDONLY | O_NONBLOCK),
            writes = open(path.c_str(), O_WRONLY);
  ASSERT_GE(writes, 0);
  fcntl(reads, F_SETFL, 0);  // the child blocks
  const OtherEnd end = Find(reads);
  EXPECT_EQ(end.kind, "pipe");
  EXPECT_EQ(end.pids, std::vector<pid_t>{getpid()});
  close(reads);
  close(writes);
  unlink(path.c_str());
}

TEST_P(OtherEndTest, IsTheProcessForWhoseEndItWaits) {
  if (std::string(GetParam().name) == "read") GTEST_SKIP() << "nobody reads a pidfd";
  const Sleeper other([] {
    while (true) pause();
  });
  const int fd = static_cast<int>(syscall(SYS_pidfd_open, other.pid(), 0));
  if (fd < 0) GTEST_SKIP() << "this kernel has no pidfd";
  const OtherEnd end = Find(fd);
  EXPECT_EQ(end.kind, "process");
  EXPECT_EQ(end.pids, std::vector<pid_t>{other.pid()});
  close(fd);
}

// Whether the server has accepted the connection or not.
void ConnectByTcp(bool accepts, int* listener, int* client, int* accepted) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  *listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  ASSERT_EQ(bind(*listener, reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(listen(*listener, 4), 0);
  ASSERT_EQ(getsockname(*listener, reinterpret_cast<sockaddr*>(&address), &size), 0);
  *client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  ASSERT_EQ(connect(*client, reinterpret_cast<sockaddr*>(&address), size), 0);
  *accepted = accepts ? accept4(*listener, nullptr, nullptr, SOCK_CLOEXEC) : -1;
}

void ConnectByUnix(bool accepts, int* listener, int* client, int* accepted) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  const std::string name = absl::StrCat("rollcall other ends ", getpid(), " ", accepts);
  name.copy(address.sun_path + 1, sizeof(address.sun_path) - 2);
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  *listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  ASSERT_EQ(bind(*listener, reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(listen(*listener, 4), 0);
  *client = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  ASSERT_EQ(connect(*client, reinterpret_cast<sockaddr*>(&address), size), 0);
  *accepted = accepts ? accept4(*listener, nullptr, nullptr, SOCK_CLOEXEC) : -1;
}

TEST_P(OtherEndTest, OfASocketIsFoundAcceptedOrNot) {
  for (const auto connect : {&ConnectByTcp, &ConnectByUnix}) {
    for (const bool accepts : {true, false}) {
      int listener = -1, client = -1, accepted = -1;
      connect(accepts, &listener, &client, &accepted);
      const OtherEnd end = Find(client);
      EXPECT_EQ(end.kind, "socket") << accepts << (connect == &ConnectByUnix);
      EXPECT_EQ(end.pids, std::vector<pid_t>{getpid()});
      for (const int fd : {listener, client, accepted}) close(fd);
    }
  }
}

TEST_P(OtherEndTest, WhoHasAcceptedTheConnectionIsCalled) {
  int listener = -1, client = -1, accepted = -1;
  ConnectByTcp(true, &listener, &client, &accepted);
  EXPECT_EQ(Find(client).called, std::vector<pid_t>{getpid()});
  EXPECT_TRUE(Find(accepted).called.empty());
  for (const int fd : {listener, client, accepted}) close(fd);
}

TEST_P(OtherEndTest, WhatAConnectionHasReceivedIsKnown) {
  int listener = -1, client = -1, accepted = -1;
  ConnectByTcp(true, &listener, &client, &accepted);
  std::vector<char> bytes(5000), received(5000);
  ASSERT_EQ(write(accepted, bytes.data(), bytes.size()), 5000);
  ASSERT_EQ(recv(client, received.data(), received.size(), MSG_WAITALL), 5000);
  const OtherEnd end = Find(client);
  ASSERT_EQ(end.received.size(), 1u);
  EXPECT_EQ(end.received[0].bytes, 5000u);
  for (const int fd : {listener, client, accepted}) close(fd);
}

INSTANTIATE_TEST_SUITE_P(All, OtherEndTest, testing::ValuesIn(kWays),
                         [](const auto& info) { return std::string(info.param.name); });

OtherEnd FindForReader(int fd, int64_t deadline_ns) {
  const Sleeper sleeper([fd] {
    char byte = 0;
    while (read(fd, &byte, 1) != 0) {
    }
  });
  TracerMemory memory(sleeper.pid());
  OtherEnd end;
  Eventually([&] {
    end = FindFor(sleeper.pid(), deadline_ns, &memory);
    return deadline_ns == 0 || !end.pids.empty();
  });
  return end;
}

// As of a child that was started with a pipe.
TEST(OtherEndAtDescriptor0Test, IsFoundUntilTheDeadline) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const int saved = dup(0);
  ASSERT_EQ(dup2(ends[1], 0), 0);
  close(ends[1]);
  EXPECT_EQ(FindForReader(ends[0], kNoDeadline).pids, std::vector<pid_t>{getpid()});
  EXPECT_EQ(FindForReader(ends[0], 0).kind, "");
  close(0);
  if (saved >= 0) {
    dup2(saved, 0);
    close(saved);
  }
  close(ends[0]);
}

// A pipe and a socket, of two threads of one process.
TEST(OtherEndsOfThreadsTest, AreThoseOfEachThread) {
  int pipes[2], listener = -1, client = -1, accepted = -1;
  ASSERT_EQ(pipe(pipes), 0);
  ConnectByUnix(true, &listener, &client, &accepted);
  const Sleeper sleeper([&] {
    std::thread([&] { kWays[1].wait(client); }).detach();
    kWays[1].wait(pipes[0]);
  });
  TracerMemory memory(sleeper.pid());
  std::vector<OtherEnd> ends;
  EXPECT_TRUE(Eventually([&] {
    const auto tids = ListNumbers(absl::StrCat("/proc/", sleeper.pid(), "/task"));
    if (!tids.ok() || tids->size() != 2) return false;
    ends = FindOtherEnds("/proc", {{sleeper.pid(), *tids, &memory}}, {{getpid()}}, kNoDeadline)[0];
    return !ends[0].pids.empty() && !ends[1].pids.empty();
  }));
  ASSERT_EQ(ends.size(), 2u);
  EXPECT_EQ(ends[0].kind, "pipe");
  EXPECT_EQ(ends[1].kind, "socket");
  for (const OtherEnd& end : ends) EXPECT_EQ(end.pids, std::vector<pid_t>{getpid()});
  for (const int fd : {pipes[0], pipes[1], listener, client, accepted}) close(fd);
}

void WaitForEver() {
  while (true) pause();
}

// Children that each hold one descriptor of these, of which this process then has none.
class Holders {
 public:
  explicit Holders(const std::vector<int>& fds) {
    for (const int fd : fds) {
      children_.push_back(std::make_unique<Sleeper>([&fds, fd] {
        for (const int other : fds) {
          if (other != fd) close(other);
        }
        WaitForEver();
      }));
    }
    for (const int fd : fds) close(fd);
  }
  std::vector<pid_t> pids() const {
    std::vector<pid_t> pids;
    for (const auto& child : children_) pids.push_back(child->pid());
    std::sort(pids.begin(), pids.end());
    return pids;
  }

 private:
  std::vector<std::unique_ptr<Sleeper>> children_;
};

// What the process waits for, once all that it waits for is there.
OtherEnd FindAll(pid_t pid, const Among& among, size_t ends) {
  TracerMemory memory(pid);
  OtherEnd end;
  Eventually([&] {
    end = FindOtherEnds("/proc", {{pid, {pid}, &memory}}, among, kNoDeadline)[0][0];
    return end.pids.size() == ends;
  });
  return end;
}

struct ManyCase {
  const char* name;
  void (*wait)(int first, int second, int watched);
};

int Watch(const std::vector<int>& fds) {
  const int epoll = epoll_create1(EPOLL_CLOEXEC);
  for (const int fd : fds) {
    epoll_event event = {};
    event.events = EPOLLIN;
    epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
  }
  return epoll;
}

const ManyCase kManyCases[] = {
    {"select",
     [](int first, int second, int watched) {
       const int epoll = Watch({watched});
       fd_set ready;
       FD_ZERO(&ready);
       for (const int fd : {first, second, epoll}) FD_SET(fd, &ready);
       select(std::max({first, second, epoll}) + 1, &ready, nullptr, nullptr, nullptr);
     }},
    {"poll",
     [](int first, int second, int watched) {
       pollfd ready[] = {{first, POLLIN, 0}, {second, POLLIN, 0}, {Watch({watched}), POLLIN, 0}};
       poll(ready, 3, -1);
     }},
    {"epoll",
     [](int first, int second, int watched) {
       epoll_event event = {};
       while (epoll_wait(Watch({first, second, Watch({watched})}), &event, 1, -1) < 0) {
       }
     }},
};

class ManyOtherEndsTest : public testing::TestWithParam<ManyCase> {};

// Two sockets, and a pipe in an epoll descriptor.
TEST_P(ManyOtherEndsTest, AreAllFoundWithTheirNames) {
  int first[2], second[2], watched[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, first), 0);
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, second), 0);
  ASSERT_EQ(pipe(watched), 0);
  const Holders holders({first[1], second[1], watched[1]});
  const Sleeper waiter([&] { GetParam().wait(first[0], second[0], watched[0]); });
  std::vector<pid_t> among = holders.pids();
  among.push_back(getpid());
  const OtherEnd end = FindAll(waiter.pid(), {among}, 3);
  EXPECT_EQ(end.pids, holders.pids());
  ASSERT_EQ(end.names.size(), 3u);
  for (const std::string& name : end.names) EXPECT_EQ(name, ReadProcStat("/proc", getpid())->name);
  for (const int fd : {first[0], second[0], watched[0]}) close(fd);
}

INSTANTIATE_TEST_SUITE_P(All, ManyOtherEndsTest, testing::ValuesIn(kManyCases),
                         [](const auto& info) { return std::string(info.param.name); });

// As the workers of a pool, which read their tasks from one pipe.
TEST(OtherEndOfAPipeTest, SkipsOtherReadersOfThePipe) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const auto read_it = [&ends] {
    close(ends[1]);
    kWays[0].wait(ends[0]);
  };
  const Sleeper one(read_it), other(read_it);
  EXPECT_EQ(FindAll(one.pid(), {{other.pid(), getpid()}}, 1).pids, std::vector<pid_t>{getpid()});
  for (const int fd : ends) close(fd);
}

TEST(FurtherProcessesTest, AreAskedForOnlyIfAnEndIsAtNoneOfTheFirst) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const Holders holders({ends[1]});
  const Sleeper waiter([&] { kWays[0].wait(ends[0]); });
  int asked = 0;
  const auto list = [&] {
    ++asked;
    return holders.pids();
  };
  EXPECT_EQ(FindAll(waiter.pid(), {{getpid()}, list}, 1).pids, holders.pids());
  EXPECT_GT(asked, 0);
  asked = 0;
  EXPECT_EQ(FindAll(waiter.pid(), {holders.pids(), list}, 1).pids, holders.pids());
  EXPECT_EQ(asked, 0);
  close(ends[0]);
}

// As when a child has ended, and another process has its number.
TEST(ReusedPidTest, IsNeitherAtAnEndNorWaits) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const Holders holder({ends[1]});
  const Sleeper waiter([&] { kWays[0].wait(ends[0]); });
  const pid_t pid = holder.pids().front();
  const uint64_t start = ReadProcStat("/proc", pid)->start_time;
  const uint64_t own_start = ReadProcStat("/proc", waiter.pid())->start_time;
  const Starts known = {{pid, start}, {waiter.pid(), own_start}};
  EXPECT_EQ(FindAll(waiter.pid(), {{pid}, nullptr, known}, 1).pids, holder.pids());
  TracerMemory memory(waiter.pid());
  for (const Starts& earlier : {Starts{{pid, start - 1}}, Starts{{waiter.pid(), own_start - 1}}}) {
    const Among among = {{pid}, nullptr, earlier};
    const OtherEnd end =
        FindOtherEnds("/proc", {{waiter.pid(), {waiter.pid()}, &memory}}, among, kNoDeadline)[0][0];
    EXPECT_TRUE(end.pids.empty());
    EXPECT_TRUE(end.names.empty());
  }
  close(ends[0]);
}

// A handle of any process can be had by its number.
TEST(HandleOfAnotherUsersProcessTest, DoesNotTellItsName) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can become others";
  const Sleeper secret(WaitForEver);
  const int fd = static_cast<int>(syscall(SYS_pidfd_open, secret.pid(), 0));
  if (fd < 0) GTEST_SKIP() << "this kernel has no pidfd";
  const Sleeper curious([fd] {
    if (setuid(12345) != 0) _exit(1);
    kWays[1].wait(fd);
  });
  ASSERT_TRUE(Eventually([&] { return !HaveSameUser("/proc", getpid(), curious.pid()); }));
  TracerMemory memory(curious.pid());
  const auto find = [&](const Among& among) {
    return FindOtherEnds("/proc", {{curious.pid(), {curious.pid()}, &memory}}, among,
                         kNoDeadline)[0][0];
  };
  // It waits there once it is seen to wait for what is its own child.
  EXPECT_TRUE(Eventually([&] { return !find({{secret.pid()}}).pids.empty(); }));
  EXPECT_EQ(find({{secret.pid()}}).pids, std::vector<pid_t>{secret.pid()});
  EXPECT_TRUE(find({{getpid()}}).pids.empty());
  EXPECT_TRUE(find({{getpid()}}).names.empty());
  close(fd);
}

TEST(AncestorsTest, AreThoseAboveOfTheSameUser) {
  const Sleeper child(WaitForEver);
  const std::vector<pid_t> ancestors = FindAncestors("/proc", child.pid());
  ASSERT_GE(ancestors.size(), 1u);
  EXPECT_LE(ancestors.size(), kMostAncestors);
  EXPECT_EQ(ancestors[0], getpid());
  if (ancestors.size() > 1) {
    EXPECT_EQ(ancestors[1], getppid());
  }
}

TEST(AncestorsTest, AProcessOfAnotherUserHasNone) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can become others";
  const Sleeper child([] {
    if (setuid(12345) != 0) _exit(1);
    WaitForEver();
  });
  ASSERT_TRUE(Eventually([&] { return !HaveSameUser("/proc", getpid(), child.pid()); }));
  EXPECT_TRUE(FindAncestors("/proc", child.pid()).empty());
  EXPECT_TRUE(FindAncestors("/proc", INT32_MAX).empty());
}

TEST(NoOtherEndTest, OfAThreadThatWaitsForNoDescriptor) {
  const Sleeper sleeper([] {
    while (true) pause();
  });
  TracerMemory memory(sleeper.pid());
  EXPECT_EQ(FindFor(sleeper.pid(), kNoDeadline, &memory).kind, "");
}

}  // namespace
}  // namespace rollcall
