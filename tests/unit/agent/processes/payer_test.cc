// SPDX-License-Identifier: Apache-2.0
// Who pays for processes in user namespaces, with real ones.
#include "agent/processes/payer.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <string>

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
    EXPECT_EQ(payer.root_namespace, 0u);
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
  EXPECT_NE(payer.root_namespace, 0u);
  EXPECT_NE(payer.root_namespace, another.root_namespace);
  EXPECT_NE(PayerOfReads("/proc", one.pid()), PayerOfReads("/proc", other.pid()));
  EXPECT_GT(PayerOfReads("/proc", one.pid()), int64_t{UINT32_MAX});
}

TEST_F(PayerTest, WithoutANamespaceEachUserPays) {
  const Inhabitant user(Nothing, "", [] { return setuid(kUser) == 0; });
  ASSERT_TRUE(user.is_there());
  EXPECT_EQ(ReadPayer("/proc", user.pid()).user, kUser);
  EXPECT_FALSE(MakerOfUserNamespace("/proc", user.pid()).has_value());
  EXPECT_NE(ReadPayer("/proc", getpid()).root_namespace, 0u) << "containers run as root";
  EXPECT_EQ(PayerOfReads("/proc", 0x7fffffff), -1);
}

}  // namespace
}  // namespace rollcall
