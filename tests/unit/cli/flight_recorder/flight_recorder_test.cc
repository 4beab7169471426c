// SPDX-License-Identifier: Apache-2.0
// Dumps of PyTorch's Flight Recorder, good, bad and hostile, and what the rules
// say of them.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <sstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cli/flight_recorder/dump.h"
#include "cli/flight_recorder/import.h"
#include "cli/flight_recorder/pickle.h"
#include "daemon/diagnosis/diagnose.h"
#include "pickle_writer.h"

namespace rollcall {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// ---- Pickles ----------------------------------------------------------------

std::string Bytes(std::initializer_list<int> codes) {
  std::string bytes;
  for (const int code : codes) bytes += static_cast<char>(code);
  return bytes;
}

TEST(PickleTest, PlainDataComesOutAsItWentIn) {
  const json value = {{"a", {1, -1, 1 << 20, int64_t{1} << 40, nullptr, true, false}},
                      {"b", {{"c", "text"}, {"d", json::array()}, {"e", json::object()}}}};
  const absl::StatusOr<json> read = ReadPickle(PickleWriter::Write(value));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(*read, value);
}

// What pickle.dumps((1, 2.5, "x", b"y", [None, True], {3: -4}), protocol) gives
// for protocols 2 and 4.
TEST(PickleTest, PythonsOwnProtocolsAreRead) {
  const std::string two =
      Bytes({0x80, 2, '(', 'K', 1,   'G',  0x40, 4,    0,    0,   0,   0,   0,    0,   'X',
             1,    0, 0,   0,   'x', 'q',  0,    ']',  'q',  2,   '(', 'N', 0x88, 'e', '}',
             'q',  3, 'K', 3,   'J', 0xfc, 0xff, 0xff, 0xff, 's', 't', 'q', 4,    '.'});
  EXPECT_EQ(*ReadPickle(two), json({1, 2.5, "x", {nullptr, true}, {{"3", -4}}}));
  const std::string four =
      Bytes({0x80, 4,    0x95, 20,  0,    0,   0, 0,    0,    0,   0,    '(', 'K',
             1,    0x8c, 1,    'x', 0x94, 'h', 0, 0x85, 0x94, 't', 0x94, '.'});
  EXPECT_EQ(*ReadPickle(four), json({1, "x", json::array({"x"})}));
}

TEST(PickleTest, OpcodesThatRunCodeAreRefusedByNameAndPlace) {
  const std::pair<int, const char*> opcodes[] = {
      {'c', "GLOBAL"}, {0x93, "STACK_GLOBAL"}, {'R', "REDUCE"},  {'b', "BUILD"},
      {'i', "INST"},   {'o', "OBJ"},           {0x81, "NEWOBJ"}, {0x92, "NEWOBJ_EX"},
      {'P', "PERSID"}, {'Q', "BINPERSID"},     {0x82, "EXT1"},   {0x84, "EXT4"},
  };
  for (const auto& [code, name] : opcodes) {
    const absl::StatusOr<json> read = ReadPickle(Bytes({0x80, 2, ']', code, 'o', 's', '\n', '.'}));
    ASSERT_FALSE(read.ok()) << name;
    EXPECT_TRUE(absl::StrContains(read.status().message(), absl::StrCat("byte 3: ", name)))
        << read.status();
  }
}

// cos\nsystem\n(S'...'\ntR. : the classic.
TEST(PickleTest, TheClassicExploitIsRefused) {
  EXPECT_FALSE(ReadPickle("cos\nsystem\n(S'touch /tmp/rollcall-was-here'\ntR.").ok());
  EXPECT_FALSE(fs::exists("/tmp/rollcall-was-here"));
}

// Each level holds the one before it ten times: 10^30 values in 300 bytes.
TEST(PickleTest, RepetitionDoesNotMultiply) {
  std::string bomb = Bytes({0x80, 2, ']', 'q', 0, '0'});
  for (int level = 1; level < 31; ++level) {
    bomb += Bytes({']', '('});
    for (int i = 0; i < 10; ++i) bomb += Bytes({'h', level - 1});
    bomb += Bytes({'e', 'q', level, '0'});
  }
  bomb += Bytes({'h', 30, '.'});
  const absl::StatusOr<json> read = ReadPickle(bomb);
  ASSERT_FALSE(read.ok());
  EXPECT_TRUE(absl::StrContains(read.status().message(), "more values")) << read.status();
}

// A list of 10 lists, and so on: the text is there 10^4 times, in 66 KB.
TEST(PickleTest, RepeatedTextsDoNotMultiply) {
  constexpr int kBytes = 1 << 16;
  std::string bomb = Bytes({0x80, 2, 'X', 0, 0, kBytes >> 16, 0}) + std::string(kBytes, 'x');
  bomb += Bytes({'q', 0, '0'});
  for (int level = 1; level < 5; ++level) {
    bomb += '(';
    for (int i = 0; i < 10; ++i) bomb += Bytes({'h', level - 1});
    bomb += Bytes({'l', 'q', level, '0'});
  }
  bomb += Bytes({'h', 4, '.'});
  const absl::StatusOr<json> read = ReadPickle(bomb);
  ASSERT_FALSE(read.ok());
  EXPECT_TRUE(absl::StrContains(read.status().message(), "more text")) << read.status();
}

// PyTorch writes a frame once and refers to it from each call that has it.
TEST(PickleTest, SharedFramesAreRead) {
  const json frame = {{"name", "forward"}, {"filename", std::string(120, 'x')}, {"line", 57}};
  std::string pickle = PickleWriter::Write(frame);
  pickle.pop_back();  // the end
  pickle += Bytes({'q', 0xff, '0', '('});
  for (int call = 0; call < 1000; ++call) {
    pickle += '(';
    for (int i = 0; i < 40; ++i) pickle += Bytes({'h', 0xff});
    pickle += 'l';
  }
  pickle += "l.";
  const absl::StatusOr<json> read = ReadPickle(pickle);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->at(999).at(39), frame);
}

