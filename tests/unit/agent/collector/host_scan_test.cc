// SPDX-License-Identifier: Apache-2.0
// Scans a made-up /proc.
#include "agent/collector/host_scan.h"

#include <gtest/gtest.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "base/unique_fd.h"
#include "interpose/segment.h"
#include "temporary_tree.h"

namespace rollcall {
namespace {

class HostScanTest : public ::testing::Test {
 protected:
  HostScanTest() { options_.uid = getuid(); }

  void AddRank(pid_t pid, int rank) {
    const std::string directory = std::to_string(pid);
    const std::string fields = " (python3) S 1 1 1 0 -1 0 0 0 0 0 1 1 0 0 20 0 1 0 ";
    proc_.Write(directory + "/stat", directory + fields + std::to_string(pid * 10) + " 0\n");
    const std::string rank_variable = "RANK=" + std::to_string(rank);
    proc_.Write(directory + "/environ",
                rank_variable + '\0' + "LD_PRELOAD=/usr/lib/librollcall.so" + '\0');
  }

  void AddProcess(pid_t pid, const std::string& environ, uint64_t program,
                  uint64_t virtual_bytes = 0) {
    const std::string directory = std::to_string(pid);
    proc_.Write(directory + "/stat",
                absl::StrCat(pid, " (bash) S 1 1 1 0 -1 0 0 0 0 0 1 1 0 0 20 0 1 0 200 ",
                             virtual_bytes, " 0 0 ", program, " 0 0\n"));
    proc_.Write(directory + "/environ", environ);
  }

  std::vector<DiscoveredProcess> Scan() {
    const auto result = ScanAgain();
    return result == nullptr ? std::vector<DiscoveredProcess>() : result->launched;
  }

