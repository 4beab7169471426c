// SPDX-License-Identifier: Apache-2.0
// The stack area of a segment takes no more of the file system than segments may.
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "absl/strings/str_cat.h"
#include "agent/processes/proc_maps.h"
#include "agent/stacks/segment_stack_requests.h"
#include "interpose/room.h"
#include "preloaded_process.h"

namespace rollcall {
namespace {

constexpr int kNoMount = 97;

class LibraryStackRoomTest : public PreloadedProcessTest {
 protected:
  LibraryStackRoomTest() : PreloadedProcessTest(ROLLCALL_STUB_DIR) {}

  // A process that has a communicator, and waits; its segments are on a file system of so many
  // bytes, in a mount namespace of its own.
  pid_t StartOn(int kilobytes) {
    mkfifo((scratch_ / "fifo").c_str(), 0600);
    return Start({LIBRARY_STEPS, "id", "init=2,0", "stream_wait"},
                 {{"STUB_BLOCK", "cudaStreamSynchronize"}, {"STUB_FIFO", scratch_ / "fifo"}}, [&] {
                   const std::string options = absl::StrCat("mode=700,size=", kilobytes, "k");
                   if (unshare(CLONE_NEWNS) != 0 ||
                       mount("", "/", "", MS_REC | MS_PRIVATE, nullptr) != 0 ||
                       mount("tmpfs", directory_.c_str(), "tmpfs", 0, options.c_str()) != 0) {
                     _exit(kNoMount);
                   }
                 });
  }

  // Of its only segment, as it sees it, or 0.
  uint64_t BytesOfSegment(pid_t pid) const {
    std::error_code error;
    const std::string folder = absl::StrCat("/proc/", pid, "/root", directory_.string());
    for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
      struct stat about;
      if (entry.path().extension() == ".seg" && stat(entry.path().c_str(), &about) == 0) {
        return static_cast<uint64_t>(about.st_blocks) * 512;
      }
    }
    return 0;
  }
};

std::vector<ProcMap> ReadMaps(pid_t pid) {
  std::ifstream file(absl::StrCat("/proc/", pid, "/maps"));
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  return ParseProcMaps(text);
}

TEST_F(LibraryStackRoomTest, AskingForStacksLeavesThreeQuartersFree) {
  constexpr uint64_t kKilobytes = 1024;
  const pid_t pid = StartOn(kKilobytes);
  const uint64_t with_communicator = segment::kHeaderBytes + segment::kCommBlockBytes;
  int status = 0;
  const bool there = Eventually([&] {
    return waitpid(pid, &status, WNOHANG) == pid || BytesOfSegment(pid) >= with_communicator;
  });
  if (WIFEXITED(status) && WEXITSTATUS(status) == kNoMount) GTEST_SKIP() << "only root may mount";
  ASSERT_TRUE(there);
  absl::StatusOr<std::unique_ptr<SegmentStackRequests>> requests =
      absl::UnavailableError("not asked");
  Eventually([&] {
    // Until the signal's handler is installed no thread can be asked.
    requests = SegmentStackRequests::Open("/proc", pid, ReadMaps(pid));
    return requests.ok();
  });
  ASSERT_TRUE(requests.ok()) << requests.status();
  EXPECT_GT(BytesOfSegment(pid), with_communicator) << "there is room for some";
  EXPECT_LE(BytesOfSegment(pid), kKilobytes * 1024 / 4);
  kill(pid, SIGKILL);
  WaitFor(pid);
}

}  // namespace
}  // namespace rollcall