TEST(PickleTest, AListThatHoldsItselfIsTooDeep) {
  EXPECT_FALSE(ReadPickle(Bytes({0x80, 2, ']', 'q', 0, 'h', 0, 'a', '.'})).ok());
}

TEST(PickleTest, SizesBeyondTheFileAreNotAllocated) {
  const absl::StatusOr<json> read =
      ReadPickle(Bytes({0x80, 4, 0x8d, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f, 'x', '.'}));
  ASSERT_FALSE(read.ok());
  EXPECT_TRUE(absl::StrContains(read.status().message(), "byte 2")) << read.status();
}

// ---- Dumps ------------------------------------------------------------------

constexpr int64_t kStart = 1'700'000'000'000'000'000;
constexpr int64_t kSecond = 1'000'000'000;

// The dump of one rank.
class Recorder {
 public:
  explicit Recorder(std::string version = "2.10") {
    dump_["version"] = std::move(version);
    dump_["entries"] = json::array();
  }

  Recorder& Group(const std::string& name, const std::string& desc, const std::vector<int>& ranks) {
    dump_["pg_config"][name] = {
        {"name", name}, {"desc", desc}, {"ranks", "[" + absl::StrJoin(ranks, ", ") + "]"}};
    desc_[name] = desc;
    return *this;
  }

  Recorder& Call(const std::string& operation, int64_t count, bool completed = true,
                 const std::string& group = "0", const std::string& dtype = "Float") {
    const int64_t seq = ++seq_[group];
    json& entry = Add(operation, count, completed, group, dtype);
    entry["collective_seq_id"] = seq;
    return *this;
  }

  Recorder& P2p(const std::string& operation, int64_t count, bool completed, bool same_group,
                const std::string& group = "0") {
    if (!same_group) ++p2p_seq_[group];
    json& entry = Add(operation, count, completed, group, "Float");
    entry["is_p2p"] = true;
    entry["p2p_seq_id"] = p2p_seq_[group];
    return *this;
  }

  Recorder& Skip(int64_t calls, const std::string& group = "0") {
    seq_[group] += calls;
    return *this;
  }