  std::shared_ptr<const ScanResult> ScanAgain(MapsToRead maps = MapsToRead::kNone) {
    options_.proc_root = proc_root_.empty() ? proc_.root() : proc_root_;
    if (scan_ == nullptr) {
      scan_ = std::make_unique<HostScan>(
          options_, std::make_shared<SpareThreads>(/*least_timeout_ns=*/60'000'000'000));
    }
    scan_->Poll(++now_ns_, /*every_ns=*/0, maps, /*wait_ns=*/30'000'000'000);
    return scan_->newest();
  }

  // Returns the number of times that `scans` scans open the file.
  int CountOpens(const std::string& file, int scans, MapsToRead maps) {
    const UniqueFd watch(inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
    EXPECT_GE(inotify_add_watch(watch.get(), (proc_.root() + "/" + file).c_str(), IN_OPEN), 0);
    int opens = 0;
    for (int i = 0; i < scans; ++i) {
      ScanAgain(maps);
      inotify_event event;  // of a file, so without a name
      while (read(watch.get(), &event, sizeof(event)) == sizeof(event)) ++opens;
    }
    return opens;
  }

  TemporaryTree proc_;
  std::string proc_root_;
  ScanOptions options_;
  std::unique_ptr<HostScan> scan_;
  int64_t now_ns_ = 0;
};

constexpr int kUntilOld = 20;  // scans
constexpr int kInTurn = 10;    // the scans that together read each old process
const std::string kRankEnviron =
    std::string("RANK=3") + '\0' + "LD_PRELOAD=/usr/lib/librollcall.so" + '\0';
constexpr char kSegmentMap[] =
    "7f0000000000-7f0000100000 rw-s 00000000 00:01 1234 /dev/shm/jobs/20-200.seg\n";

TEST_F(HostScanTest, FindsTheRanksOfThisUser) {
  AddRank(20, 3);
  const auto found = Scan();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].process, (ProcessId{20, 200}));
  EXPECT_EQ(found[0].rank.coordinates.rank, 3);
  EXPECT_TRUE(found[0].is_main);
}

TEST_F(HostScanTest, SkipsProcessesOfOtherUsers) {
  AddRank(20, 3);
  options_.uid = getuid() + 1;
  EXPECT_TRUE(Scan().empty());
}

TEST_F(HostScanTest, ReadsAnOldProcessInEveryTenthScan) {
  AddProcess(20, "HOME=/", /*program=*/1);
  for (int i = 0; i < kUntilOld; ++i) ScanAgain();
  EXPECT_EQ(CountOpens("20/stat", kInTurn, MapsToRead::kNone), 1);
  EXPECT_EQ(CountOpens("20/stat", kInTurn, MapsToRead::kAll), kInTurn);
}

TEST_F(HostScanTest, ReadsARankInEveryScan) {
  AddRank(20, 3);
  for (int i = 0; i < kUntilOld; ++i) ScanAgain();
  EXPECT_EQ(CountOpens("20/stat", kInTurn, MapsToRead::kNone), kInTurn);
}

TEST_F(HostScanTest, FindsTheRankThatAnOldProcessBecomes) {
  AddProcess(20, "HOME=/", /*program=*/1);
  for (int i = 0; i < kUntilOld; ++i) EXPECT_TRUE(Scan().empty());
  AddProcess(20, kRankEnviron, /*program=*/2);
  std::vector<DiscoveredProcess> found;
  for (int i = 0; i < kInTurn && found.empty(); ++i) found = Scan();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].rank.coordinates.rank, 3);
}

TEST_F(HostScanTest, FindsANewProcessWithTheNumberOfAnOldOneAtOnce) {
  AddProcess(20, "HOME=/", /*program=*/1);
  for (int i = 0; i < kUntilOld; ++i) EXPECT_TRUE(Scan().empty());
  std::filesystem::rename(proc_.root() + "/20", proc_.root() + "/ended");  // keeps its inode
  AddProcess(20, kRankEnviron, /*program=*/2);
  EXPECT_EQ(Scan().size(), 1u);
}

TEST_F(HostScanTest, ReadsMapsOnceARankMapsASegmentsSize) {
  constexpr uint64_t kBytes = 1 << 30;
  AddProcess(20, kRankEnviron, /*program=*/1, kBytes);
  proc_.Write("20/maps", "");
  for (int i = 0; i < kUntilOld; ++i) ScanAgain(MapsToRead::kChanged);
  EXPECT_EQ(CountOpens("20/maps", kInTurn, MapsToRead::kChanged), 1);
  EXPECT_EQ(CountOpens("20/maps", kInTurn, MapsToRead::kAll), kInTurn);
  proc_.Write("20/maps", kSegmentMap);
  AddProcess(20, kRankEnviron, /*program=*/1, kBytes + segment::kMappedBytes);
  EXPECT_EQ(ScanAgain(MapsToRead::kChanged)->segments.size(), 1u);
}

TEST_F(HostScanTest, GivesEachUserAShareOfEachScan) {
  options_.user_share_ns = 0;  // one process
  ScanAgain();
  for (pid_t pid = 20; pid < 24; ++pid) AddRank(pid, pid - 20);
  for (size_t scan = 1; scan <= 4; ++scan) EXPECT_EQ(Scan().size(), scan);
  EXPECT_EQ(Scan().size(), 4u);
}

TEST_F(HostScanTest, ReadsAllProcessesInItsFirstScan) {
  options_.user_share_ns = 0;
  for (pid_t pid = 20; pid < 24; ++pid) AddRank(pid, pid - 20);
  EXPECT_EQ(Scan().size(), 4u);
}

TEST_F(HostScanTest, FindsTheRankThatAProcessBecomesWhileItsUserHasHadItsShare) {
  options_.user_share_ns = 0;
  for (pid_t pid = 20; pid < 22; ++pid) AddProcess(pid, "HOME=/", /*program=*/1);
  EXPECT_TRUE(Scan().empty());
  for (pid_t pid = 20; pid < 22; ++pid) AddProcess(pid, kRankEnviron, /*program=*/2);
  EXPECT_EQ(Scan().size(), 1u);
  EXPECT_EQ(Scan().size(), 2u);
}

TEST_F(HostScanTest, LeavesOutTheRanksThatAreMoreThanOneUserMayHave) {
  options_.most_launched_of_user = 3;
  for (pid_t pid = 20; pid < 25; ++pid) AddRank(pid, pid - 20);
  const auto found = ScanAgain();
  EXPECT_EQ(found->launched.size(), 3u);
  ASSERT_EQ(found->faults.size(), 1u);
  EXPECT_NE(found->faults[0].text.find("more than 3 processes"), std::string::npos);
  proc_.Remove("21");
  Scan();  // sees that there is room
  const auto later = Scan();
  ASSERT_EQ(later.size(), 3u);
  EXPECT_EQ(later.back().process.pid, 23);
}

TEST_F(HostScanTest, FindsASegmentAmongLongMaps) {
  AddProcess(20, kRankEnviron, /*program=*/1);
  const std::string line =
      absl::StrCat("1000-2000 r--s 00000000 00:01 7 /", std::string(4000, 'x'));
  proc_.Write("20/maps", absl::StrCat(line, "\n", line, std::string(9000, 'y'), "\n", kSegmentMap));
  EXPECT_EQ(ScanAgain(MapsToRead::kAll)->segments.size(), 1u);
}

// Ranks without the library.
class UnrecordedScanTest : public HostScanTest {
 protected:
  UnrecordedScanTest() {
    options_.whole_host = true;
    options_.find_unrecorded = true;
  }

