// SPDX-License-Identifier: Apache-2.0
// Writes the dumps of PyTorch's Flight Recorder for generated hangs, for
// tests/corpus/compare_peers.py:
//   rollcall_corpus_dumps --out=FOLDER [--cases=N] [--seed=N] [--max_ranks=N]
// Each case is a folder with rank_<n>.json for every rank that has not ended, and
// case.json with the right answer and the number of calls of each rank.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/flags/usage.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cases.h"

ABSL_FLAG(std::string, out, "", "the folder to write to");
ABSL_FLAG(int, cases, 300, "number of hangs");
ABSL_FLAG(uint64_t, seed, 1, "seed of the first case");
ABSL_FLAG(int, max_ranks, 32, "highest number of ranks of a job");

namespace rollcall::corpus {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr int64_t kEpoch = 1'700'000'000 * kSecond;
constexpr int64_t kDumpedAfter = 600 * kSecond;  // PyTorch's timeout

// True if records of the Flight Recorder can show the fault. They do not show creation,
// teardown, root, reduction, or a GPU that has not started a call.
bool CanExpress(const std::string& fault) {
  for (const char* known :
       {"missing_rank", "missing_ranks", "rank_exited", "rank_died", "rank_ended", "host_lost",
        "call_replaced", "call_extra", "call_skipped", "calls_swapped", "argument_changed",
        "p2p_size", "stalled_in_flight"}) {
    if (fault == known) return true;
  }
  return false;
}

const char* TorchName(Op op) {
  switch (Canonical(op)) {
    case Op::kAllReduce:
      return "all_reduce";
    case Op::kAllGather:
      return "_all_gather_base";
    case Op::kReduceScatter:
      return "_reduce_scatter_base";
    case Op::kBroadcast:
      return "broadcast";
    case Op::kAlltoAll:
      return "all_to_all";
    default:
      return "reduce";
  }
}

const char* TorchDtype(uint8_t dtype) {
  constexpr const char* kNames[] = {"Char",   "Byte",     "Int",           "UInt32",
                                    "Long",   "UInt64",   "Half",          "Float",
                                    "Double", "BFloat16", "Float8_e4m3fn", "Float8_e5m2"};
  return dtype < sizeof(kNames) / sizeof(kNames[0]) ? kNames[dtype] : "Float";
}

class DumpWriter {
 public:
  explicit DumpWriter(const Case& c) : case_(c) {}

  json MakeDump(int rank) {
    json dump = {{"version", "2.10"}, {"entries", json::array()}, {"comm_lib_version", "2.27.3"}};
    entries_ = &dump["entries"];
    record_id_ = 0;
    for (const Track& track : case_.timeline.ranks[static_cast<size_t>(rank)].tracks) {
      const auto comm = static_cast<size_t>(track.comm);
      const CommPlan& plan = case_.plan.comms[comm];
      dump["pg_config"][std::to_string(comm)] = {
          {"name", std::to_string(comm)},
          {"desc", plan.name},
          {"ranks", absl::StrCat("[", absl::StrJoin(plan.ranks, ", "), "]")}};
      AddTrack(track, case_.plan.RankIn(track.comm, rank), static_cast<int64_t>(plan.ranks.size()));
    }
    SortByTime();
    return dump;
  }

 private:
  void AddTrack(const Track& track, int me, int64_t size) {
    int64_t p2p = 0;
    for (size_t i = 0; i < track.calls.size(); ++i) {
      const CallTimes& call = track.calls[i];
      if (call.entered == kNever) continue;
      const bool is_p2p = OpKind(call.args.op) == CallKind::kP2p;
      if (!is_p2p) {
        AddEntry(track, call, TorchName(call.args.op), size,
                 static_cast<int64_t>(call.position) + 1, 0);
        continue;
      }
      const bool joins = i > 0 && call.group != 0 && track.calls[i - 1].group == call.group;
      if (!joins) ++p2p;
      const bool sends = call.args.op == Op::kSend;
      AddEntry(track, call,
               absl::StrCat(sends ? "send " : "recv ", me, sends ? "->" : "<-", call.args.peer),
               size, static_cast<int64_t>(call.position), p2p);
      const bool ends = call.group != 0 &&
                        (i + 1 == track.calls.size() || track.calls[i + 1].group != call.group);
      if (call.group != 0) entries_->back()["state"] = "scheduled";  // members of a group keep it
      if (ends) {
        AddEntry(track, call, "coalesced", size, static_cast<int64_t>(call.position), p2p);
        entries_->back()["input_sizes"] = entries_->back()["output_sizes"] = json::array();
        entries_->back()["input_dtypes"] = entries_->back()["output_dtypes"] = json::array();
      }
    }
  }

