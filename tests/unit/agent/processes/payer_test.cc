// SPDX-License-Identifier: Apache-2.0
// Who pays for processes in user namespaces, with real ones.
#include "agent/processes/payer.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "agent/processes/container_id.h"
#include "agent/processes/spare_threads.h"
#include "agent/processes/subordinate_ids.h"
#include "base/unique_fd.h"
#include "temporary_tree.h"

namespace rollcall {
namespace {

constexpr uid_t kUser = 12345;

// A process that does `begin`, gets these numbers in its user namespace, does `then`, and waits.
class Inhabitant {
 public:
  Inhabitant(const std::function<bool()>& begin, const std::string& map,
             const std::function<bool()>& then) {
    int said[2], told[2];
    if (pipe(said) != 0 || pipe(told) != 0) return;
    pid_ = fork();
    if (pid_ == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      Say(said[1], begin());
      Hear(told[0]);
      Say(said[1], then());
      while (true) pause();
    }
    is_there_ = Hear(said[0]);
    if (is_there_ && !map.empty()) {
      for (const char* file : {"uid_map", "gid_map"}) Write(file, map);
    }
    Say(told[1], true);
    is_there_ = is_there_ && Hear(said[0]);
    for (const int fd : {said[0], said[1], told[0], told[1]}) close(fd);
  }
  ~Inhabitant() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }

  bool is_there() const { return is_there_; }
  pid_t pid() const { return pid_; }

 private:
  static void Say(int fd, bool yes) {
    const char word = yes ? 'y' : 'n';
    if (write(fd, &word, 1) != 1) _exit(1);
  }
  static bool Hear(int fd) {
    char word = 'n';
    return read(fd, &word, 1) == 1 && word == 'y';
  }
  void Write(const char* file, const std::string& text) const {
    const int fd = open(("/proc/" + std::to_string(pid_) + "/" + file).c_str(), O_WRONLY);
    EXPECT_EQ(write(fd, text.data(), text.size()), static_cast<ssize_t>(text.size())) << file;
    close(fd);
  }

  pid_t pid_ = -1;
  bool is_there_ = false;
};

bool Nothing() { return true; }
bool BecomeUserAndUnshare() {
  return setgid(kUser) == 0 && setuid(kUser) == 0 && unshare(CLONE_NEWUSER) == 0;
}

class PayerTest : public testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "only root can become others";
    if (!Inhabitant([] { return unshare(CLONE_NEWUSER) == 0; }, "", Nothing).is_there()) {
      GTEST_SKIP() << "no user namespaces are permitted here";
    }
  }
};

TEST_F(PayerTest, AUserPaysForTheUsersOfHisContainers) {
  const std::string map = "0 12345 1\n1 100000 65536\n";
  for (const uid_t inside : {0, 1, 4711}) {
    const Inhabitant container(BecomeUserAndUnshare, map,
                               [inside] { return setresuid(inside, inside, inside) == 0; });
    ASSERT_TRUE(container.is_there());
    const Payer payer = ReadPayer("/proc", container.pid());
    EXPECT_EQ(payer.user, kUser) << inside;
    EXPECT_EQ(payer.container, 0u);
    EXPECT_EQ(PayerOfReads("/proc", container.pid()), kUser);
  }
}

TEST_F(PayerTest, ANamespaceInsideAnotherIsItsMakersToo) {
  const Inhabitant nested(BecomeUserAndUnshare, "0 12345 1\n1 100000 65536\n",
                          [] { return setresuid(7, 7, 7) == 0 && unshare(CLONE_NEWUSER) == 0; });
  ASSERT_TRUE(nested.is_there());
  EXPECT_EQ(ReadPayer("/proc", nested.pid()).user, kUser);
  EXPECT_EQ(PayerOfReads("/proc", nested.pid()), kUser);
}

// As the pods of Kubernetes are that have a user namespace: root has made it for them.
TEST_F(PayerTest, ANamespaceOfRootsPaysForItself) {
  const auto unshares = [] { return unshare(CLONE_NEWUSER) == 0; };
  const std::string map = "0 200000 65536\n";
  const Inhabitant one(unshares, map, [] { return setresuid(5, 5, 5) == 0; });
  const Inhabitant other(unshares, map, [] { return setresuid(5, 5, 5) == 0; });
  ASSERT_TRUE(one.is_there() && other.is_there());
  const Payer payer = ReadPayer("/proc", one.pid()), another = ReadPayer("/proc", other.pid());
  EXPECT_EQ(payer.user, 0u);
  EXPECT_NE(payer.container, 0u);
  EXPECT_NE(payer.container, another.container);
  EXPECT_NE(PayerOfReads("/proc", one.pid()), PayerOfReads("/proc", other.pid()));
  EXPECT_GT(PayerOfReads("/proc", one.pid()), int64_t{UINT32_MAX});
}

TEST_F(PayerTest, WithoutANamespaceEachUserPays) {
  const Inhabitant user(Nothing, "", [] { return setuid(kUser) == 0; });
  ASSERT_TRUE(user.is_there());
  EXPECT_EQ(ReadPayer("/proc", user.pid()).user, kUser);
  EXPECT_FALSE(MakerOfUserNamespace("/proc", user.pid()).has_value());
  EXPECT_EQ(PayerOfReads("/proc", 0x7fffffff), -1);
}

