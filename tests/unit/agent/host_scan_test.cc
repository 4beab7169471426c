// SPDX-License-Identifier: Apache-2.0
// Scans of a made-up /proc.
#include "agent/host_scan.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "temporary_tree.h"

namespace rollcall {
namespace {

class HostScanTest : public ::testing::Test {
 protected:
  HostScanTest() { options_.uid = getuid(); }

  void AddRank(pid_t pid, int rank) {
    const std::string directory = std::to_string(pid);
    proc_.Write(directory + "/stat", directory + " (python3) S 1 1 1 0 -1 0 0 0 0 0 1 1 0 0 20 0 1 0 " +
                                         std::to_string(pid * 10) + " 0\n");
    const std::string rank_variable = "RANK=" + std::to_string(rank);
    proc_.Write(directory + "/environ",
                rank_variable + '\0' + "LD_PRELOAD=/usr/lib/librollcall.so" + '\0');
  }

  std::vector<DiscoveredProcess> Scan() {
    options_.proc_root = proc_root_.empty() ? proc_.root() : proc_root_;
    HostScan scan(options_, std::make_shared<SpareThreads>());
    scan.Poll(/*now_ns=*/1, /*every_ns=*/0, /*with_maps=*/false, /*wait_ns=*/30'000'000'000);
    return scan.newest() == nullptr ? std::vector<DiscoveredProcess>() : scan.newest()->launched;
  }

  TemporaryTree proc_;
  std::string proc_root_;
  ScanOptions options_;
};

TEST_F(HostScanTest, FindsTheRanksOfThisUser) {
  AddRank(20, 3);
  const auto found = Scan();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].process, (ProcessId{20, 200}));
  EXPECT_EQ(found[0].rank.place.rank, 3);
  EXPECT_TRUE(found[0].is_main);
}

TEST_F(HostScanTest, PassesOverProcessesOfOtherUsers) {
  AddRank(20, 3);
  options_.uid = getuid() + 1;
  EXPECT_TRUE(Scan().empty());
}

TEST_F(HostScanTest, GivesNothingWithoutProc) {
  AddRank(20, 3);
  proc_root_ = proc_.root() + "/none";
  EXPECT_TRUE(Scan().empty());
}

}  // namespace
}  // namespace rollcall
