// SPDX-License-Identifier: Apache-2.0
// Files of dumps, good, bad and hostile: what is read and what is left out.
#include "cli/flight_recorder/dump_files.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "cli/flight_recorder/dump.h"
#include "recorded_job.h"

namespace rollcall {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

class DumpFilesTest : public FlightRecorderTest {};

TEST_F(DumpFilesTest, JsonAndOldVersionsAreReadAsWell) {
  for (int rank = 0; rank < 4; ++rank) {
    Recorder recorder(rank % 2 == 0 ? "2.10" : "2.1");
    recorder.Group("0", "default_pg", {0, 1, 2, 3});
    recorder.Call("all_reduce", 8);
    if (rank != 1) recorder.Call("all_reduce", 8, false);
    json& dump = recorder.dump();
    if (rank % 2 == 1) {
      dump.erase("pg_status");
      for (json& entry : dump["entries"]) {
        entry["seq_id"] = entry["collective_seq_id"];
        for (const char* newer : {"collective_seq_id", "frames", "input_dtypes", "record_id"}) {
          entry.erase(newer);
        }
      }
    }
    // Over HTTP: unknown times are 0.
    for (json& entry : dump["entries"]) {
      if (entry["time_discovered_completed_ns"].is_null())
        entry["time_discovered_completed_ns"] = 0;
    }
    Write(absl::StrCat("some.prefix_host07_", rank, ".json"), recorder.Json());
  }
  const std::vector<Verdict> verdicts = Verdicts();
  ASSERT_FALSE(verdicts.empty());
  EXPECT_EQ(verdicts[0].cause, Cause::kMissingRank);
  EXPECT_EQ(Culprits(verdicts[0]), std::vector<int>{1});
  EXPECT_TRUE(absl::StrContains(warnings_, "different versions")) << warnings_;
  EXPECT_EQ(verdicts[0].culprits[0].host, "host07");
}

TEST_F(DumpFilesTest, DamagedFilesGiveAWarningAndTheRestIsAnalysed) {
  WriteRanks([](int rank, Recorder* r) {
    if (rank != 2) r->Call("all_reduce", 8, false);
  });
  Write("cut_rank_7", Recorder().Call("all_reduce", 8).Pickle().substr(0, 60));
  Write("evil_rank_8",
        "\x80\x02"
        "cos\nsystem\n.");
  Write("words_9.json", "{\"version\": ");
  Write("a_log_file.txt", "not a dump");
  const std::vector<Verdict> verdicts = Verdicts();
  EXPECT_TRUE(absl::StrContains(warnings_, "cut_rank_7: left out: byte ")) << warnings_;
  EXPECT_TRUE(absl::StrContains(warnings_, "evil_rank_8: left out: byte 2: GLOBAL")) << warnings_;
  EXPECT_TRUE(absl::StrContains(warnings_, "words_9.json: left out: byte 13")) << warnings_;
  EXPECT_FALSE(absl::StrContains(warnings_, "a_log_file")) << warnings_;
  EXPECT_FALSE(verdicts.empty());
  EXPECT_EQ(ImportFlightRecorder({folder_.string()})->damaged, 3);
}

TEST_F(DumpFilesTest, TwoDumpsOfOneRankGiveAWarning) {
  Write("a_rank_0", Recorder().Call("all_reduce", 8).Call("all_reduce", 8).Pickle());
  Write("b_rank_0", Recorder().Call("all_reduce", 8).Pickle());
  Verdicts();
  EXPECT_TRUE(absl::StrContains(warnings_, "b_rank_0: left out: ")) << warnings_;
}

TEST_F(DumpFilesTest, NoDumpIsAnErrorThatNamesTheExpectedFiles) {
  const auto input = ImportFlightRecorder({folder_.string()});
  ASSERT_FALSE(input.ok());
  EXPECT_TRUE(
      absl::StrContains(input.status().message(), "the name of a dump must end in its rank"));
  EXPECT_FALSE(ImportFlightRecorder({(folder_ / "absent").string()}).ok());
}

// Written by PyTorch 2.13 with Gloo, which leaves the states "scheduled".
TEST_F(DumpFilesTest, RealDumpsAreRead) {
  const auto input = ImportFlightRecorder({ROLLCALL_TESTDATA "/flight_recorder/gloo"});
  ASSERT_TRUE(input.ok()) << input.status();
  EXPECT_EQ(input->files, 2);
  EXPECT_TRUE(input->warnings.empty()) << input->warnings[0];
  ASSERT_EQ(input->model.state().communicators.size(), 1u);
  const Communicator& comm = input->model.state().communicators.begin()->second;
  EXPECT_EQ(comm.size, 2);
  EXPECT_EQ(comm.members.at(0).entered, 3u);
  EXPECT_EQ(comm.members.at(0).finished, 3u);
}

// Every cut, and many changed bytes: an answer or an error, and never a crash.
TEST_F(DumpFilesTest, NoBytesCrashTheReader) {
  Recorder recorder;
  recorder.Group("0", "default_pg", {0, 1}).Call("all_reduce", 8).Call("broadcast", 8, false);
  recorder.P2p("send 0->1", 8, false, false).P2p("coalesced", 0, false, true);
  std::mt19937 random(1);
  for (const std::string& valid : {recorder.Pickle(), recorder.Json()}) {
    for (size_t size = 0; size < valid.size(); ++size) {
      EXPECT_FALSE(ReadDump(valid.substr(0, size)).ok()) << size;
    }
    for (int i = 0; i < 3000; ++i) {
      std::string bytes = valid;
      for (int changes = 1 + static_cast<int>(random() % 4); changes > 0; --changes) {
        bytes[random() % bytes.size()] = static_cast<char>(random());
      }
      fs::remove_all(folder_);
      fs::create_directory(folder_);
      Write("rank_0", bytes);
      Write("rank_1", valid);
      Verdicts();
    }
  }
}

}  // namespace
}  // namespace rollcall
