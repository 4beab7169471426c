// SPDX-License-Identifier: Apache-2.0
// A collector on a folder with hand-made segments, and child processes that own them.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "absl/strings/str_cat.h"
#include "agent/collector/collector.h"
#include "agent/processes/held_lock.h"
#include "agent/processes/proc_stat.h"
#include "segment_builder.h"

namespace rollcall {

// A child process that waits until the test ends it.
class Child {
 public:
  Child() {
    int ends[2];
    EXPECT_EQ(pipe(ends), 0);
    pid_ = fork();
    if (pid_ == 0) {
      close(ends[1]);
      char code = 0;
      _exit(read(ends[0], &code, 1) == 1 ? code : 99);
    }
    close(ends[0]);
    pipe_ = ends[1];
  }
  ~Child() {
    if (pid_ > 0) End([this] { kill(pid_, SIGKILL); });
    close(pipe_);
  }

  pid_t pid() const { return pid_; }
  uint64_t start_time() const { return ReadProcStat("/proc", pid_)->start_time; }
  void Exit(char code) {
    End([this, code] { EXPECT_EQ(write(pipe_, &code, 1), 1); });
  }
  void Kill() {
    End([this] { kill(pid_, SIGKILL); });
  }

 private:
  // Waits for the end without collecting the child, as an agent finds the processes of others.
  void End(const std::function<void()>& how) {
    how();
    siginfo_t info;
    waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOWAIT);
  }

  pid_t pid_ = -1;
  int pipe_ = -1;
};

// Holds the life lock of a segment, like a process that has mapped the segment.
class LifeLock {
 public:
  explicit LifeLock(const std::string& path) : fd_(open(path.c_str(), O_RDWR | O_CLOEXEC)) {
    EXPECT_TRUE(TakeLock(fd_));
  }
  ~LifeLock() { Release(); }
  void Release() {
    if (fd_ >= 0) close(fd_);
    fd_ = -1;
  }

 private:
  int fd_;
};

class CollectorTest : public testing::Test {
 protected:
  void SetUp() override {
    char path[] = "/tmp/rollcall-collector-XXXXXX";
    ASSERT_NE(mkdtemp(path), nullptr);
    folder_ = path;
  }
  void TearDown() override {
    std::filesystem::remove_all(folder_);
    while (waitpid(-1, nullptr, WNOHANG) > 0) {
    }
  }

  CollectorOptions Options(bool live = true) const {
    CollectorOptions options;
    options.directory = folder_;
    options.discover_directory = folder_;
    options.live = live;
    options.scan_wait_ns = options.least_read_wait_ns = 60'000'000'000;  // on a busy machine
    return options;
  }

  std::string SegmentPath(SegmentBuilder* segment) const {
    return absl::StrCat(folder_.string(), "/", segment->header()->pid, "-",
                        segment->header()->start_time, ".seg");
  }
  void WriteSegment(const Child& child, SegmentBuilder* segment) {
    segment->BelongTo(child.pid(), child.start_time());
    segment->Write(SegmentPath(segment));
  }

  std::filesystem::path folder_;
  SegmentBuilder segment_;
};

// The only process of the tick.
inline const v1::ProcessUpdate& Only(const v1::Tick& tick) {
  static const v1::ProcessUpdate none;
  EXPECT_EQ(tick.processes_size(), 1);
  return tick.processes_size() == 1 ? tick.processes(0) : none;
}

}  // namespace rollcall
