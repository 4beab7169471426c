// SPDX-License-Identifier: Apache-2.0
// Tests the records of the preloaded library with the reader that the agent uses: runs
// real processes on the simulated NCCL, and reads the segments that they leave.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>

#include "agent/segments/segment_reader.h"
#include "interpose/ops.h"

namespace rollcall {
namespace {

namespace fs = std::filesystem;
using Environment = std::map<std::string, std::string>;

class LibraryTest : public testing::Test {
 protected:
  void SetUp() override {
    char path[] = "/tmp/rollcall-library-XXXXXX";
    ASSERT_NE(mkdtemp(path), nullptr);
    scratch_ = path;
    directory_ = scratch_ / "segments";
    fs::create_directory(directory_);
    chmod(directory_.c_str(), 0700);
  }
  void TearDown() override { fs::remove_all(scratch_); }

  // Runs a program under the library; returns its wait status.
  int Run(const std::vector<std::string>& command, const Environment& more = {},
          rlim_t file_limit = RLIM_INFINITY) {
    const pid_t pid = fork();
    if (pid == 0) {
      setenv("LD_PRELOAD", ROLLCALL_LIBRARY, 1);
      setenv("LD_LIBRARY_PATH", ROLLCALL_SIM_DIR, 1);
      setenv("ROLLCALL_DIR", directory_.c_str(), 1);
      setenv("RANK", "5", 1);
      setenv("WORLD_SIZE", "8", 1);
      setenv("ROLLCALL_JOB", "a job", 1);
      for (const auto& [name, value] : more) setenv(name.c_str(), value.c_str(), 1);
      if (file_limit != RLIM_INFINITY) {
        const rlimit limit = {file_limit, file_limit};
        setrlimit(RLIMIT_FSIZE, &limit);
      }
      if (freopen((scratch_ / "stderr").c_str(), "w", stderr) == nullptr) _exit(99);
      std::vector<char*> arguments;
      for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
      arguments.push_back(nullptr);
      execvp(arguments[0], arguments.data());
      _exit(98);
    }
    int status = -1;
    waitpid(pid, &status, 0);
    return status;
  }
  int Run(const std::string& scenario, const Environment& more = {}) {
    return Run({LIBRARY_VICTIM, scenario}, more);
  }

  size_t Segments() const {
    return static_cast<size_t>(
        std::distance(fs::directory_iterator(directory_), fs::directory_iterator()));
  }

  // The only segment in the folder.
  SegmentSnapshot Read() {
    EXPECT_EQ(Segments(), 1u);
    for (const auto& entry : fs::directory_iterator(directory_)) {
      auto reader = SegmentReader::Open(entry.path());
      EXPECT_TRUE(reader.ok()) << reader.status();
      auto snapshot = (*reader)->Read();
      EXPECT_TRUE(snapshot.ok()) << snapshot.status();
      return *snapshot;
    }
    return {};
  }

  std::string Stderr() const {
    std::ifstream file(scratch_ / "stderr");
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }

