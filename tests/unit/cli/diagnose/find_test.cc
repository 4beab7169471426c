// SPDX-License-Identifier: Apache-2.0
// Which processes of a host are read, and in which order.
#include "cli/diagnose/find.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "temporary_tree.h"

namespace rollcall {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr int64_t kNoTime = std::numeric_limits<int32_t>::min();

// A /proc whose processes sleep.
class FakeProc {
 public:
  void Add(pid_t pid, pid_t ppid, pid_t session, const std::string& variables = "A=b",
           int64_t flags = 0) const {
    tree_.Write(absl::StrCat(pid, "/stat"),
                absl::StrCat(pid, " (python3) S ", ppid, " ", session, " ", session, " 0 -1 ",
                             flags, " 0 0 0 0 0 0 0 0 20 0 1 0 100 4096 10 0 1 2 3 0 0\n"));
    tree_.Write(absl::StrCat(pid, "/environ"),
                absl::StrReplaceAll(absl::StrCat(variables, "\n"), {{"\n", {"\0", 1}}}));
    tree_.Write(absl::StrCat(pid, "/cmdline"), std::string("python3\0train.py\0", 17));
    tree_.Write(absl::StrCat(pid, "/maps"), "");
  }
  void Map(pid_t pid, const std::string& file) const {
    tree_.Write(absl::StrCat(pid, "/maps"),
                absl::StrCat("1000-2000 r-xp 00000000 00:01 7 ", file, "\n"));
  }
  FoundProcesses Find(const std::vector<pid_t>& pids, int64_t patience_ns = 2'000'000'000) const {
    FindOptions options;
    options.proc_root = tree_.root();
    options.uid = geteuid();
    options.pids = pids;
    options.patience_ns = patience_ns;
    SpareThreads threads;
    return FindProcesses(options, &threads);
  }

 private:
  TemporaryTree tree_;
};

std::vector<pid_t> PidsIn(const FoundProcesses& found) {
  std::vector<pid_t> pids;
  for (const FoundProcess& process : found.processes) {
    pids.push_back(process.process.process.pid);
  }
  return pids;
}

const FoundProcess& At(const FoundProcesses& found, pid_t pid) {
  return *std::find_if(
      found.processes.begin(), found.processes.end(),
      [pid](const FoundProcess& process) { return process.process.process.pid == pid; });
}

const char kRank[] = "RANK=1\nWORLD_SIZE=2";

TEST(FindProcessesTest, ReadsRanksAndLibrariesInOrderOfPids) {
  FakeProc proc;
  proc.Add(30, 1, 30, kRank);
  proc.Map(30, "/usr/lib/libnccl.so.2");
  proc.Add(4, 1, 4);
  proc.Add(5, 2, 0, "", 0x200000);  // a thread of the kernel
  const FoundProcesses found = proc.Find({});
  EXPECT_THAT(PidsIn(found), ElementsAre(4, 30));
  EXPECT_EQ(At(found, 30).process.rank.coordinates.rank, 1);
  EXPECT_THAT(At(found, 30).libraries, ElementsAre("nccl"));
  EXPECT_FALSE(found.is_cut);
}

// A busy host with thousands of processes.
TEST(FindProcessesTest, ReadsTheNamedProcessesAndTheirRelativesWithoutTimeForAll) {
  FakeProc proc;
  for (pid_t pid = 1000; pid < 1200; ++pid) proc.Add(pid, 1, pid);
  proc.Add(2000, 1, 2000);               // the shell
  proc.Add(2001, 2000, 2001);            // the launcher
  proc.Add(2002, 2001, 2001, kRank);     // is named
  proc.Add(2003, 2001, 2003, "RANK=0");  // has the same parent
  proc.Add(2004, 2003, 2004);            // what that one has started
  proc.Add(2005, 1, 2001);               // is of the same session
  const FoundProcesses found = proc.Find({2002}, kNoTime);
  EXPECT_THAT(PidsIn(found), ElementsAre(2000, 2001, 2002, 2003, 2004, 2005));
  EXPECT_TRUE(found.is_cut);
  EXPECT_FALSE(found.has_all_variables);
}

TEST(FindProcessesTest, ReadsNoMapsOfStrangersIfVariablesGiveTheRanksOfTheNamedJob) {
  FakeProc proc;
  proc.Add(2001, 1, 2001);
  proc.Add(2002, 2001, 2001, kRank);
  proc.Map(2002, "/usr/lib/libnccl.so.2");
  proc.Add(3000, 1, 3000);
  proc.Map(3000, "/usr/lib/libmpi.so.40");
  const FoundProcesses of_job = proc.Find({2001});
  EXPECT_THAT(At(of_job, 2002).libraries, ElementsAre("nccl"));
  EXPECT_THAT(At(of_job, 3000).libraries, IsEmpty());
  EXPECT_TRUE(of_job.has_all_variables);
  EXPECT_THAT(At(proc.Find({}), 3000).libraries, ElementsAre("mpi")) << "of another job";
}

}  // namespace
}  // namespace rollcall
