// SPDX-License-Identifier: Apache-2.0
// Dumps of PyTorch's Flight Recorder, for tests, and a folder of them.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/durations.h"
#include "cli/flight_recorder/import.h"
#include "daemon/diagnosis/diagnose.h"
#include "pickle_writer.h"

namespace rollcall {

inline constexpr int64_t kStart = 1'700'000'000'000'000'000;

// The dump of one rank.
class Recorder {
 public:
  explicit Recorder(std::string version = "2.10") {
    dump_["version"] = std::move(version);
    dump_["entries"] = nlohmann::json::array();
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
    nlohmann::json& entry = Add(operation, count, completed, group, dtype);
    entry["collective_seq_id"] = seq;
    return *this;
  }

  Recorder& P2p(const std::string& operation, int64_t count, bool completed, bool same_group,
                const std::string& group = "0") {
    if (!same_group) ++p2p_seq_[group];
    nlohmann::json& entry = Add(operation, count, completed, group, "Float");
    entry["is_p2p"] = true;
    entry["p2p_seq_id"] = p2p_seq_[group];
    return *this;
  }

  Recorder& Skip(int64_t calls, const std::string& group = "0") {
    seq_[group] += calls;
    return *this;
  }

  nlohmann::json& last() { return dump_["entries"].back(); }
  nlohmann::json& dump() { return dump_; }
  std::string Json() const { return dump_.dump(); }
  std::string Pickle() const { return PickleWriter::Write(dump_); }

 private:
  nlohmann::json& Add(const std::string& operation, int64_t count, bool completed,
                      const std::string& group, const std::string& dtype) {
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
         {"time_discovered_completed_ns",
          completed ? nlohmann::json(kStart + id * kSecond + 1) : nlohmann::json()},
         {"retired", completed},
         {"is_p2p", false},
         {"frames", {{{"name", "step"}, {"filename", "train.py"}, {"line", 40 + id}}}}});
    return dump_["entries"].back();
  }

  nlohmann::json dump_;
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
  void TearDown() override { std::filesystem::remove_all(folder_); }

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

  std::filesystem::path folder_;
  std::string warnings_;
};

}  // namespace rollcall
