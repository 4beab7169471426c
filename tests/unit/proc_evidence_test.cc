// Reads the recorded /proc below testdata/proc: see its README for who is who in it.
#include "agent/processes/proc_evidence.h"

#include <gtest/gtest.h>

#include "agent/processes/proc_maps.h"

namespace rollcall {
namespace {

const std::string& Recorded() {
  static const std::string root = std::string(ROLLCALL_TESTDATA_DIR) + "/proc";
  return root;
}

std::string StatLine(const std::string& name, char state, uint64_t ticks = 0) {
  return "12 (" + name + ") " + state + " 7 1 1 0 -1 4194304 1 2 3 4 " + std::to_string(ticks) +
         " 0 0 0 20 0 3 0 98765 1 2 3\n";
}

TEST(ProcStatTest, ReadsNamesThatHoldSpacesAndParentheses) {
  for (const std::string name : {"plain", "a b", "a) R 1 (b", ")", "(", "", "x\ny", ") R 1 1 1"}) {
    const auto stat = ParseProcStat(StatLine(name, 'S'));
    ASSERT_TRUE(stat.ok()) << name;
    EXPECT_EQ(stat->name, name);
    EXPECT_EQ(stat->state, 'S');
    EXPECT_EQ(stat->ppid, 7);
    EXPECT_EQ(stat->start_ticks, 98765u);
    EXPECT_EQ(stat->threads, 3);
  }
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

TEST(ProcEvidenceTest, ReadsAProcessAndItsThreads) {
  const auto evidence = ReadProcEvidence(Recorded(), 4121);
  ASSERT_TRUE(evidence.ok()) << evidence.status();
  EXPECT_EQ(evidence->stat.name, "pt main (rank)");
  EXPECT_EQ(evidence->stat.state, 'S');
  EXPECT_EQ(evidence->stat.ppid, 4100);
  EXPECT_EQ(evidence->stat.start_ticks, 51234u);
  EXPECT_EQ(evidence->stat.cpu_ticks, 1530u);
  EXPECT_EQ(evidence->wchan, "futex_do_wait");
  EXPECT_EQ(evidence->tracer, 0);
  EXPECT_EQ(evidence->command_line,
            (std::vector<std::string>{"python3", "train.py", "--name=two words", ""}));
  ASSERT_EQ(evidence->threads.size(), 4u);
}

TEST(ProcEvidenceTest, ReadsEachThreadsStateTracerAndTime) {
  const auto evidence = ReadProcEvidence(Recorded(), 4121);
  ASSERT_TRUE(evidence.ok());
  ASSERT_EQ(evidence->threads.size(), 4u);
  const ThreadEvidence& main = evidence->threads[0];
  EXPECT_EQ(main.tid, 4121);  // first, although 512 is lower
  EXPECT_EQ(main.cpu_ns, 15301234567u);
  const ThreadEvidence& wrapped = evidence->threads[1];
  EXPECT_EQ(wrapped.tid, 512);
  EXPECT_EQ(wrapped.state, 'R');
  EXPECT_EQ(wrapped.wchan, "");
  EXPECT_EQ(wrapped.cpu_ns, 12'000'000'000u);  // no schedstat: 1200 ticks
  EXPECT_EQ(evidence->threads[2].state, 'D');
  EXPECT_EQ(evidence->threads[2].wchan, "nv_ioctl_wait");
  EXPECT_EQ(evidence->threads[3].state, 't');
  EXPECT_EQ(evidence->threads[3].tracer, 999);
}

TEST(ProcEvidenceTest, SaysThatThreadsAreLeftOut) {
  const auto evidence = ReadProcEvidence(Recorded(), 4121, 2);
  ASSERT_TRUE(evidence.ok());
  EXPECT_EQ(evidence->threads.size(), 2u);
  EXPECT_TRUE(evidence->threads_left_out);
}

TEST(ProcEvidenceTest, AProcessThatIsGoneIsNotFound) {
  EXPECT_TRUE(absl::IsNotFound(ReadProcEvidence(Recorded(), 1).status()));
}

TEST(ProcEvidenceTest, AZombieHasNoCommandLine) {
  const auto evidence = ReadProcEvidence(Recorded(), 4130);
  ASSERT_TRUE(evidence.ok());
  EXPECT_TRUE(evidence->command_line.empty());
}

ProcEvidence WithTicks(uint64_t ticks, pid_t pid = 12, uint64_t start = 1) {
  ProcEvidence evidence;
  evidence.stat.pid = pid;
  evidence.stat.start_ticks = start;
  evidence.stat.cpu_ticks = ticks;
  return evidence;
}

TEST(CpuMovingTest, SeesTimeUsedByTheSameProcessOnly) {
  EXPECT_TRUE(CpuMoving(WithTicks(100), WithTicks(101)));
  EXPECT_EQ(CpuUsedNs(WithTicks(100), WithTicks(103)), 30'000'000u);
  EXPECT_FALSE(CpuMoving(WithTicks(100), WithTicks(100)));
  EXPECT_FALSE(CpuMoving(WithTicks(100), WithTicks(200, 13)));
  EXPECT_FALSE(CpuMoving(WithTicks(100), WithTicks(200, 12, 2)));
  EXPECT_FALSE(CpuMoving(WithTicks(200), WithTicks(100)));
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

TEST(ProcMapsTest, SkipsLinesThatAreNone) {
  EXPECT_TRUE(ParseProcMaps("").empty());
  EXPECT_TRUE(ParseProcMaps("nonsense\n12-\n1-2 r\n2-1 r-xp 0 0:0 0\n-\n").empty());
}

}  // namespace
}  // namespace rollcall
