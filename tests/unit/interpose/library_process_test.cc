// SPDX-License-Identifier: Apache-2.0
// Tests that the preloaded library does no harm in other people's processes: forks,
// full disks, and the many ways in which programs reach NCCL.
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "preloaded_process.h"

namespace rollcall {
namespace {

constexpr int kNoMount = 97;

class LibraryProcessTest : public PreloadedProcessTest {
 protected:
  LibraryProcessTest() : PreloadedProcessTest(ROLLCALL_STUB_DIR) {}

  static std::vector<std::string> Steps(const std::string& steps) {
    std::vector<std::string> command = {LIBRARY_STEPS};
    for (const auto step : absl::StrSplit(steps, ' ')) command.emplace_back(step);
    return command;
  }

  // Takes the steps with the segments on a file system of so many bytes. False if only root may
  // mount one.
  bool RunOnSmallFileSystem(const std::string& steps, int kilobytes) {
    const std::string options = absl::StrCat("mode=700,size=", kilobytes, "k");
    const int status = Run(Steps(steps), {}, [&] {
      // A name space of its own, so that nothing stays mounted.
      if (unshare(CLONE_NEWNS) != 0 || mount("", "/", "", MS_REC | MS_PRIVATE, nullptr) != 0 ||
          mount("tmpfs", directory_.c_str(), "tmpfs", 0, options.c_str()) != 0) {
        _exit(kNoMount);
      }
    });
    if (WIFEXITED(status) && WEXITSTATUS(status) == kNoMount) return false;
    EXPECT_EQ(status, 0) << Stderr();
    return true;
  }