  void AddUnrecorded(pid_t pid, pid_t parent, const std::string& environ,
                     const std::string& name = "python3") {
    const std::string directory = std::to_string(pid);
    proc_.Write(directory + "/stat",
                absl::StrCat(pid, " (", name, ") S ", parent,
                             " 1 1 0 -1 0 0 0 0 0 1 1 0 0 20 0 1 0 ", pid * 10, " 0\n"));
    proc_.Write(directory + "/environ", environ);
    proc_.Write(directory + "/cmdline", std::string("python3\0train.py\0--secret=x\0", 27));
  }

  static std::string RankOf(int rank, int world = 4) {
    return absl::StrCat("RANK=", rank, std::string(1, '\0'), "WORLD_SIZE=", world,
                        std::string(1, '\0'), "MASTER_ADDR=node-1", std::string(1, '\0'),
                        "MASTER_PORT=29500", std::string(1, '\0'));
  }

  std::vector<pid_t> Unrecorded() {
    std::vector<pid_t> pids;
    for (const UnrecordedRank& rank : ScanAgain()->unrecorded) {
      pids.push_back(rank.process.process.pid);
    }
    return pids;
  }
};

TEST_F(UnrecordedScanTest, FindsTheRanksOfAnUnpreparedJob) {
  AddUnrecorded(10, 1, "HOME=/root" + std::string(1, '\0'), "torchrun");
  AddUnrecorded(11, 10, RankOf(0));
  AddUnrecorded(12, 10, RankOf(1));
  AddUnrecorded(13, 12, RankOf(1), "pt_data_worker");
  EXPECT_EQ(Unrecorded(), (std::vector<pid_t>{11, 12}));
  const UnrecordedRank rank = ScanAgain()->unrecorded.front();
  EXPECT_EQ(rank.script, "train.py");
  EXPECT_EQ(rank.process.rank.coordinates.world_size, 4);
  EXPECT_EQ(rank.marks.front().kind, "rendezvous");
  EXPECT_EQ(rank.marks.back().kind, "launcher");
  EXPECT_EQ(rank.marks.back().value, "10");
  EXPECT_EQ(rank.found_by, "RANK");
}

TEST_F(UnrecordedScanTest, ARankWithTheLibraryAndItsRelativesAreNotUnrecorded) {
  AddUnrecorded(10, 1, RankOf(0), "srun-wrapper");
  AddUnrecorded(11, 10, RankOf(0) + "LD_PRELOAD=/usr/lib/librollcall.so" + std::string(1, '\0'));
  AddUnrecorded(12, 11, RankOf(0));
  EXPECT_EQ(Unrecorded(), std::vector<pid_t>{});
}

TEST_F(UnrecordedScanTest, ATaskOfOneIsNotADistributedJob) {
  AddUnrecorded(10, 1, RankOf(0, 1));
  EXPECT_EQ(Unrecorded(), std::vector<pid_t>{});
}

TEST_F(UnrecordedScanTest, IsOffUnlessAskedFor) {
  options_.find_unrecorded = false;
  AddUnrecorded(10, 1, RankOf(0));
  EXPECT_EQ(Unrecorded(), std::vector<pid_t>{});
}

TEST_F(UnrecordedScanTest, AUserWithManyHasALimit) {
  options_.most_unrecorded_of_user = 3;
  for (pid_t pid = 10; pid < 20; ++pid) AddUnrecorded(pid, 1, RankOf(pid, 100));
  EXPECT_EQ(Unrecorded().size(), 3u);
  EXPECT_EQ(ScanAgain()->unrecorded_left_out, 7u);
}

TEST_F(UnrecordedScanTest, ARankBeyondTheLimitIsReadAgainWhenOthersHaveEnded) {
  options_.most_unrecorded_of_user = 1;
  AddUnrecorded(10, 1, RankOf(0));
  AddUnrecorded(11, 1, RankOf(1));
  EXPECT_EQ(Unrecorded(), std::vector<pid_t>{10});
  proc_.Remove("10");
  for (int i = 0; i < kUntilOld; ++i) ScanAgain();
  EXPECT_EQ(Unrecorded(), std::vector<pid_t>{11});
  EXPECT_EQ(ScanAgain()->unrecorded_left_out, 0u);
}

// Two processes with a connection between them, by the sockets 101 and 102.
class TalkersScanTest : public UnrecordedScanTest {
 protected:
  void AddTalker(pid_t pid, pid_t parent, int socket, const std::string& library,
                 const std::string& environ = "HOME=/root") {
    const std::string directory = std::to_string(pid);
    AddUnrecorded(pid, parent, environ + std::string(1, '\0'));
    proc_.Write(directory + "/maps",
                absl::StrCat("1000-2000 r-xp 00000000 00:01 7 /usr/lib/", library, "\n"));
    proc_.Link(directory + "/ns/net", "net:[4026531840]");
    proc_.Link(directory + "/fd/3", absl::StrCat("socket:[", socket, "]"));
    const std::string rest = " 01 00000000:00000000 00:00000000 00000000 0 0 ";
    proc_.Write(directory + "/net/tcp",
                absl::StrCat("0: 0100007F:1F90 0100007F:C000", rest, "101 1\n",
                             "1: 0100007F:C000 0100007F:1F90", rest, "102 1\n"));
  }

