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

  std::filesystem::path proc_;
};

TEST_F(WholeHostTest, ReadsASegmentWithoutRoomAgainAfterAWhileOnly) {
  std::unique_ptr<Child> first = Start("11-1.seg");
  CollectorOptions options = Options();
  options.directory = proc_;  // holds no segments
  options.proc_root = proc_;
  options.whole_host = true;
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

}  // namespace
}  // namespace rollcall
