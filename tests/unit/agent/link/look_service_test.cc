// SPDX-License-Identifier: Apache-2.0
// What the agent does when a daemon asks it to look at ranks for a diagnosis.
#include "agent/link/look_service.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/processes/proc_stat.h"
#include "temporary_tree.h"

namespace rollcall {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

// A child that writes into a file, until the end of the test.
class Writer {
 public:
  Writer(const std::string& log, const char* variable) {
    int executes[2];
    EXPECT_EQ(pipe2(executes, O_CLOEXEC), 0);
    pid_ = fork();
    if (pid_ == 0) {
      dup2(open(log.c_str(), O_WRONLY | O_APPEND), STDOUT_FILENO);
      const char* const environment[] = {variable, nullptr};
      execle("/bin/sleep", "sleep", "600", nullptr, environment);
      _exit(1);
    }
    close(executes[1]);
    char byte = 0;
    EXPECT_EQ(read(executes[0], &byte, 1), 0);
    close(executes[0]);
  }
  ~Writer() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;
  ProcessId id() const { return {pid_, ReadProcStat("/proc", pid_)->start_time}; }

 private:
  pid_t pid_ = 0;
};

class LookServiceTest : public testing::Test {
 protected:
  void SetUp() override {
    options_.least_read_ns = 60'000'000'000;
    tree_.Write("rank.log", "step 7\n");
    tree_.Write("foreign.log", "of another job\n");
  }

  v1::LookAtRanksReply Look(const std::vector<ProcessId>& processes, ProcessId listed,
                            bool ask_ras = false) {
    LookService service(options_, [listed](ProcessId process) { return process == listed; });
    v1::LookAtRanks asked;
    asked.set_request(9);
    asked.set_ask_ras(ask_ras);
    return service.Look(asked, processes);
  }

  const TemporaryTree tree_;
  LookServiceOptions options_;
};

TEST_F(LookServiceTest, ReadsLogsOnlyOfProcessesThatItHasListed) {
  const Writer rank(tree_.root() + "/rank.log", "A=b");
  const Writer foreign(tree_.root() + "/foreign.log", "A=b");
  const v1::LookAtRanksReply reply = Look({foreign.id(), rank.id()}, rank.id());
  EXPECT_EQ(reply.request(), 9u);
  ASSERT_THAT(reply.logs(), SizeIs(1));
  EXPECT_EQ(reply.logs(0).path(), tree_.root() + "/rank.log");
  EXPECT_EQ(reply.logs(0).lines(0), "step 7");
  EXPECT_THAT(reply.of_nccl(), IsEmpty());
}

TEST_F(LookServiceTest, LooksAtNothingWhereStacksAreOff) {
  const Writer rank(tree_.root() + "/rank.log", "ROLLCALL_STACKS=off");
  EXPECT_THAT(Look({rank.id()}, rank.id()).logs(), IsEmpty());
  EXPECT_EQ(Look({rank.id()}, rank.id(), true).ras().error(), "no process of the job uses NCCL");
  const Writer other(tree_.root() + "/rank.log", "A=b");
  options_.logs_on = false;
  EXPECT_THAT(Look({other.id()}, other.id()).logs(), IsEmpty());
  options_.is_on = false;
  EXPECT_THAT(Look({other.id()}, other.id()).logs(), IsEmpty());
  EXPECT_THAT(Look({other.id()}, other.id(), true).ras().error(), HasSubstr("--stacks=off"));
}

TEST_F(LookServiceTest, AsksTheRasOfNoProcessThatItHasNotListed) {
  const Writer rank(tree_.root() + "/rank.log", "A=b");
  EXPECT_THAT(Look({rank.id()}, {1, 1}, true).ras().error(), HasSubstr("has listed none"));
}

TEST_F(LookServiceTest, AnswersSoManyRequestsAMinute) {
  const Writer rank(tree_.root() + "/rank.log", "A=b");
  options_.allowance = std::make_shared<StackAllowance>(1);
  EXPECT_THAT(Look({rank.id()}, rank.id()).logs(), SizeIs(1));
  EXPECT_THAT(Look({rank.id()}, rank.id(), true).ras().error(), HasSubstr("requests a minute"));
}

}  // namespace
}  // namespace rollcall