TEST_F(PayerTest, TheSameNumbersInAnotherUserNamespaceAreAnotherUsers) {
  const std::string map = "0 12345 1\n";
  const auto user = [] { return setgid(kUser) == 0 && setuid(kUser) == 0; };
  const Inhabitant outside(user, "", Nothing), beside(user, "", Nothing);
  const Inhabitant inside(BecomeUserAndUnshare, map, Nothing);
  ASSERT_TRUE(outside.is_there() && beside.is_there() && inside.is_there());
  EXPECT_TRUE(HaveSameUser("/proc", outside.pid(), beside.pid()));
  EXPECT_FALSE(HaveSameUser("/proc", outside.pid(), inside.pid()));
}

// Processes of a made-up /proc.
class PayerOfReadsTest : public testing::Test {
 protected:
  // In another user namespace, with these ids; a caller that asks which one it is waits.
  void AddStuck(pid_t pid, const std::string& map) {
    proc_.Write(absl::StrCat(pid, "/uid_map"), map);
    proc_.Write(absl::StrCat(pid, "/ns/pid"), "");
    links_.push_back(absl::StrCat(proc_.root(), "/", pid, "/ns/user"));
    ASSERT_EQ(mkfifo(links_.back().c_str(), 0600), 0);
  }
  void AddRoot(pid_t pid, const std::string& groups) {
    proc_.Write(absl::StrCat(pid, "/cgroup"), groups);
    proc_.Write(absl::StrCat(pid, "/status"), "Uid:\t0\t0\t0\t0\n");
  }
  int64_t Payer(pid_t pid) const { return PayerOfReads(proc_.root(), pid); }
  void TearDown() override {
    for (const std::string& link : links_) UniqueFd(open(link.c_str(), O_RDWR | O_NONBLOCK));
  }

  TemporaryTree proc_;
  std::vector<std::string> links_;
};

std::string Container(char digit) { return std::string(64, digit); }

TEST_F(PayerOfReadsTest, FindsThePayerAlsoWhenFourUsersBlockAllThreads) {
  constexpr int kAll = SpareThreads::kMostThreads;
  for (pid_t pid = 1; pid <= kAll; ++pid) {
    AddStuck(pid, absl::StrCat("0 ", 4700 + pid % 4, " 1\n"));  // four users
    EXPECT_EQ(Payer(pid), 4700 + pid % 4);
  }
  AddStuck(kAll + 1, "         0       5000          1\n");
  EXPECT_EQ(Payer(kAll + 1), 5000);
}

TEST_F(PayerOfReadsTest, RootOfEachContainerPaysForItself) {
  if (geteuid() != 0) GTEST_SKIP() << "only root has processes of root";
  AddRoot(1, absl::StrCat("0::/system.slice/docker-", Container('a'), ".scope\n"));
  AddRoot(2, absl::StrCat("0::/system.slice/docker-", Container('b'), ".scope\n"));
  AddRoot(3, absl::StrCat("0::/system.slice/docker-", Container('a'), ".scope/more/docker-",
                          Container('c'), ".scope\n"));
  AddRoot(4, "0::/system.slice/sshd.service\n");
  EXPECT_NE(Payer(1), Payer(2));
  EXPECT_EQ(Payer(1), Payer(3)) << "whoever has a container can make groups in it";
  EXPECT_EQ(Payer(4), 0);
  EXPECT_GT(Payer(1), int64_t{UINT32_MAX});
  EXPECT_NE(ReadPayer(proc_.root(), 1).container, ReadPayer(proc_.root(), 2).container);
  EXPECT_EQ(ReadPayer(proc_.root(), 1).container, ReadPayer(proc_.root(), 3).container);
}

TEST(ContainerOfTheHostTest, IgnoresOneThatAServiceOrASessionHasWritten) {
  const std::string id = Container('a');
  for (const char* given : {"user.slice/user-0.slice/user@0.service", "system.slice/mine.service",
                            "machine.slice/machine-x.scope", "lxc/x", "lxc.payload.x"}) {
    EXPECT_EQ(ContainerOfTheHost(absl::StrCat("0::/", given, "/docker-", id, ".scope")), "");
  }
  EXPECT_EQ(ContainerOfTheHost(absl::StrCat("1:cpu:/\n0::/kubepods/pod7/", id)), "aaaaaaaaaaaa");
}

TEST(SubordinateIdsTest, AUsersAreOneAndABlockOfManyIsOne) {
  constexpr char kFile[] = "alice:100000:65536\nkubelet:200000:6553600\nbroken:x\n";
  EXPECT_EQ(FirstOfItsBlock(kFile, 1000), 1000u);
  EXPECT_EQ(FirstOfItsBlock(kFile, 100000), 100000u);
  EXPECT_EQ(FirstOfItsBlock(kFile, 165535), 100000u);
  EXPECT_EQ(FirstOfItsBlock(kFile, 165536), 165536u);
  EXPECT_EQ(FirstOfItsBlock(kFile, 265536), 265536u);
  EXPECT_EQ(FirstOfItsBlock(kFile, 270000), 265536u);
}

}  // namespace
}  // namespace rollcall