  void AddEntry(const Track& track, const CallTimes& call, const std::string& name, int64_t size,
                int64_t collective, int64_t p2p) {
    const bool done = call.finished != kNever;
    const auto count = static_cast<int64_t>(call.args.count);
    const bool gathers = call.args.op == Op::kAllGather;
    const bool scatters = call.args.op == Op::kReduceScatter;
    const std::string group = std::to_string(track.comm);
    entries_->push_back(
        {{"record_id", 0},
         {"pg_id", track.comm},
         {"process_group", {group, case_.plan.comms[static_cast<size_t>(track.comm)].name}},
         {"collective_seq_id", collective},
         {"p2p_seq_id", p2p},
         {"op_id", ++record_id_},
         {"profiling_name", "nccl:" + name},
         {"time_created_ns", kEpoch + call.entered},
         {"input_sizes", {{scatters ? count * size : count}}},
         {"output_sizes", {{gathers ? count * size : count}}},
         {"input_dtypes", {TorchDtype(call.args.dtype)}},
         {"output_dtypes", {TorchDtype(call.args.dtype)}},
         {"state", done ? "completed" : "scheduled"},
         {"time_discovered_started_ns", nullptr},
         {"time_discovered_completed_ns", done ? json(kEpoch + call.finished) : json()},
         {"retired", done},
         {"timeout_ms", kDumpedAfter / 1'000'000},
         {"is_p2p", p2p != 0},
         {"thread_id", "1"},
         {"thread_name", "python"},
         {"frames", json::array({{{"name", "step"}, {"filename", "train.py"}, {"line", 1}}})}});
  }

  void SortByTime() {
    std::stable_sort(entries_->begin(), entries_->end(), [](const json& a, const json& b) {
      return a["time_created_ns"].get<int64_t>() < b["time_created_ns"].get<int64_t>();
    });
    for (size_t i = 0; i < entries_->size(); ++i) (*entries_)[i]["record_id"] = i;
  }

  const Case& case_;
  json* entries_ = nullptr;
  int64_t record_id_ = 0;
};

// The counts of NCCL's RAS: launched collectives, by operation.
json LaunchCounts(const Case& c) {
  json counts = json::object();
  for (int rank = 0; rank < c.plan.ranks; ++rank) {
    for (const Track& track : c.timeline.ranks[static_cast<size_t>(rank)].tracks) {
      json& of_rank = counts[std::to_string(track.comm)][std::to_string(rank)];
      of_rank = json::object();
      for (const CallTimes& call : track.calls) {
        if (OpKind(call.args.op) == CallKind::kP2p || call.entered == kNever) continue;
        json& count = of_rank[TorchName(call.args.op)];
        count = count.is_null() ? 1 : count.get<int>() + 1;
      }
    }
  }
  return counts;
}

json TruthToJson(const Case& c) {
  json truth = {{"name", c.name}, {"fault", c.fault}, {"ranks", c.plan.ranks}};
  truth["culprits"] = c.truth.culprits;
  truth["causes"] = json::array();
  for (const Cause cause : c.truth.causes) truth["causes"].push_back(CauseName(cause));
  truth["among"] = c.truth.culprits_among;
  truth["several"] = c.truth.several;
  truth["launched"] = LaunchCounts(c);
  truth["gone"] = json::array();
  for (int rank = 0; rank < c.plan.ranks; ++rank) {
    const RankTimeline& line = c.timeline.ranks[static_cast<size_t>(rank)];
    if (line.ended != kNever && line.died) truth["gone"].push_back(rank);
  }
  return truth;
}

bool WriteCase(const Case& c, const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  DumpWriter writer(c);
  for (int rank = 0; rank < c.plan.ranks; ++rank) {
    // A process that has ended cannot write a dump.
    if (c.timeline.ranks[static_cast<size_t>(rank)].ended != kNever) continue;
    std::ofstream(folder / absl::StrCat("rank_", rank, ".json")) << writer.MakeDump(rank).dump();
  }
  std::ofstream truth(folder / "case.json");
  truth << TruthToJson(c).dump();
  return truth.good();
}

int Main() {
  const fs::path out = absl::GetFlag(FLAGS_out);
  if (out.empty()) {
    std::fprintf(stderr, "no output folder: pass --out=FOLDER\n");
    return 2;
  }
  int written = 0;
  for (uint64_t seed = absl::GetFlag(FLAGS_seed); written < absl::GetFlag(FLAGS_cases); ++seed) {
    Case c = MakeFault(seed, absl::GetFlag(FLAGS_max_ranks));
    if (!CanExpress(c.fault) || !c.truth.hangs) continue;
    // The records have no reductions and no roots.
    const bool argument = c.truth.causes.count(Cause::kArgumentMismatch) != 0;
    if (c.timeline.all_ended || (argument && c.fault != "argument_changed")) continue;
    if (!WriteCase(c, out / c.name)) {
      std::fprintf(stderr, "cannot write %s\n", (out / c.name).c_str());
      return 1;
    }
    ++written;
  }
  std::printf("%d cases in %s\n", written, out.c_str());
  return 0;
}

}  // namespace
}  // namespace rollcall::corpus

int main(int argc, char** argv) {
  absl::SetProgramUsageMessage("Writes Flight Recorder dumps of generated hangs.");
  absl::ParseCommandLine(argc, argv);
  return rollcall::corpus::Main();
}