  json& last() { return dump_["entries"].back(); }
  json& dump() { return dump_; }
  std::string Json() const { return dump_.dump(); }
  std::string Pickle() const { return PickleWriter::Write(dump_); }

 private:
  json& Add(const std::string& operation, int64_t count, bool completed, const std::string& group,
            const std::string& dtype) {
    const int64_t id = record_id_++;
    dump_["entries"].push_back(
        {{"record_id", id},
         {"pg_id", 0},
         {"process_group", {group, desc_.count(group) != 0 ? desc_[group] : "undefined"}},
         {"collective_seq_id", seq_[group]},
         {"p2p_seq_id", 0},
         {"op_id", id},
         {"profiling_name", "nccl:" + operation},
         {"time_created_ns", kStart + id * kSecond},
         {"input_sizes", {{count}}},
         {"output_sizes", {{count}}},
         {"input_dtypes", {dtype}},
         {"state", completed ? "completed" : "scheduled"},
         {"time_discovered_completed_ns", completed ? json(kStart + id * kSecond + 1) : json()},
         {"retired", completed},
         {"is_p2p", false},
         {"frames", {{{"name", "step"}, {"filename", "train.py"}, {"line", 40 + id}}}}});
    return dump_["entries"].back();
  }

  json dump_;
  std::map<std::string, std::string> desc_;
  std::map<std::string, int64_t> seq_, p2p_seq_;
  int64_t record_id_ = 0;
};

class FlightRecorderTest : public testing::Test {
 protected:
  void SetUp() override {
    char path[] = "/tmp/rollcall-dumps-XXXXXX";
    ASSERT_NE(mkdtemp(path), nullptr);
    folder_ = path;
  }
  void TearDown() override { fs::remove_all(folder_); }

  void Write(const std::string& name, const std::string& bytes) {
    std::ofstream(folder_ / name, std::ios::binary) << bytes;
  }

  // Four ranks in one group; `shape` fills in each one's calls.
  template <typename Shape>
  void WriteRanks(Shape shape, const std::set<int>& left_out = {}) {
    for (int rank = 0; rank < 4; ++rank) {
      if (left_out.count(rank) != 0) continue;
      Recorder recorder;
      recorder.Group("0", "default_pg", {0, 1, 2, 3});
      shape(rank, &recorder);
      Write(absl::StrCat("nccl_trace_rank_", rank), recorder.Pickle());
    }
  }

  std::vector<Verdict> Verdicts() {
    auto input = ImportFlightRecorder({folder_.string()});
    EXPECT_TRUE(input.ok()) << input.status();
    if (!input.ok()) return {};
    warnings_ = absl::StrJoin(input->warnings, "\n");
    Limits limits;
    limits.hang_after_ns = limits.suspect_after_ns = limits.absent_for_good_ns = 0;
    std::vector<Verdict> verdicts = Diagnose(input->model.state(), input->newest_ns, limits);
    AddDumpEvidence(*input, &verdicts);
    return verdicts;
  }

  static std::vector<int> Culprits(const Verdict& v) {
    std::vector<int> ranks;
    for (const Culprit& culprit : v.culprits) ranks.push_back(culprit.rank);
    return ranks;
  }

  fs::path folder_;
  std::string warnings_;
};

TEST_F(FlightRecorderTest, AHealthyJobHasNoHang) {
  WriteRanks([](int, Recorder* r) { r->Call("all_reduce", 8).Call("_all_gather_base", 8); });
  EXPECT_TRUE(Verdicts().empty());
  EXPECT_EQ(warnings_, "");
}

