// SPDX-License-Identifier: Apache-2.0
// Names by files that do not answer, or cost too much, and who pays for it.
#include "agent/stacks/stack_namer.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sched.h>
#include <sys/fanotify.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "agent/processes/proc_stat.h"
#include "agent/stacks/any_stack_taker.h"
#include "base/unique_fd.h"
#include "eventually.h"
#include "patient_limits.h"

namespace rollcall {
namespace {

using testing::HasSubstr;

constexpr int64_t kMs = 1'000'000;

// A copy of sleep(1) that runs, in a file system of its own.
class ProgramOnAServer {
 public:
  ProgramOnAServer() {
    char folder[] = "/tmp/rollcall-server-XXXXXX";
    folder_ = mkdtemp(folder);
    // Of this thread, and of what it starts.
    has_mount_ = unshare(CLONE_NEWNS) == 0 &&
                 mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
                 mount("server", folder_.c_str(), "tmpfs", 0, nullptr) == 0;
    if (!has_mount_) return;
    path_ = folder_ + "/program";
    EXPECT_EQ(std::system(("cp /bin/sleep " + path_).c_str()), 0);
    Start();
  }
  ~ProgramOnAServer() {
    is_ending_ = true;
    if (counter_.joinable()) counter_.join();
    gate_ = UniqueFd();  // answers all
    End();
    if (has_mount_) umount2(folder_.c_str(), MNT_DETACH);
    rmdir(folder_.c_str());
  }
  ProgramOnAServer(const ProgramOnAServer&) = delete;
  ProgramOnAServer& operator=(const ProgramOnAServer&) = delete;

  // From now on, a process that opens the program waits, as for a file server that is gone.
  bool StopAnswering() {
    gate_ = UniqueFd(fanotify_init(FAN_CLASS_CONTENT | FAN_CLOEXEC | FAN_NONBLOCK, O_RDONLY));
    const bool is_shut = gate_.valid() && fanotify_mark(gate_.get(), FAN_MARK_ADD, FAN_OPEN_PERM,
                                                        AT_FDCWD, path_.c_str()) == 0;
    if (is_shut) counter_ = std::thread([this] { CountOpens(); });
    return is_shut;
  }
  // How often a process has begun to open the program since then.
  int opens() const { return opens_; }

  // Runs another program of this file system, with these arguments.
  void Replace(const std::string& path, std::vector<std::string> arguments = {"1000"}) {
    End();
    path_ = path;
    arguments_ = std::move(arguments);
    Start();
  }

  bool is_there() const { return has_mount_; }
  pid_t pid() const { return pid_; }
  const std::string& path() const { return path_; }

 private:
  void Start() {
    pid_ = fork();
    if (pid_ == 0) {
      std::vector<char*> argv = {path_.data()};
      for (std::string& argument : arguments_) argv.push_back(argument.data());
      argv.push_back(nullptr);
      setenv("PYTHONHOME", "/usr", 1);
      execv(path_.c_str(), argv.data());
      _exit(99);
    }
    while (ReadProcStat("/proc", pid_)->state != 'S' ||
           ReadProcStat("/proc", pid_)->name != path_.substr(path_.rfind('/') + 1)) {
      usleep(1000);
    }
  }
  void CountOpens() {
    fanotify_event_metadata event = {};
    while (!is_ending_) {
      pollfd asked = {gate_.get(), POLLIN, 0};
      poll(&asked, 1, 10);
      while (read(gate_.get(), &event, sizeof(event)) > 0) {
        ++opens_;
        close(event.fd);
      }
    }
  }
  void End() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }

  std::string folder_, path_;
  std::vector<std::string> arguments_ = {"1000"};
  bool has_mount_ = false;
  pid_t pid_ = -1;
  UniqueFd gate_;
  std::atomic<int> opens_{0};
  std::atomic<bool> is_ending_{false};
  std::thread counter_;
};

class StackNamerTest : public testing::Test {
 protected:
  ProcessStack Take(pid_t pid) {
    AnyStackTaker taker("/proc", std::make_shared<SymbolsOfNamer>(namer_));
    return namer_->Name(taker.Take(pid, PatientLimits()), PatientLimits());
  }
  void ExpectNamesForAnotherUser() {
    const pid_t other = fork();
    if (other == 0) {
      if (setuid(12'345) != 0) _exit(99);
      while (true) pause();
    }
    while (ReadPayer("/proc", other).user != 12'345) usleep(1000);
    EXPECT_EQ(Take(other).error, "");
    kill(other, SIGKILL);
    waitpid(other, nullptr, 0);
  }
  static bool HasName(const ProcessStack& stack, const std::string& function) {
    for (const ThreadStack& thread : stack.threads) {
      for (const Frame& frame : thread.frames) {
        if (frame.function.find(function) != std::string::npos) return true;
      }
    }
    return false;
  }

  std::shared_ptr<StackNamer> namer_ = std::make_shared<StackNamer>("/proc", ROLLCALL_PROGRAMS);
};

TEST_F(StackNamerTest, NamesTheFunctionsOfAProgramThatAnswers) {
  const ProgramOnAServer program;
  if (!program.is_there()) GTEST_SKIP() << "mounting needs root";
  const ProcessStack stack = Take(program.pid());
  EXPECT_EQ(stack.error, "");
  EXPECT_TRUE(HasName(stack, "nanosleep")) << FormatProcessStack(stack);
}

TEST_F(StackNamerTest, AProgramWhoseFileServerIsGoneCostsLittleAndOnlyItsOwnNames) {
  ProgramOnAServer program;
  if (!program.is_there() || !program.StopAnswering()) GTEST_SKIP() << "this needs root";
  const ProcessStack stack = Take(program.pid());
  EXPECT_EQ(program.opens(), 1) << "one wait, of 1.2 s";
  EXPECT_THAT(stack.error, HasSubstr(absl::StrCat("the file server of ", program.path(),
                                                  " does not answer: no names from there")));
  ASSERT_EQ(stack.threads.size(), 1u);
  EXPECT_NE(stack.threads[0].wchan, "");
  EXPECT_TRUE(HasName(stack, "nanosleep")) << "libc answers\n" << FormatProcessStack(stack);
  // The next one, and other programs, pay nothing for it.
  Take(program.pid());
  EXPECT_EQ(program.opens(), 1);
  ExpectNamesForAnotherUser();
}

TEST_F(StackNamerTest, PythonFramesNeedNoFileOfAnInterpreterWhoseFileServerIsGone) {
  ProgramOnAServer program;
  if (!program.is_there()) GTEST_SKIP() << "this needs root";
  const std::string python = program.path() + "-python";
  if (std::system(("cp $(readlink -f /usr/bin/python3) " + python).c_str()) != 0) {
    GTEST_SKIP() << "no Python of the system";
  }
  program.Replace(python, {"-c", "import time\ndef stands():\n  time.sleep(1000)\nstands()"});
  ASSERT_TRUE(program.StopAnswering());
  ProcessStack stack;
  EXPECT_TRUE(Eventually([&] {  // until it has got there
    stack = Take(program.pid());
    return HasName(stack, "stands");
  })) << FormatProcessStack(stack);
  EXPECT_THAT(stack.error, HasSubstr("does not answer"));
}

// Memory of this process at its peak, in KiB.
int64_t PeakKb() {
  rusage use = {};
  getrusage(RUSAGE_SELF, &use);
  return use.ru_maxrss;
}

TEST_F(StackNamerTest, SymbolsThatDecompressWithoutEndCostTheAgentNothing) {
  ProgramOnAServer program;
  if (!program.is_there()) GTEST_SKIP() << "this needs root";
  // So that no test waits for what a busy machine makes slow.
  StackWorkLimits limits;
  limits.cpu_ns = 2000 * kMs;
  namer_ = std::make_shared<StackNamer>("/proc", ROLLCALL_PROGRAMS, limits);
  // MiniDebugInfo (.gnu_debugdata) that becomes 600 MiB.
  const std::string bomb = program.path() + "-bomb";
  ASSERT_EQ(std::system(absl::StrCat("head -c 600M /dev/zero | xz -0 > ", bomb,
                                     ".xz && objcopy --add-section .gnu_debugdata=", bomb, ".xz ",
                                     program.path(), " ", bomb)
                            .c_str()),
            0);
  program.Replace(bomb);
  Take(program.pid());  // of another file: the child is there
  const int64_t before_kb = PeakKb();
  const ProcessStack stack = Take(program.pid());
  EXPECT_LT(PeakKb() - before_kb, 64 << 10);
  ASSERT_EQ(stack.threads.size(), 1u);
  EXPECT_FALSE(stack.threads[0].frames.empty()) << FormatProcessStack(stack);
  ExpectNamesForAnotherUser();
}

TEST_F(StackNamerTest, WithoutTheProbeThereAreAddresses) {
  namer_ = std::make_shared<StackNamer>("/proc", "/nowhere");
  const pid_t other = fork();
  if (other == 0) {
    while (true) pause();
  }
  const ProcessStack stack = Take(other);
  kill(other, SIGKILL);
  waitpid(other, nullptr, 0);
  EXPECT_THAT(stack.error, HasSubstr("no names: cannot find /nowhere/rollcall-probe"));
  ASSERT_FALSE(stack.threads.empty());
  ASSERT_FALSE(stack.threads[0].frames.empty());
  EXPECT_THAT(stack.threads[0].frames[0].module, HasSubstr("libc"));
  EXPECT_EQ(stack.threads[0].frames[0].function, "");
}

TEST(WastedTimeTest, AUserHasABudgetThatFillsAgain) {
  constexpr int64_t kSecond = 1000 * kMs;
  WastedTime wasted;
  const Payer user = {1000, 0};
  wasted.Add(user, 9 * kSecond, 0);
  EXPECT_FALSE(wasted.IsOver(user, 0));
  wasted.Add(user, 3 * kSecond, kSecond);
  EXPECT_TRUE(wasted.IsOver(user, kSecond));
  EXPECT_FALSE(wasted.IsOver({1001, 0}, kSecond)) << "another user";
  EXPECT_FALSE(wasted.IsOver(user, 20 * kSecond));
}

}  // namespace
}  // namespace rollcall
