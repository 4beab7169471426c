// SPDX-License-Identifier: Apache-2.0
#include "cli/run/incident_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "base/durations.h"
#include "base/read_file.h"

namespace rollcall {
namespace {

class IncidentFileTest : public ::testing::Test {
 protected:
  void SetUp() override { mkdir(folder_.c_str(), 0700); }
  void TearDown() override {
    for (const char* name : {"/incidents.jsonl", "/linker-7"}) unlink((folder_ + name).c_str());
    rmdir(folder_.c_str());
  }

  std::string Text() const { return ReadFile(folder_ + "/incidents.jsonl").value_or(""); }

  const std::string folder_ = ::testing::TempDir() + "/incident_file_test";
};

ConfirmedIncident Hang(const std::string& id) {
  ConfirmedIncident incident;
  incident.id = id;
  incident.summary = "rank 3 has not called AllReduce #8 on \"dp\"\n";
  incident.report_path = "/r/1";
  incident.finding = {"missing_rank", "certain", 0};
  return incident;
}

TEST_F(IncidentFileTest, HasALineForEachIncident) {
  IncidentFile file(folder_);
  file.Add(Hang("a-1"));
  file.Add(Hang("a-2"));
  file.AddEnd();
  EXPECT_EQ(Text(), LineOf(Hang("a-1")) + "\n" + LineOf(Hang("a-2")) + "\n{\"ends_job\":true}\n");
  EXPECT_EQ(LineOf(Hang("a-1")),
            R"({"id":"a-1","cause":"missing_rank","certainty":"certain","summary":)"
            R"("rank 3 has not called AllReduce #8 on \"dp\"\n","report_path":"/r/1"})");
}

TEST_F(IncidentFileTest, AReaderGetsAFewSecondsAndNoMore) {
  IncidentFile file(folder_);
  std::ofstream(folder_ + "/linker-7").flush();
  EXPECT_TRUE(file.HasReader(100 * kSecond));
  EXPECT_TRUE(file.HasReader(103 * kSecond));
  EXPECT_FALSE(file.HasReader(104 * kSecond));
}

TEST_F(IncidentFileTest, DoesNotWaitForAReaderThatIsDoneOrAbsent) {
  IncidentFile file(folder_);
  EXPECT_FALSE(file.HasReader(100 * kSecond));
  std::ofstream(folder_ + "/linker-7").flush();
  EXPECT_TRUE(file.HasReader(101 * kSecond));
  unlink((folder_ + "/linker-7").c_str());
  EXPECT_FALSE(file.HasReader(102 * kSecond));
}

TEST_F(IncidentFileTest, WritesAndReadsNothingWithoutAFolder) {
  IncidentFile file("");
  file.Add(Hang("a-1"));
  EXPECT_FALSE(file.HasReader(100 * kSecond));
}

}  // namespace
}  // namespace rollcall