TEST_F(FlightRecorderTest, ARankThatDidNotCallIsMissing) {
  WriteRanks([](int rank, Recorder* r) {
    for (int i = 0; i < 5; ++i) r->Call("all_reduce", 8);
    if (rank != 2) r->Call("all_reduce", 8, false);
  });
  const std::vector<Verdict> verdicts = Verdicts();
  ASSERT_FALSE(verdicts.empty());
  EXPECT_EQ(verdicts[0].cause, Cause::kMissingRank);
  EXPECT_EQ(Culprits(verdicts[0]), std::vector<int>{2});
  EXPECT_EQ(verdicts[0].position, 5u);
  EXPECT_EQ(verdicts[0].communicator_name, "default_pg");
  const std::string evidence = absl::StrJoin(verdicts[0].evidence, "\n");
  EXPECT_TRUE(absl::StrContains(evidence, "rank 2: call #4 was made at train.py:44 (step)"))
      << evidence;
}

// PyTorch's own tool takes the first file for right, and blames all others.
TEST_F(FlightRecorderTest, TheMinorityIsToBlameAlsoWhenItIsReadFirst) {
  WriteRanks([](int rank, Recorder* r) {
    r->Call("all_reduce", 8);
    r->Call(rank == 0 ? "broadcast" : "all_reduce", 8, false);
  });
  const std::vector<Verdict> verdicts = Verdicts();
  ASSERT_FALSE(verdicts.empty());
  EXPECT_EQ(verdicts[0].cause, Cause::kOperationMismatch);
  EXPECT_EQ(Culprits(verdicts[0]), std::vector<int>{0});
  EXPECT_EQ(verdicts[0].position, 1u);
}

// The tutorial's case: rank 0 issues one more as the third, and the tool says
// that rank 1 is missing at the fifth.
TEST_F(FlightRecorderTest, AnExtraCallHasItsPosition) {
  WriteRanks([](int rank, Recorder* r) {
    r->Call("all_reduce", 3).Call("all_reduce", 3);
    if (rank == 0) r->Call("broadcast", 3);
    r->Call("all_reduce", 3).Call("all_reduce", 5, rank != 0);
  });
  const std::vector<Verdict> verdicts = Verdicts();
  ASSERT_FALSE(verdicts.empty());
  EXPECT_EQ(verdicts[0].cause, Cause::kOperationMismatch);
  EXPECT_EQ(Culprits(verdicts[0]), std::vector<int>{0});
  EXPECT_EQ(verdicts[0].position, 2u);
  EXPECT_EQ(verdicts[0].divergence, DivergenceKind::kExtra);
}

TEST_F(FlightRecorderTest, OtherSizesAndTypesAreMismatches) {
  WriteRanks([](int rank, Recorder* r) {
    r->Call("_all_gather_base", rank == 3 ? 9 : 8, false, "0", "Half");
  });
  std::vector<Verdict> verdicts = Verdicts();
  ASSERT_FALSE(verdicts.empty());
  EXPECT_EQ(verdicts[0].cause, Cause::kArgumentMismatch);
  EXPECT_EQ(verdicts[0].mismatched_fields, std::vector<std::string>{"count"});
  EXPECT_EQ(Culprits(verdicts[0]), std::vector<int>{3});
  WriteRanks([](int rank, Recorder* r) {
    r->Call("all_reduce", 8, false, "0", rank == 1 ? "BFloat16" : "Float");
  });
  verdicts = Verdicts();
  ASSERT_FALSE(verdicts.empty());
  EXPECT_EQ(verdicts[0].mismatched_fields, std::vector<std::string>{"dtype"});
}

// All ranks have moved past the gather, and hang in the next call.
TEST_F(FlightRecorderTest, ACompletedCallWithOtherSizesIsTheRoot) {
  for (const char* operation : {"gather", "all_gather", "broadcast"}) {
    WriteRanks([&](int rank, Recorder* r) {
      r->Call("all_reduce", 8).Call(operation, rank == 2 ? 5 : 4).Call("all_reduce", 8, false);
    });
    const std::vector<Verdict> verdicts = Verdicts();
    ASSERT_FALSE(verdicts.empty());
    EXPECT_EQ(verdicts[0].cause, Cause::kArgumentMismatch) << verdicts[0].summary;
    EXPECT_EQ(Culprits(verdicts[0]), std::vector<int>{2});
    EXPECT_EQ(verdicts[0].position, 1u);
    EXPECT_EQ(verdicts[0].certainty, Certainty::kLikely);
  }
}

