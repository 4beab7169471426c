// SPDX-License-Identifier: Apache-2.0
#include "agent/logs/logs.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/processes/proc_stat.h"
#include "base/durations.h"
#include "temporary_tree.h"

namespace rollcall {
namespace {

using testing::ElementsAre;
using testing::SizeIs;

// A process that writes its stdout and stderr into these files.
class Writer {
 public:
  Writer(const std::string& out, const std::string& err) {
    int ready[2];
    EXPECT_EQ(pipe(ready), 0);
    pid_ = fork();
    char byte = 'x';
    if (pid_ != 0) {
      EXPECT_EQ(read(ready[0], &byte, 1), 1);
      close(ready[0]);
      close(ready[1]);
      return;
    }
    dup2(open(out.c_str(), O_WRONLY | O_APPEND), STDOUT_FILENO);
    dup2(open(err.c_str(), O_WRONLY | O_APPEND), STDERR_FILENO);
    static_cast<void>(!write(ready[1], &byte, 1));
    pause();
    _exit(0);
  }
  ~Writer() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  LogWriter in() const { return {{pid_, ReadProcStat("/proc", pid_)->start_time}}; }

 private:
  pid_t pid_ = 0;
};

TEST(ReadLogsTest, EachFileIsReadOnceAndSecretsAreHidden) {
  const TemporaryTree tree;
  const std::string shared = tree.root() + "/all.log", own = tree.root() + "/own.err";
  tree.Write("all.log", "step 7\n");
  tree.Write("own.err", "export API_TOKEN=abcdefgh12345678\n");
  const Writer first(shared, shared), second(shared, own);
  SpareThreads threads(10 * kSecond);
  const LogWriter one = first.in(), two = second.in();
  LogOptions options;
  options.patience_ns = 10 * kSecond;
  options.redactor = DefaultRedactor();
  const std::vector<v1::LogEnd> logs = ReadLogs({one, two}, options, &threads);
  ASSERT_THAT(logs, SizeIs(2));
  EXPECT_EQ(logs[0].path(), shared);
  EXPECT_THAT(logs[0].pids(), ElementsAre(one.process.pid, two.process.pid));
  EXPECT_THAT(logs[0].lines(), ElementsAre("step 7"));
  EXPECT_THAT(logs[1].pids(), ElementsAre(two.process.pid));
  EXPECT_THAT(logs[1].lines(), ElementsAre(testing::HasSubstr("[redacted]")));
  options.patience_ns = 0;
  EXPECT_THAT(ReadLogs({one, two}, options, &threads), SizeIs(0));
}

TEST(ReadLogsTest, ColoursProtectNoSecret) {
  const TemporaryTree tree;
  const std::string log = tree.root() + "/\x1b[36mpassword\x1b[0m=hunter2";
  tree.Write("\x1b[36mpassword\x1b[0m=hunter2",
             "\x1b[36mapi_key\x1b[0m=\x1b[35mhunter2\x1b[0m\n\x1b[32mstep 8\x1b[0m\n");
  const Writer writer(log, log);
  SpareThreads threads(10 * kSecond);
  LogOptions options;
  options.patience_ns = 10 * kSecond;
  options.redactor = DefaultRedactor();
  const std::vector<v1::LogEnd> logs = ReadLogs({writer.in()}, options, &threads);
  ASSERT_THAT(logs, SizeIs(1));
  EXPECT_EQ(logs[0].path(), tree.root() + "/password=[redacted]");
  EXPECT_THAT(logs[0].lines(), ElementsAre("api_key=[redacted]", "step 8"));
}

TEST(ReadLogsTest, NothingIsReadOfAProcessThatForbidsItOrIsAnotherOneByNow) {
  const TemporaryTree tree;
  tree.Write("log", "step 7\n");
  const Writer writer(tree.root() + "/log", tree.root() + "/log");
  SpareThreads threads(10 * kSecond);
  LogOptions options;
  options.patience_ns = 10 * kSecond;
  options.redactor = DefaultRedactor();
  LogWriter later = writer.in();
  ++later.process.start_time;
  EXPECT_THAT(ReadLogs({later}, options, &threads), SizeIs(0));
  options.permits = [](ProcessId) { return false; };
  EXPECT_THAT(ReadLogs({writer.in()}, options, &threads), SizeIs(0));
}

}  // namespace
}  // namespace rollcall
