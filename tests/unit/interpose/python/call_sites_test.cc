// SPDX-License-Identifier: Apache-2.0
// Tests that the library records the line of Python that made a call, in every interpreter of this
// machine.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <set>
#include <string>

#include "preloaded_process.h"
#include "python_interpreters.h"

namespace rollcall {
namespace {

constexpr const char* kLibrary = R"(
import ctypes
class Id(ctypes.Structure): _fields_ = [('b', ctypes.c_byte * 128)]
nccl = ctypes.CDLL('libnccl.so.2')
i, comm = Id(), ctypes.c_void_p()
b = (ctypes.c_float * 8)()
def init():
    assert nccl.ncclGetUniqueId(ctypes.byref(i)) == 0
    assert nccl.ncclCommInitRank(ctypes.byref(comm), 1, i, 0) == 0
def reduce():
    assert nccl.ncclAllReduce(b, b, ctypes.c_size_t(8), 7, 0, comm, None) == 0
def reduce_twice():
    for _ in (x for x in range(2)): reduce()
)";

// Lines from 1.
constexpr const char* kScript = R"(import sys, threading
sys.path.insert(0, sys.argv[1])
from comm import init, reduce, reduce_twice
init()
class Trainer:
    def step(self):
        reduce()
        (lambda: reduce_twice())()
Trainer().step()
thread = threading.Thread(target=reduce)
thread.start()
thread.join()
for _ in range(3):
    reduce()
    reduce()
)";

class CallSitesTest : public PreloadedProcessTest, public testing::WithParamInterface<int> {
 protected:
  CallSitesTest() : PreloadedProcessTest(ROLLCALL_SIM_DIR) {}

  void SetUp() override {
    PreloadedProcessTest::SetUp();
    interpreter_ = FindInterpreter(GetParam());
    if (interpreter_.empty()) GTEST_SKIP() << "this machine has no python3." << GetParam();
    const auto library = scratch_ / "site-packages";
    std::filesystem::create_directory(library);
    std::ofstream(library / "comm.py") << kLibrary;
    std::ofstream(scratch_ / "train.py") << kScript;
  }

  // "train.py:7 in Trainer.step" for each record, in order.
  std::vector<std::string> SitesOfRecords(const Environment& environment) {
    EXPECT_EQ(Run({interpreter_, scratch_ / "train.py", scratch_ / "site-packages"}, environment),
              0)
        << Stderr();
    const SegmentSnapshot snapshot = Read();
    std::vector<std::string> sites;
    for (const RecordSnapshot& record : snapshot.communicators.at(0).records) {
      if (record.site == 0 || record.site > snapshot.sites.size()) {
        sites.push_back("");
        continue;
      }
      const std::string& site = snapshot.sites[record.site - 1];
      sites.push_back(site.substr(site.rfind('/') + 1));
    }
    different_ = snapshot.sites.size();
    return sites;
  }

  std::string interpreter_;
  size_t different_ = 0;
};

TEST_P(CallSitesTest, AreTheInnermostLinesOutsideOfLibraries) {
  const std::vector<std::string> sites = SitesOfRecords({{"ROLLCALL_CALL_SITES", "1"}});
  const std::string step = GetParam() >= 11 ? "Trainer.step" : "step";
  const std::string lambda = GetParam() >= 11 ? "Trainer.step.<locals>.<lambda>" : "<lambda>";
  ASSERT_EQ(sites.size(), 10u);
  EXPECT_EQ(sites[0], "train.py:7 in " + step);
  EXPECT_EQ(sites[1], "train.py:8 in " + lambda);
  EXPECT_EQ(sites[2], "train.py:8 in " + lambda);
  // All frames of that thread belong to libraries, so the site is the innermost one.
  EXPECT_EQ(sites[3], "comm.py:11 in reduce");
  for (const size_t i : {4, 6, 8}) EXPECT_EQ(sites[i], "train.py:14 in <module>");
  for (const size_t i : {5, 7, 9}) EXPECT_EQ(sites[i], "train.py:15 in <module>");
  EXPECT_EQ(different_, 5u);
}

TEST_P(CallSitesTest, AreAbsentByDefault) {
  for (const std::string& site : SitesOfRecords({})) EXPECT_EQ(site, "");
  EXPECT_EQ(different_, 0u);
}

INSTANTIATE_TEST_SUITE_P(Python3, CallSitesTest, testing::Range(8, 15));

}  // namespace
}  // namespace rollcall