TEST_F(FlightRecorderTest, ACompletedCallWithAnotherTypeIsTheRoot) {
  WriteRanks([](int rank, Recorder* r) {
    r->Call("all_gather", 8, true, "0", rank == 1 ? "Half" : "Float").Call("all_reduce", 8, false);
  });
  const std::vector<Verdict> verdicts = Verdicts();
  ASSERT_FALSE(verdicts.empty());
  EXPECT_EQ(verdicts[0].mismatched_fields, std::vector<std::string>{"dtype"});
  EXPECT_EQ(Culprits(verdicts[0]), std::vector<int>{1});
}

// Rank 2's sizes differ, and rank 0 is absent for a reason of its own.
TEST_F(FlightRecorderTest, OtherSizesDoNotExcuseAnotherAbsentRank) {
  WriteRanks([](int rank, Recorder* r) {
    r->Call("broadcast", rank == 2 ? 5 : 4).Call("all_reduce", 8);
    if (rank != 0) r->Call("all_reduce", 8, false);
  });
  const std::vector<Verdict> verdicts = Verdicts();
  ASSERT_FALSE(verdicts.empty());
  EXPECT_EQ(verdicts[0].cause, Cause::kMissingRank);
  EXPECT_EQ(Culprits(verdicts[0]), std::vector<int>{0});
}

TEST_F(FlightRecorderTest, WhatComesAfterASkippedCallIsAConsequence) {
  WriteRanks([](int rank, Recorder* r) {
    r->Call("all_reduce", 8);
    if (rank != 2) r->Call("all_reduce", 16);
    r->Call("all_reduce", 32).Call("all_reduce", 64).Call("all_reduce", 128, false);
  });
  const std::vector<Verdict> verdicts = Verdicts();
  ASSERT_FALSE(verdicts.empty());
  EXPECT_EQ(verdicts[0].position, 1u) << verdicts[0].summary;
  EXPECT_EQ(verdicts[0].divergence, DivergenceKind::kSkipped);
  EXPECT_EQ(Culprits(verdicts[0]), std::vector<int>{2});
  for (size_t i = 1; i < verdicts.size(); ++i) EXPECT_TRUE(verdicts[i].is_consequence);
}

TEST_F(FlightRecorderTest, WhatAShiftedRankDoesInAnotherGroupIsAConsequence) {
  WriteRanks([](int rank, Recorder* r) {
    r->Group("1", "dp", {0, 1, 2, 3}).Call("all_reduce", 8);
    if (rank == 1) r->Call("broadcast", 8);
    r->Call("all_reduce", 8).Call("all_reduce", 8);
    if (rank != 1) r->Call("all_gather", 8);
    r->Call(rank == 1 ? "broadcast" : "all_reduce", 4, false, "1");
  });
  const std::vector<Verdict> verdicts = Verdicts();
  ASSERT_GE(verdicts.size(), 2u);
  EXPECT_EQ(verdicts[0].communicator_name, "default_pg") << verdicts[0].summary;
  EXPECT_EQ(Culprits(verdicts[0]), std::vector<int>{1});
  EXPECT_TRUE(verdicts[1].is_consequence) << verdicts[1].summary;
}

TEST_F(FlightRecorderTest, TheRankWhoseAllToAllDoesNotMatchIsNamed) {
  WriteRanks([](int rank, Recorder* r) {
    r->Call("all_reduce", 8).Call("all_to_all", 16, false);
    if (rank == 3) r->last()["output_sizes"] = json::array({json::array({17})});
  });
  const std::vector<Verdict> verdicts = Verdicts();
  ASSERT_FALSE(verdicts.empty());
  EXPECT_EQ(verdicts[0].cause, Cause::kArgumentMismatch) << verdicts[0].summary;
  EXPECT_EQ(Culprits(verdicts[0]), std::vector<int>{3});
  const std::string evidence = absl::StrJoin(verdicts[0].evidence, "\n");
  EXPECT_TRUE(absl::StrContains(evidence,
                                "the ranks together send 64 elements and receive 65; rank 3 does "
                                "not receive as much as it sends"))
      << evidence;
}

