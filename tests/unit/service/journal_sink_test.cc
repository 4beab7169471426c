// SPDX-License-Identifier: Apache-2.0
#include "service/journal_sink.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <sstream>

#include "base/log/limited_log.h"
#include "base/log/log_fields.h"

namespace rollcall {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class JournalSinkTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char folder[] = "/tmp/rollcall-journal-XXXXXX";
    ASSERT_NE(mkdtemp(folder), nullptr);
    folder_ = folder;
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    const std::string path = folder_ + "/socket";
    memcpy(address.sun_path, path.data(), path.size());
    fd_ = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0);
    ASSERT_EQ(bind(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
    log_ = std::make_shared<spdlog::logger>(
        "program", std::make_shared<LimitedSink>("program", MakeJournalSink(path, otherwise_)));
  }
  void TearDown() override {
    CloseJournal();
    unlink((folder_ + "/socket").c_str());
    rmdir(folder_.c_str());
  }
  void CloseJournal() {
    if (fd_ >= 0) close(fd_);
    fd_ = -1;
  }
  std::string Next() {
    char text[10'000];
    const ssize_t size = recv(fd_, text, sizeof(text), 0);
    return size < 0 ? "" : std::string(text, static_cast<size_t>(size));
  }

  std::string folder_;
  int fd_ = -1;
  std::ostringstream stderr_;
  spdlog::sink_ptr otherwise_ = std::make_shared<spdlog::sinks::ostream_sink_mt>(stderr_);
  std::shared_ptr<spdlog::logger> log_;
};

TEST_F(JournalSinkTest, ALineHasPriorityAndTheProgramsName) {
  log_->warn("no tick");
  EXPECT_EQ(Next(), "MESSAGE=no tick\nPRIORITY=4\nSYSLOG_IDENTIFIER=program\n");
  log_->error("broken");
  EXPECT_THAT(Next(), HasSubstr("PRIORITY=3\n"));
  log_->info("ready");
  EXPECT_THAT(Next(), HasSubstr("PRIORITY=6\n"));
  EXPECT_EQ(stderr_.str(), "");
}

TEST_F(JournalSinkTest, JobAndIncidentAreFieldsWhileTheyAreTheSubject) {
  {
    const LogFields fields(LogFields::List{{kJobField, "train"}, {kIncidentField, "train-1"}});
    log_->info("rank 3");
  }
  EXPECT_THAT(Next(), HasSubstr("ROLLCALL_JOB=train\nROLLCALL_INCIDENT=train-1\n"));
  log_->info("ready");
  EXPECT_THAT(Next(), Not(HasSubstr("ROLLCALL_")));
}

// A job's name must not become fields of its own.
TEST_F(JournalSinkTest, AValueWithTwoLinesStaysOneField) {
  const LogFields fields(LogFields::List{{kJobField, "a\nPRIORITY=0"}});
  log_->info("ready");
  const std::string length("\x0c\0\0\0\0\0\0\0", 8);
  EXPECT_THAT(Next(), HasSubstr("ROLLCALL_JOB\n" + length + "a\nPRIORITY=0\n"));
}

TEST_F(JournalSinkTest, ALineGoesToStderrIfNoProcessReadsTheJournal) {
  CloseJournal();
  log_->info("ready");
  EXPECT_THAT(stderr_.str(), HasSubstr("ready"));
}

TEST_F(JournalSinkTest, StderrIsTheJournalOnlyIfSystemdNamesIt) {
  struct stat facts = {};
  ASSERT_EQ(fstat(STDERR_FILENO, &facts), 0);
  unsetenv("JOURNAL_STREAM");
  EXPECT_FALSE(IsStderrJournal());
  setenv("JOURNAL_STREAM", "1:1", 1);
  EXPECT_FALSE(IsStderrJournal());
  const std::string name = std::to_string(facts.st_dev) + ":" + std::to_string(facts.st_ino);
  setenv("JOURNAL_STREAM", name.c_str(), 1);
  EXPECT_TRUE(IsStderrJournal());
  unsetenv("JOURNAL_STREAM");
}

}  // namespace
}  // namespace rollcall