  int StderrLines() const {
    const std::string said = Stderr();
    return static_cast<int>(std::count(said.begin(), said.end(), '\n'));
  }
};

TEST_F(LibraryProcessTest, ACallMakesNoSystemCallAllocatesNothingAndTakesNoLock) {
  ASSERT_EQ(Run({LIBRARY_QUIET}), 0) << Stderr();
  EXPECT_EQ(Stderr(),
            "counters 1 1 1\n"
            "collective 0 0 0\n"
            "two_communicators 0 0 0\n"
            "send 0 0 0\n"
            "group_of_8 0 0 0\n"
            "gpu_wait 0 0 0\n"
            "async_error 0 0 0\n");
  const SegmentSnapshot segment = Read();
  ASSERT_EQ(segment.communicators.size(), 2u);
  EXPECT_EQ(segment.communicators[0].entered + segment.communicators[1].entered,
            100'000u + 100'000 + 4 * 100'000 + 4);
}

TEST_F(LibraryProcessTest, AForkedChildHasASegmentOfItsOwn) {
  ASSERT_EQ(Run(Steps("id init=2,0 all_reduce fork id init=4,1 all_reduce all_reduce join "
                      "all_reduce")),
            0);
  std::map<int32_t, CommSnapshot> by_size;
  ASSERT_EQ(Segments().size(), 2u);
  for (const auto& path : Segments()) {
    const SegmentSnapshot segment = Read(path);
    ASSERT_EQ(segment.communicators.size(), 1u);
    EXPECT_TRUE(segment.exited);
    by_size[segment.communicators[0].size] = segment.communicators[0];
  }
  EXPECT_EQ(by_size[2].entered, 2u);
  EXPECT_EQ(by_size[4].entered, 2u);
  EXPECT_EQ(by_size[4].rank, 1);
}

TEST_F(LibraryProcessTest, AChildThatCallsOnItsParentsCommunicatorTouchesNothing) {
  ASSERT_EQ(Run(Steps("id init=2,0 all_reduce fork all_reduce all_reduce join")), 0);
  const SegmentSnapshot segment = Read();
  EXPECT_EQ(segment.communicators[0].entered, 1u);
  EXPECT_EQ(segment.unknown_comm_calls, 0u);
}

TEST_F(LibraryProcessTest, AChildsExitMarksOnlyTheChild) {
  ASSERT_TRUE(WIFSIGNALED(Run(Steps("id init=2,0 fork exit=0 join kill"))));
  EXPECT_FALSE(Read().exited);
}

TEST_F(LibraryProcessTest, SurvivesTheEndOrExecOfAVforkChild) {
  ASSERT_TRUE(
      WIFSIGNALED(Run(Steps("id init=2,0 all_reduce vfork_exit vfork_exec all_reduce kill"))));
  const SegmentSnapshot segment = Read();
  EXPECT_FALSE(segment.exited);
  EXPECT_EQ(segment.communicators[0].entered, 2u);
}

TEST_F(LibraryProcessTest, AForkWithinAnOpenGroupStartsWithoutIt) {
  ASSERT_EQ(Run(Steps("id init=2,0 group_start all_reduce fork group_end id init=4,0 all_reduce "
                      "join group_end")),
            0);
  for (const auto& path : Segments()) {
    const CommSnapshot comm = Read(path).communicators[0];
    EXPECT_EQ(comm.entered, 1u);
    EXPECT_EQ(comm.returned, 1u);
  }
}

// The library's last call before another thread forks.
class ForkWithinTest : public LibraryProcessTest,
                       public testing::WithParamInterface<const char*> {};

TEST_P(ForkWithinTest, ALivingChildDoesNotProveThatItsParentLives) {
  const std::filesystem::path child = scratch_ / "child";
  const std::string both = absl::StrCat(FORK_WITHIN, " ", ROLLCALL_LIBRARY);
  ASSERT_TRUE(WIFSIGNALED(
      Run(Steps("id init=2,0 all_reduce kill"),
          {{"LD_PRELOAD", both}, {"FORK_WITHIN", GetParam()}, {"FORK_CHILD", child.string()}})))
      << Stderr();
  pid_t pid = 0;
  ASSERT_TRUE(Eventually([&] { return std::ifstream(child) >> pid && pid > 0; }));
  ASSERT_EQ(Segments().size(), 1u);
  EXPECT_EQ(Read().communicators[0].entered, 1u);
  auto reader = SegmentReader::Open(Segments()[0]);
  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_EQ(kill(pid, 0), 0) << "the child lives";
  // A process that reads the parent's /proc files keeps its memory, and so its lock, for a moment.
  EXPECT_TRUE(Eventually([&] { return (*reader)->file().Lock() == HeldLock::kFree; }));
  kill(pid, SIGKILL);
}

INSTANTIATE_TEST_SUITE_P(Windows, ForkWithinTest,
                         testing::Values("open", "first_map", "second_map", "close"));

TEST_F(LibraryProcessTest, AThousandForksLeaveOneSegment) {
  std::string steps = "id init=2,0 all_reduce";
  for (int i = 0; i < 1000; ++i) steps += " fork join";
  ASSERT_EQ(Run(Steps(steps + " all_reduce")), 0) << Stderr();
  EXPECT_EQ(Read().communicators[0].entered, 2u);
}

TEST_F(LibraryProcessTest, ForksWithinForksEachHaveTheirOwn) {
  ASSERT_EQ(Run(Steps("id init=2,0 fork id init=2,0 all_reduce join fork id init=2,0 join")), 0);
  EXPECT_EQ(Segments().size(), 3u);
}

TEST_F(LibraryProcessTest, AnEndWithoutDestructorsLeavesNoMark) {
  ASSERT_EQ(Run(Steps("id init=2,0 quick_exit=0")), 0);
  EXPECT_FALSE(Read().exited);
}

TEST_F(LibraryProcessTest, AFailingExitCodeIsTheProgramsOwn) {
  const int status = Run(Steps("id init=2,0 exit=41"));
  EXPECT_EQ(WEXITSTATUS(status), 41);
  EXPECT_TRUE(Read().exited);
}

TEST_F(LibraryProcessTest, AFullFileSystemCostsTheRecordsAndNotTheJob) {
  if (!RunOnSmallFileSystem("id init=2,0 all_reduce", 8)) GTEST_SKIP() << "only root may mount";
  EXPECT_EQ(StderrLines(), 1) << Stderr();
  EXPECT_NE(Stderr().find("training unaffected"), std::string::npos);
}

TEST_F(LibraryProcessTest, AFileSystemThatFillsUpCostsTheLaterCommunicators) {
  if (!RunOnSmallFileSystem("id init=2,0 all_reduce init=2,0 all_reduce init=2,0 on=0 all_reduce",
                            60)) {
    GTEST_SKIP() << "only root may mount";
  }
  EXPECT_EQ(StderrLines(), 1) << Stderr();
}

TEST_F(LibraryProcessTest, AFolderWithoutWritePermissionCostsTheRecordsAndNotTheJob) {
  const std::string file = scratch_ / "file";
  close(open(file.c_str(), O_CREAT | O_WRONLY, 0600));
  for (const std::string& folder : {file, file + "/below", std::string(5000, 'x')}) {
    ASSERT_EQ(Run(Steps("id init=2,0 all_reduce id init=2,0"), {{"ROLLCALL_DIR", folder}}), 0);
    EXPECT_EQ(StderrLines(), 1) << Stderr();
    EXPECT_NE(Stderr().find("training unaffected"), std::string::npos);
  }
}

TEST_F(LibraryProcessTest, AMissingFolderIsMade) {
  std::filesystem::remove(directory_);
  ASSERT_EQ(Run(Steps("id init=2,0")), 0);
  EXPECT_EQ(Read().communicators.size(), 1u);
  EXPECT_EQ(std::filesystem::status(directory_).permissions(), std::filesystem::perms::owner_all);
}

TEST_F(LibraryProcessTest, NoOtherUserMayReadASegment) {
  ASSERT_EQ(Run(Steps("id init=2,0"), {}, [] { umask(0); }), 0);
  ASSERT_EQ(Segments().size(), 1u);
  using std::filesystem::perms;
  EXPECT_EQ(std::filesystem::status(Segments()[0]).permissions(),
            perms::owner_read | perms::owner_write);
}

TEST_F(LibraryProcessTest, ADeletedSegmentCostsTheLaterCommunicators) {
  const pid_t pid =
      Start(Steps("id init=2,0 all_reduce stream_wait init=2,1 all_reduce on=0 "
                  "all_reduce"),
            {{"STUB_BLOCK", "cudaStreamSynchronize"}, {"STUB_FIFO", scratch_ / "fifo"}},
            [this] { mkfifo((scratch_ / "fifo").c_str(), 0600); });
  ASSERT_TRUE(Eventually(
      [this] { return !Segments().empty() && std::filesystem::exists(scratch_ / "fifo"); }));
  const int fifo = open((scratch_ / "fifo").c_str(), O_WRONLY);  // when it waits
  std::filesystem::remove(Segments()[0]);
  close(fifo);
  EXPECT_EQ(WaitFor(pid), 0) << Stderr();
  EXPECT_TRUE(Segments().empty());
}

TEST_F(LibraryProcessTest, AnyChildMayInheritTheLibrary) {
  for (const std::vector<std::string>& command : std::vector<std::vector<std::string>>{
           {"/bin/sh", "-c", "echo a | cat > /dev/null; ls / > /dev/null"},
           {"/usr/bin/env", "true"},
           {"/usr/bin/python3", "-c", "import subprocess; subprocess.run(['true'])"}}) {
    EXPECT_EQ(Run(command), 0);
    EXPECT_EQ(Stderr(), "");
    EXPECT_TRUE(Segments().empty());
  }
}

// Ways to reach NCCL that pass the library's wrappers.
class SeenTest : public LibraryProcessTest, public testing::WithParamInterface<const char*> {};

TEST_P(SeenTest, HowEverNcclIsReached) {
  ASSERT_EQ(Run({LIBRARY_LOADERS, GetParam()}), 0) << Stderr();
  ASSERT_EQ(Segments().size(), 1u);
  const SegmentSnapshot segment = Read();
  ASSERT_EQ(segment.communicators.size(), 1u);
  EXPECT_EQ(segment.communicators[0].entered, 3u);
}

INSTANTIATE_TEST_SUITE_P(Ways, SeenTest,
                         testing::Values("linked", "default", "handle", "static_in_library"),
                         [](const auto& info) { return std::string(info.param); });

// Ways that bypass the wrappers: the program runs as without the library. (An NCCL that loads
// profiler plugins then reports its calls itself: tests/e2e/jobs/test_profiler_plugin.py.)
class NotSeenTest : public LibraryProcessTest, public testing::WithParamInterface<const char*> {};

TEST_P(NotSeenTest, WorksAsWithoutTheLibrary) {
  EXPECT_EQ(Run({LIBRARY_LOADERS, GetParam()}), 0);
  EXPECT_EQ(Stderr(), "");
  EXPECT_TRUE(Segments().empty());
}

INSTANTIATE_TEST_SUITE_P(Ways, NotSeenTest,
                         testing::Values("new_namespace", "bound_to_itself", "bound_deeply"),
                         [](const auto& info) { return std::string(info.param); });

// Look-ups that the library must answer as the dynamic linker itself would.
class LookUpTest : public LibraryProcessTest, public testing::WithParamInterface<const char*> {};

TEST_P(LookUpTest, GetsTheAnswerOfTheLinker) {
  const std::string old_nccl = std::string(ROLLCALL_STUB_DIR) + "/old";
  ASSERT_EQ(Run({LIBRARY_LOADERS, GetParam()},
                {{"LD_LIBRARY_PATH", old_nccl},
                 {"SECOND_NCCL", std::string(ROLLCALL_STUB_DIR) + "/libnccl.so.2"}}),
            0)
      << Stderr();
}

INSTANTIATE_TEST_SUITE_P(Ways, LookUpTest,
                         testing::Values("sees_itself", "missing", "no_error", "error_text",
                                         "other_names", "second"),
                         [](const auto& info) { return std::string(info.param); });

TEST_F(LibraryProcessTest, AnotherToolsWrapperBeforeTheLibraryGetsTheCallsToo) {
  ASSERT_EQ(Run(Steps("id init=2,0 all_reduce all_reduce"),
                {{"LD_PRELOAD", absl::StrCat(OTHER_INTERPOSER, ":", ROLLCALL_LIBRARY)}}),
            0)
      << Stderr();
  EXPECT_EQ(Read().communicators[0].entered, 2u);
  EXPECT_EQ(Stderr(), "other interposer: 2\n");
}

TEST_F(LibraryProcessTest, AnotherToolsWrapperAfterTheLibraryGetsTheCallsToo) {
  ASSERT_EQ(Run(Steps("id init=2,0 all_reduce all_reduce"),
                {{"LD_PRELOAD", absl::StrCat(ROLLCALL_LIBRARY, ":", OTHER_INTERPOSER)}}),
            0)
      << Stderr();
  EXPECT_EQ(Read().communicators[0].entered, 2u);
  EXPECT_EQ(Stderr(), "other interposer: 2\n");
}

}  // namespace
}  // namespace rollcall