TEST_F(FlightRecorderTest, UnevenSplitsThatDoNotMatchAreEvidence) {
  const int64_t sent[] = {16, 20, 12, 16}, received[] = {14, 18, 17, 16};
  WriteRanks([&](int rank, Recorder* r) {
    r->Call("all_to_allv", sent[rank], false);
    r->last()["output_sizes"] = json::array({json::array({received[rank]})});
  });
  const std::vector<Verdict> verdicts = Verdicts();
  ASSERT_FALSE(verdicts.empty());
  EXPECT_EQ(verdicts[0].cause, Cause::kStalledInFlight);
  const std::string evidence = absl::StrJoin(verdicts[0].evidence, "\n");
  EXPECT_TRUE(absl::StrContains(evidence, "send 64 elements and receive 65")) << evidence;
}

TEST_F(FlightRecorderTest, TheHostIsThatOfTheDumpsEnvironment) {
  WriteRanks([](int rank, Recorder* r) {
    r->dump()["env"] = {{"SLURMD_NODENAME", absl::StrCat("gpu-", rank / 2)}, {"HOSTNAME", "pod"}};
    if (rank != 3) r->Call("all_reduce", 8, false);
  });
  const std::vector<Verdict> verdicts = Verdicts();
  ASSERT_FALSE(verdicts.empty());
  EXPECT_EQ(verdicts[0].culprits[0].host, "gpu-1");
}

TEST_F(FlightRecorderTest, UnevenSplitsAndScattersAreLegal) {
  WriteRanks([](int rank, Recorder* r) {
    r->Call("all_to_all", 100 + rank);
    r->Call("scatter", 8);
    r->last()["input_sizes"] = rank == 0 ? json({{8}, {8}, {8}, {8}}) : json::array();
    r->Call("gather", 8);
    r->last()["output_sizes"] = rank == 0 ? json({{8}, {8}, {8}, {8}}) : json::array();
    r->Call("all_gather", 5 + rank);
    r->last()["output_sizes"] = {{5}, {6}, {7}, {8}};
  });
  EXPECT_TRUE(Verdicts().empty());
}

// What the root's list has for each rank.
json Lists(std::initializer_list<int64_t> counts) {
  json lists = json::array();
  for (const int64_t count : counts) lists.push_back(json::array({count}));
  return lists;
}

// The calls wait behind another one, so it is unknown whether they would end.
TEST_F(FlightRecorderTest, AcceptsAGatherWithTheCountsThatItsRootExpects) {
  for (const bool has_root : {true, false}) {
    WriteRanks(
        [](int rank, Recorder* r) {
          r->Call("all_reduce", 8);
          r->Call("gather", rank == 2 ? 6 : 8, false);
          r->last()["output_sizes"] = rank == 0 ? Lists({8, 8, 6, 8}) : json::array();
        },
        has_root ? std::set<int>() : std::set<int>{0});
    for (const Verdict& v : Verdicts()) {
      EXPECT_NE(v.certainty, Certainty::kCertain) << v.summary;
      EXPECT_TRUE(!has_root || v.cause != Cause::kArgumentMismatch) << v.summary;
    }
    fs::remove(folder_ / "nccl_trace_rank_0");
  }
}

TEST_F(FlightRecorderTest, AGatherOfAnotherCountThanItsRootExpectsIsAMismatch) {
  WriteRanks([](int rank, Recorder* r) {
    r->Call("gather", rank == 2 ? 6 : 8, false);
    r->last()["output_sizes"] = rank == 0 ? Lists({8, 8, 8, 8}) : json::array();
  });
  const std::vector<Verdict> verdicts = Verdicts();
  ASSERT_FALSE(verdicts.empty());
  EXPECT_EQ(verdicts[0].cause, Cause::kArgumentMismatch) << verdicts[0].summary;
  EXPECT_EQ(Culprits(verdicts[0]), std::vector<int>{2});
}