  std::shared_ptr<const ScanResult> ScanMaps() { return ScanAgain(MapsToRead::kChanged); }
};

TEST_F(TalkersScanTest, FindsRanksOfJaxThatNoVariableNumbers) {
  AddTalker(11, 5, 101, "libjax_common.so");
  AddTalker(12, 6, 102, "libjax_common.so");
  const auto result = ScanMaps();
  ASSERT_EQ(result->unrecorded.size(), 2u);
  const UnrecordedRank& rank = result->unrecorded.back();
  EXPECT_EQ(rank.found_by, "connection");
  EXPECT_EQ(rank.script, "train.py");
  EXPECT_EQ(rank.process.rank.coordinates.rank, -1);
  EXPECT_EQ(rank.marks.front().kind, "mesh");
  EXPECT_EQ(rank.marks.front().value, "11");
}

TEST_F(TalkersScanTest, LeavesAloneWhatIsNoRank) {
  AddTalker(11, 5, 101, "libtorch_cpu.so");
  AddTalker(12, 6, 102, "libtorch_cpu.so");
  EXPECT_EQ(ScanMaps()->unrecorded.size(), 0u) << "its ranks have threads that show them";
}

TEST_F(TalkersScanTest, LeavesAloneRelativesOfARankWithTheLibrary) {
  AddTalker(11, 5, 101, "libjax_common.so");
  AddTalker(12, 6, 102, "libjax_common.so");
  AddUnrecorded(13, 12, RankOf(0) + "LD_PRELOAD=/usr/lib/librollcall.so" + std::string(1, '\0'));
  const auto result = ScanMaps();
  ASSERT_EQ(result->unrecorded.size(), 1u);
  EXPECT_EQ(result->unrecorded.front().process.process.pid, 11);
}

// Reading all descriptors of many processes costs more than the rest of a scan.
TEST_F(TalkersScanTest, LooksForConnectionsRarely) {
  AddTalker(11, 5, 101, "libjax_common.so");
  AddTalker(12, 6, 102, "libjax_common.so");
  ScanMaps();
  EXPECT_LE(CountOpens("11/net/tcp", 2 * kInTurn, MapsToRead::kChanged), 2);
  EXPECT_EQ(ScanMaps()->unrecorded.size(), 2u);
  proc_.Remove("12");
  EXPECT_EQ(ScanMaps()->unrecorded.size(), 1u) << "until the next search";
}

TEST_F(TalkersScanTest, IsOffUnlessAskedFor) {
  options_.find_unrecorded = false;
  AddTalker(11, 5, 101, "libjax_common.so");
  AddTalker(12, 6, 102, "libjax_common.so");
  EXPECT_EQ(ScanMaps()->unrecorded.size(), 0u);
}

TEST_F(UnrecordedScanTest, ReadsAnEnvironmentOnce) {
  AddUnrecorded(10, 1, RankOf(0));
  EXPECT_EQ(Unrecorded().size(), 1u);
  EXPECT_EQ(CountOpens("10/environ", 5, MapsToRead::kNone), 0);
  EXPECT_EQ(Unrecorded().size(), 1u);
}

TEST_F(HostScanTest, FindsNothingWithoutProc) {
  AddRank(20, 3);
  proc_root_ = proc_.root() + "/none";
  EXPECT_TRUE(Scan().empty());
}

}  // namespace
}  // namespace rollcall