  fs::path scratch_, directory_;
};

TEST_F(LibraryTest, RecordsTheIdentityOfTheProcess) {
  ASSERT_EQ(Run("calls"), 0);
  const SegmentSnapshot segment = Read();
  EXPECT_EQ(segment.global_rank, 5);
  EXPECT_EQ(segment.world_size, 8);
  EXPECT_EQ(segment.job, "a job");
  EXPECT_NE(segment.command.find("library_victim\ncalls"), std::string::npos);
  EXPECT_GT(segment.nccl_version, 20000);
}

TEST_F(LibraryTest, RecordsEveryCallOnceWithItsArguments) {
  ASSERT_EQ(Run("calls"), 0);
  const SegmentSnapshot segment = Read();
  ASSERT_EQ(segment.communicators.size(), 1u);
  const CommSnapshot& comm = segment.communicators[0];
  // ncclBcast calls the public ncclBroadcast: one call, not two.
  EXPECT_EQ(comm.entered, 41u);
  EXPECT_EQ(comm.returned, 41u);
  ASSERT_EQ(comm.records.size(), 41u);
  EXPECT_EQ(static_cast<Op>(comm.records[3].op), Op::kAllReduce);
  EXPECT_EQ(comm.records[3].count, 8u);
  EXPECT_EQ(comm.records[3].position, 3u);
  EXPECT_GE(comm.records[3].returned_ns, comm.records[3].entered_ns);
  EXPECT_EQ(static_cast<Op>(comm.records[40].op), Op::kBcast);
  EXPECT_EQ(comm.records[40].peer, 0);
}

TEST_F(LibraryTest, TimesFollowTheClock) {
  const int64_t before = time(nullptr) - 1;
  ASSERT_EQ(Run("calls"), 0);
  const int64_t after = time(nullptr) + 1;
  const SegmentSnapshot segment = Read();
  for (const RecordSnapshot& record : segment.communicators[0].records) {
    EXPECT_GE(record.entered_ns, before * 1'000'000'000);
    EXPECT_LE(record.entered_ns, after * 1'000'000'000);
  }
}

TEST_F(LibraryTest, DifferentHistoriesHaveDifferentSignatures) {
  ASSERT_EQ(Run("calls"), 0);
  const CommSnapshot one = Read().communicators[0];
  fs::remove_all(directory_);
  ASSERT_EQ(Run("calls"), 0);
  const CommSnapshot same = Read().communicators[0];
  fs::remove_all(directory_);
  ASSERT_EQ(Run("other_calls"), 0);
  const CommSnapshot other = Read().communicators[0];
  EXPECT_EQ(one.signature, same.signature);
  EXPECT_EQ(one.checkpoints, same.checkpoints);
  EXPECT_NE(one.signature, other.signature);
  // The histories differ from position 20 on: the checkpoint at 16 is the last to agree.
  ASSERT_EQ(one.checkpoints.size(), 2u);
  ASSERT_EQ(other.checkpoints.size(), 2u);
  EXPECT_EQ(one.checkpoints[0], other.checkpoints[0]);
  EXPECT_NE(one.checkpoints[1], other.checkpoints[1]);
}

TEST_F(LibraryTest, ARefusedCallTakesNoPosition) {
  ASSERT_EQ(Run("refused"), 0);
  const CommSnapshot comm = Read().communicators[0];
  EXPECT_EQ(comm.entered, 2u);
  ASSERT_EQ(comm.records.size(), 3u);
  EXPECT_NE(comm.records[1].result, 0);
  EXPECT_EQ(comm.records[2].position, 1u);
}

TEST_F(LibraryTest, CallsOfAnOpenGroupAreEnteredButHaveNotReturned) {
  Run("open_group");
  const CommSnapshot comm = Read().communicators[0];
  EXPECT_EQ(comm.entered, 3u);
  EXPECT_EQ(comm.returned, 1u);
}

TEST_F(LibraryTest, CallsOfANestedGroupReturnWithTheOutermostEnd) {
  ASSERT_EQ(Run("group"), 0);
  const CommSnapshot comm = Read().communicators[0];
  EXPECT_EQ(comm.returned, 2u);
  ASSERT_EQ(comm.records.size(), 2u);
  EXPECT_NE(comm.records[0].group, 0);
  EXPECT_EQ(comm.records[0].group, comm.records[1].group);
  EXPECT_NE(comm.records[1].returned_ns, 0);
}

TEST_F(LibraryTest, ANormalExitLeavesAMark) {
  ASSERT_EQ(Run("calls"), 0);
  EXPECT_TRUE(Read().exited);
}

TEST_F(LibraryTest, AKilledProcessLeavesItsRecordsAndNoMark) {
  EXPECT_TRUE(WIFSIGNALED(Run("killed")));
  const SegmentSnapshot segment = Read();
  EXPECT_FALSE(segment.exited);
  EXPECT_EQ(segment.communicators[0].entered, 1u);
}

TEST_F(LibraryTest, ASplitChildHasItsParentAndItsEnd) {
  ASSERT_EQ(Run("split"), 0);
  const SegmentSnapshot segment = Read();
  ASSERT_EQ(segment.communicators.size(), 2u);
  const CommSnapshot& child = segment.communicators[1];
  EXPECT_EQ(child.parent_id, segment.communicators[0].id);
  EXPECT_EQ(child.rank, 0);
  EXPECT_EQ(child.size, 1);
  EXPECT_EQ(child.entered, 1u);
  EXPECT_EQ(child.state, segment::CommState::kDestroyed);
  EXPECT_EQ(segment.communicators[0].entered, 0u);
}

TEST_F(LibraryTest, TheGpuMarksTheCallsThatItHasFinished) {
  ASSERT_EQ(Run("calls"), 0);
  const CommSnapshot comm = Read().communicators[0];
  EXPECT_NE(comm.flags & segment::kFlagMarkers, 0u);
  EXPECT_EQ(comm.started, 41u);
  EXPECT_EQ(comm.finished, 41u);
}

TEST_F(LibraryTest, AVariableSwitchesMarkersOff) {
  ASSERT_EQ(Run("calls", {{"ROLLCALL_MARKERS", "0"}}), 0);
  EXPECT_EQ(Read().communicators[0].flags & segment::kFlagMarkers, 0u);
}

TEST_F(LibraryTest, TheFirstErrorOfTheDriverEndsMarkers) {
  for (const char* function : {"cuStreamWriteValue64_v2", "cuMemHostRegister_v2"}) {
    fs::remove_all(directory_);
    ASSERT_EQ(Run("calls", {{"ROLLCALL_SIM_FAIL", function}}), 0) << function;
    const CommSnapshot comm = Read().communicators[0];
    EXPECT_EQ(comm.flags & segment::kFlagMarkers, 0u) << function;
    EXPECT_EQ(comm.entered, 41u);
  }
}

TEST_F(LibraryTest, ForkedChildrenLeaveTheParentsSegmentAlone) {
  ASSERT_EQ(Run("fork"), 0);
  EXPECT_EQ(Read().communicators[0].entered, 2u);
}

TEST_F(LibraryTest, AnExecutedProgramStartsAfresh) {
  ASSERT_EQ(Run("exec"), 0);
  EXPECT_EQ(Read().communicators[0].entered, 41u);
}

TEST_F(LibraryTest, ThreadsShareTheCommunicatorsCount) {
  ASSERT_EQ(Run("threads"), 0);
  const CommSnapshot comm = Read().communicators[0];
  EXPECT_EQ(comm.entered, 2u);
  EXPECT_NE(comm.records[0].thread, comm.records[1].thread);
}

TEST_F(LibraryTest, LeavesErrnoUnchanged) { EXPECT_EQ(Run("errno"), 0); }

TEST_F(LibraryTest, AProcessWithoutNcclCallsLeavesNoFileAndPrintsNothing) {
  ASSERT_EQ(Run("nothing"), 0);
  EXPECT_EQ(Segments(), 0u);
  EXPECT_EQ(Stderr(), "");
}

TEST_F(LibraryTest, AVariableSwitchesTheLibraryOff) {
  ASSERT_EQ(Run("calls", {{"ROLLCALL", "0"}}), 0);
  EXPECT_EQ(Segments(), 0u);
  EXPECT_EQ(Stderr(), "");
}

TEST_F(LibraryTest, WithoutAFolderTheJobRunsAndOneLineSaysSo) {
  ASSERT_EQ(Run("calls", {{"ROLLCALL_DIR", "/proc/no-such-folder"}}), 0);
  const std::string said = Stderr();
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1) << said;
  EXPECT_NE(said.find("training unaffected"), std::string::npos);
}

TEST_F(LibraryTest, AFolderThatIsALinkIsNotUsed) {
  const fs::path link = scratch_ / "link";
  fs::create_directory_symlink(directory_, link);
  ASSERT_EQ(Run("calls", {{"ROLLCALL_DIR", link}}), 0);
  EXPECT_EQ(Segments(), 0u);
}

TEST_F(LibraryTest, AFileSizeLimitCostsTheRecordsAndNotTheJob) {
  // The simulated NCCL needs files of 4 MiB itself.
  constexpr rlim_t kLimit = 5 << 20;
  ASSERT_EQ(Run({LIBRARY_VICTIM, "many_splits"}, {}, kLimit), 0);
  const SegmentSnapshot snapshot = Read();
  // The last one has a shorter history.
  const size_t fit = (kLimit - segment::kHeaderBytes) / segment::kCommBlockBytes + 1;
  EXPECT_EQ(snapshot.communicators.size(), fit);
  EXPECT_EQ(snapshot.lost_communicators, 151 - fit);
  EXPECT_EQ(snapshot.communicators[0].entered, 1u);
}

TEST_F(LibraryTest, FeatureProbesFindOnlyFunctionsThatExist) { EXPECT_EQ(Run("probe"), 0); }

TEST_F(LibraryTest, RecordsCallsMadeByCtypes) {
  const std::string script =
      "import ctypes\n"
      "nccl = ctypes.CDLL('libnccl.so.2')\n"
      "class Id(ctypes.Structure): _fields_ = [('b', ctypes.c_byte * 128)]\n"
      "i, comm = Id(), ctypes.c_void_p()\n"
      "assert nccl.ncclGetUniqueId(ctypes.byref(i)) == 0\n"
      "assert nccl.ncclCommInitRank(ctypes.byref(comm), 1, i, 0) == 0\n"
      "b = (ctypes.c_float * 8)()\n"
      "for _ in range(3):\n"
      "  assert nccl.ncclAllReduce(b, b, ctypes.c_size_t(8), 7, 0, comm, None) == 0\n";
  ASSERT_EQ(Run({"/usr/bin/python3", "-c", script}), 0) << Stderr();
  EXPECT_EQ(Read().communicators[0].entered, 3u);
}

}  // namespace
}  // namespace rollcall