TEST_F(FlightRecorderTest, AScatterIsComparedWithItsRootToo) {
  for (const int64_t sent : {6, 8}) {
    WriteRanks([sent](int rank, Recorder* r) {
      r->Call("scatter", rank == 2 ? 6 : 8, false);
      r->last()["input_sizes"] = rank == 0 ? Lists({8, 8, sent, 8}) : json::array();
    });
    const std::vector<Verdict> verdicts = Verdicts();
    ASSERT_FALSE(verdicts.empty());
    EXPECT_EQ(verdicts[0].cause == Cause::kArgumentMismatch, sent == 8) << verdicts[0].summary;
  }
}

TEST_F(FlightRecorderTest, RingsThatWrappedUnequallyAreStillCompared) {
  WriteRanks([](int rank, Recorder* r) {
    r->Skip(rank == 1 ? 40 : 38);
    for (int i = rank == 1 ? 40 : 38; i < 60; ++i) {
      r->Call(i == 50 && rank == 3 ? "reduce" : "all_reduce", 8, i < 50);
    }
  });
  const std::vector<Verdict> verdicts = Verdicts();
  ASSERT_FALSE(verdicts.empty());
  EXPECT_EQ(verdicts[0].cause, Cause::kOperationMismatch);
  EXPECT_EQ(Culprits(verdicts[0]), std::vector<int>{3});
  EXPECT_EQ(verdicts[0].position, 50u);
  EXPECT_LT(verdicts[0].certainty, Certainty::kCertain);
}

TEST_F(FlightRecorderTest, AMissingDumpGivesAWarningAndItsRankIsNeverACertainCulprit) {
  WriteRanks([](int, Recorder* r) { r->Call("all_reduce", 8, false); }, {1});
  const std::vector<Verdict> verdicts = Verdicts();
  EXPECT_TRUE(absl::StrContains(warnings_, "no dump of rank 1 of 4")) << warnings_;
  ASSERT_FALSE(verdicts.empty());
  EXPECT_LT(verdicts[0].certainty, Certainty::kCertain);
}

TEST_F(FlightRecorderTest, BatchedSendsThatWaitInARingAreADeadlockOnlyWithoutGroups) {
  // Each batch is one group: legal.
  WriteRanks([](int rank, Recorder* r) {
    r->P2p(absl::StrCat("send ", rank, "->", (rank + 1) % 4), 8, false, false);
    r->P2p(absl::StrCat("recv ", rank, "<-", (rank + 3) % 4), 8, false, true);
    r->P2p("coalesced", 0, true, true);
  });
  EXPECT_TRUE(Verdicts().empty());
}

TEST_F(FlightRecorderTest, APeerThatNeverReceivesIsNamed) {
  WriteRanks([](int rank, Recorder* r) {
    r->Call("all_reduce", 8);
    if (rank == 0) r->P2p("send 0->2", 8, false, false);
  });
  const std::vector<Verdict> verdicts = Verdicts();
  ASSERT_FALSE(verdicts.empty());
  EXPECT_EQ(verdicts[0].cause, Cause::kUnmatchedP2p);
  EXPECT_EQ(Culprits(verdicts[0]), std::vector<int>{2});
}

TEST_F(FlightRecorderTest, ARankThatNeverUsedTheGroupIsNamed) {
  WriteRanks([](int rank, Recorder* r) {
    r->Call("all_reduce", 8);
    r->Group("1", "dp", {1, 3});
    if (rank == 1) r->Call("all_reduce", 8, false, "1");
  });
  const std::vector<Verdict> verdicts = Verdicts();
  ASSERT_FALSE(verdicts.empty());
  EXPECT_EQ(verdicts[0].cause, Cause::kMissingRank);
  EXPECT_EQ(Culprits(verdicts[0]), std::vector<int>{3});
}

TEST_F(FlightRecorderTest, PeersAreRanksOfTheGroup) {
  for (const int rank : {4, 6}) {
    Recorder recorder;
    recorder.Group("1", "pp", {4, 6});
    if (rank == 4) recorder.P2p("send 0->1", 8, false, false, "1");
    recorder.Call("all_reduce", 1, true, "1");
    Write(absl::StrCat("rank", rank), recorder.Pickle());
  }
  const std::vector<Verdict> verdicts = Verdicts();
  ASSERT_FALSE(verdicts.empty());
  EXPECT_EQ(Culprits(verdicts[0]), std::vector<int>{6});
}

