// SPDX-License-Identifier: Apache-2.0
// Reads the recorded /proc below testdata/proc. Its README describes the processes.
#include "agent/processes/proc_stat.h"

#include <gtest/gtest.h>

#include "agent/processes/proc_maps.h"

namespace rollcall {
namespace {

const std::string& Recorded() {
  static const std::string root = std::string(ROLLCALL_TESTDATA_DIR) + "/proc";
  return root;
}

std::string StatLine(const std::string& name, char state, uint64_t ticks = 0) {
  return "12 (" + name + ") " + state + " 7 1 6 0 -1 4194304 1 2 3 4 " + std::to_string(ticks) +
         " 0 0 0 20 0 3 0 98765 1 2 3\n";
}

TEST(ProcStatTest, ReadsNamesThatHoldSpacesAndParentheses) {
  for (const std::string name : {"plain", "a b", "a) R 1 (b", ")", "(", "", "x\ny", ") R 1 1 1"}) {
    const auto stat = ParseProcStat(StatLine(name, 'S'));
    ASSERT_TRUE(stat.ok()) << name;
    EXPECT_EQ(stat->name, name);
    EXPECT_EQ(stat->state, 'S');
    EXPECT_EQ(stat->ppid, 7);
    EXPECT_EQ(stat->session, 6);
    EXPECT_EQ(stat->start_time, 98765u);
  }
}

TEST(ProcStatTest, ANameThatTheKernelHasCutShowsNoPartOfASecret) {
  const auto stat = ParseProcStat(StatLine("pg://u:hunter22", 'S'));
  ASSERT_TRUE(stat.ok());
  EXPECT_EQ(stat->name.find("hunter"), std::string::npos);
}

TEST(ProcStatTest, RefusesOtherText) {
  for (const char* text : {"", "12", "12 (a", "12 a) S", "x (a) S 1", "12 (a) S 1 2 3", ") 12 ("}) {
    EXPECT_FALSE(ParseProcStat(text).ok()) << text;
  }
}

TEST(ProcStatTest, ReadsTheWaitStatusOfAZombie) {
  const auto stat = ReadProcStat(Recorded(), 4130);
  ASSERT_TRUE(stat.ok()) << stat.status();
  EXPECT_EQ(stat->state, 'Z');
  EXPECT_EQ(stat->wait_status, 9);
}

TEST(ProcStatTest, ReadsAProcess) {
  const auto stat = ReadProcStat(Recorded(), 4121);
  ASSERT_TRUE(stat.ok()) << stat.status();
  EXPECT_EQ(stat->name, "pt main (rank)");
  EXPECT_EQ(stat->state, 'S');
  EXPECT_EQ(stat->ppid, 4100);
  EXPECT_EQ(stat->start_time, 51234u);
  EXPECT_EQ(stat->cpu_ticks, 1530u);
}

TEST(ProcThreadsTest, ReadsEachThreadsStateTracerAndTime) {
  const auto found = ReadProcThreads(Recorded(), 4121);
  ASSERT_TRUE(found.ok());
  ASSERT_EQ(found->threads.size(), 4u);
  const ProcThread& main = found->threads[0];
  EXPECT_EQ(main.tid, 4121);  // first, although 512 is lower
  EXPECT_EQ(main.wchan, "futex_do_wait");
  EXPECT_EQ(main.tracer, 0);
  EXPECT_EQ(main.cpu_ns, 15301234567u);
  EXPECT_EQ(main.lacked_ns, 8123456);
  EXPECT_EQ(main.switches, 157u);  // of both kinds
  const ProcThread& wrapped = found->threads[1];
  EXPECT_EQ(wrapped.tid, 512);
  EXPECT_EQ(wrapped.state, 'R');
  EXPECT_EQ(wrapped.wchan, "");
  EXPECT_EQ(wrapped.cpu_ns, 12'000'000'000u);  // no schedstat: 1200 ticks
  EXPECT_EQ(wrapped.lacked_ns, -1);
  EXPECT_EQ(wrapped.switches, 0u);  // not known
  EXPECT_EQ(found->threads[2].state, 'D');
  EXPECT_EQ(found->threads[2].wchan, "nv_ioctl_wait");
  EXPECT_EQ(found->threads[3].state, 't');
  EXPECT_EQ(found->threads[3].tracer, 999);
}

TEST(ProcThreadsTest, ReportsThatThreadsAreLeftOut) {
  const auto found = ReadProcThreads(Recorded(), 4121, 2);
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found->threads.size(), 2u);
  EXPECT_TRUE(found->left_out);
}

TEST(ProcThreadsTest, AProcessThatIsGoneIsNotFound) {
  EXPECT_TRUE(absl::IsNotFound(ReadProcThreads(Recorded(), 1).status()));
}

TEST(ProcMapsTest, ReadsFilesSpecialsAndDeleted) {
  const auto maps = ParseProcMaps(
      "55d0c0000000-55d0c0001000 r-xp 00002000 fe:00 77 /opt/my app/bin (x)\n"
      "7f0000000000-7f0000001000 rw-p 00000000 00:00 0 \n"
      "7f0000001000-7f0000002000 r--p 00001000 fe:00 78                  /lib/libx.so (deleted)\n"
      "7ffc00000000-7ffc00021000 rw-p 00000000 00:00 0                   [stack]\n");
  ASSERT_EQ(maps.size(), 4u);
  EXPECT_EQ(maps[0].path, "/opt/my app/bin (x)");
  EXPECT_TRUE(maps[0].executable);
  EXPECT_FALSE(maps[0].writable);
  EXPECT_EQ(maps[0].offset, 0x2000u);
  EXPECT_EQ(maps[0].inode, 77u);
  EXPECT_EQ(maps[1].path, "");
  EXPECT_EQ(maps[2].path, "/lib/libx.so");
  EXPECT_TRUE(maps[2].deleted);
  EXPECT_EQ(maps[3].path, "[stack]");
  EXPECT_EQ(FindMap(maps, 0x55d0c0000000), &maps[0]);
  EXPECT_EQ(FindMap(maps, 0x55d0c0001000), nullptr);
  EXPECT_EQ(FindMap(maps, 0x7f0000001fff), &maps[2]);
  EXPECT_EQ(FindMap(maps, 0), nullptr);
}

TEST(ProcMapsTest, SkipsMalformedLines) {
  EXPECT_TRUE(ParseProcMaps("").empty());
  EXPECT_TRUE(ParseProcMaps("nonsense\n12-\n1-2 r\n2-1 r-xp 0 0:0 0\n-\n").empty());
}

}  // namespace
}  // namespace rollcall
