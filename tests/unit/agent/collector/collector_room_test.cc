// SPDX-License-Identifier: Apache-2.0
// The segments of a whole host, where there is no room for all.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "agent/collector/collector.h"
#include "base/durations.h"
#include "collector_fixture.h"

namespace rollcall {
namespace {

// What it maps, a child that is made later has mapped too.
class Mapping {
 public:
  Mapping(const std::string& path, size_t bytes) : bytes_(bytes) {
    const int file = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    EXPECT_EQ(ftruncate(file, static_cast<off_t>(bytes)), 0);
    memory_ = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    EXPECT_NE(memory_, MAP_FAILED);
    close(file);
  }
  ~Mapping() { munmap(memory_, bytes_); }
  void Fill(const std::vector<char>& bytes) { memcpy(memory_, bytes.data(), bytes.size()); }

 private:
  const size_t bytes_;
  void* memory_ = nullptr;
};

class WholeHostTest : public CollectorTest {
 protected:
  void SetUp() override {
    CollectorTest::SetUp();
    proc_ = folder_ / "proc";
    std::filesystem::create_directory(proc_);
    std::filesystem::create_symlink("/proc/self", proc_ / "self");
    segment_.AddComm(5, 0, 2);
  }
  // A process with a segment, and its entry in the made-up /proc.
  std::unique_ptr<Child> Start(const std::string& file) {
    Mapping mapping(absl::StrCat(folder_.string(), "/", file), segment_.bytes().size());
    auto child = std::make_unique<Child>();
    segment_.BelongTo(child->pid(), child->start_time());
    mapping.Fill(segment_.bytes());
    const std::string pid = std::to_string(child->pid());
    std::filesystem::create_symlink("/proc/" + pid, proc_ / pid);
    return child;
  }

  CollectorOptions HostOptions() const {
    CollectorOptions options = Options();
    options.directory = proc_;  // holds no segments
    options.proc_root = proc_;
    options.whole_host = true;
    return options;
  }

  std::filesystem::path proc_;
};

TEST_F(WholeHostTest, ReadsASegmentWithoutRoomAgainAfterAWhileOnly) {
  std::unique_ptr<Child> first = Start("11-1.seg");
  CollectorOptions options = HostOptions();
  options.most_segments = 1;
  options.keep_ended_ns = kSecond;
  Collector collector(options);
  EXPECT_EQ(Only(collector.Collect(10 * kSecond, true)).pid(), first->pid());
  const std::unique_ptr<Child> second = Start("12-1.seg");
  EXPECT_EQ(collector.Collect(12 * kSecond, true).left_out_segments(), 1u);
  std::filesystem::remove(proc_ / std::to_string(first->pid()));
  first->Kill();
  first = nullptr;
  for (const int64_t second_s : {14, 16, 18, 21}) {
    const v1::Tick tick = collector.Collect(second_s * kSecond, true);
    EXPECT_EQ(tick.left_out_segments(), 1u) << second_s;
  }
  const v1::Tick free = collector.Collect(24 * kSecond, true);
  EXPECT_EQ(Only(free).pid(), second->pid());
  EXPECT_EQ(free.left_out_segments(), 0u);
}

// Whether the tick has a process with this pid, and how many records are in it.
size_t RecordsOf(const v1::Tick& tick, pid_t pid) {
  size_t records = 0;
  for (const v1::ProcessUpdate& process : tick.processes()) {
    if (process.pid() != pid) continue;
    for (const v1::CommUpdate& comm : process.communicators()) {
      records += static_cast<size_t>(comm.records().position_size());
    }
  }
  return records;
}

TEST_F(WholeHostTest, ManyCommunicatorsAreInATickWithTheirNewestRecordsOnly) {
  for (uint64_t comm = 1; comm < 8; ++comm) segment_.AddComm(5 + comm, 0, 2);
  for (uint32_t comm = 0; comm < 8; ++comm) {
    for (uint64_t n = 0; n < 100; ++n) segment_.AddAllReduce(comm, 2000 + n);
  }
  const std::unique_ptr<Child> first = Start("11-1.seg"), second = Start("12-1.seg");
  CollectorOptions options = HostOptions();
  options.most_records_of_tick = 320;
  Collector collector(options);
  const v1::Tick tick = collector.Collect(10 * kSecond, true);
  EXPECT_EQ(RecordsOf(tick, first->pid()), 160u);
  EXPECT_EQ(RecordsOf(tick, second->pid()), 160u);
}

TEST_F(WholeHostTest, OneUserLeavesRoomForTheSegmentsOfOthers) {
  std::vector<std::unique_ptr<Child>> children;
  for (int i = 0; i < 5; ++i) children.push_back(Start(absl::StrCat(20 + i, "-1.seg")));
  CollectorOptions options = HostOptions();
  options.most_segments = 5;
  Collector collector(options);
  EXPECT_EQ(collector.Collect(10 * kSecond, true).left_out_segments(), 1u)
      << "four are three quarters of five, rounded up";
}

TEST_F(WholeHostTest, ForgetsTheOldestEndedProcessesBeyondTheLimit) {
  std::vector<std::unique_ptr<Child>> children;
  for (int i = 0; i < 4; ++i) children.push_back(Start(absl::StrCat(30 + i, "-1.seg")));
  CollectorOptions options = HostOptions();
  options.most_ended = 2;
  options.keep_ended_ns = 3600 * kSecond;
  Collector collector(options);
  EXPECT_EQ(collector.Collect(10 * kSecond, true).processes_size(), 4);
  for (const auto& child : children) {
    std::filesystem::remove(proc_ / std::to_string(child->pid()));
    child->Kill();
  }
  for (int64_t second = 12; second < 20; ++second) collector.Collect(second * kSecond, false);
  EXPECT_EQ(collector.Collect(20 * kSecond, true).processes_size(), 2);
}

}  // namespace
}  // namespace rollcall