TEST_F(FlightRecorderTest, AStallNamesTheEvidenceThatDumpsWithoutStartTimesLack) {
  WriteRanks([](int, Recorder* r) { r->Call("all_reduce", 8, false); });
  std::vector<Verdict> verdicts = Verdicts();
  ASSERT_FALSE(verdicts.empty());
  EXPECT_EQ(verdicts[0].cause, Cause::kStalledInFlight);
  EXPECT_LT(verdicts[0].certainty, Certainty::kCertain);
  // With them the rank whose GPU has not come is reported.
  WriteRanks([](int rank, Recorder* r) {
    r->Call("all_reduce", 8, false);
    if (rank != 3) r->last()["state"] = "started";
  });
  verdicts = Verdicts();
  ASSERT_FALSE(verdicts.empty());
  EXPECT_EQ(verdicts[0].cause, Cause::kBlockedBeforeStart);
  EXPECT_EQ(Culprits(verdicts[0]), std::vector<int>{3});
}

TEST_F(FlightRecorderTest, GroupsOnWhichRanksDisagreeAreDifferentGroups) {
  for (int rank = 0; rank < 2; ++rank) {
    Recorder recorder;
    recorder.Group("0", "default_pg",
                   rank == 0 ? std::vector<int>{0, 1} : std::vector<int>{0, 1, 2});
    recorder.Call("all_reduce", 8);
    Write(absl::StrCat("rank_", rank), recorder.Pickle());
  }
  Verdicts();
  EXPECT_TRUE(absl::StrContains(warnings_, "the ranks disagree")) << warnings_;
}

TEST_F(FlightRecorderTest, UnknownOperationsAndBackendsAreComparedAllTheSame) {
  WriteRanks([](int rank, Recorder* r) {
    r->Call("quantum_reduce", 8);
    r->last()["profiling_name"] = "xyzccl:quantum_reduce";
    r->Call("all_reduce", 8, false);
    if (rank == 2) r->last()["profiling_name"] = "xyzccl:quantum_reduce";
  });
  const std::vector<Verdict> verdicts = Verdicts();
  ASSERT_FALSE(verdicts.empty());
  EXPECT_EQ(verdicts[0].cause, Cause::kOperationMismatch);
  EXPECT_EQ(Culprits(verdicts[0]), std::vector<int>{2});
  EXPECT_TRUE(absl::StrContains(warnings_, "unknown operation \"quantum_reduce\"")) << warnings_;
}

TEST_F(FlightRecorderTest, JsonAndOldVersionsAreReadAsWell) {
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

TEST_F(FlightRecorderTest, DamagedFilesGiveAWarningAndTheRestIsAnalysed) {
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

TEST_F(FlightRecorderTest, TwoDumpsOfOneRankGiveAWarning) {
  Write("a_rank_0", Recorder().Call("all_reduce", 8).Call("all_reduce", 8).Pickle());
  Write("b_rank_0", Recorder().Call("all_reduce", 8).Pickle());
  Verdicts();
  EXPECT_TRUE(absl::StrContains(warnings_, "b_rank_0: left out: ")) << warnings_;
}

TEST_F(FlightRecorderTest, NoDumpIsAnErrorThatNamesTheExpectedFiles) {
  const auto input = ImportFlightRecorder({folder_.string()});
  ASSERT_FALSE(input.ok());
  EXPECT_TRUE(
      absl::StrContains(input.status().message(), "the name of a dump must end in its rank"));
  EXPECT_FALSE(ImportFlightRecorder({(folder_ / "absent").string()}).ok());
}

// Written by PyTorch 2.13 with Gloo, which leaves the states "scheduled".
TEST_F(FlightRecorderTest, RealDumpsAreRead) {
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
TEST_F(FlightRecorderTest, NoBytesCrashTheReader) {
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
