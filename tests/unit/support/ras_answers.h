// SPDX-License-Identifier: Apache-2.0
// Answers of NCCL's RAS in the form of src/ras/client_support.cc.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace rollcall {

struct AnsweredRank {
  int rank = 0;
  std::string node;
  int pid = 0;
  std::map<std::string, uint64_t> counts;
};

inline std::string JsonRank(const AnsweredRank& rank) {
  return absl::StrCat(
      "{\"rank\": ", rank.rank, ", \"host\": \"", rank.node, "\", \"pid\": ", rank.pid,
      ", \"cuda_dev\": ", rank.rank, ", \"nvml_dev\": ", rank.rank,
      ", \"status\": {\"init_state\": 0, \"async_error\": 0, \"finalize_called\": false, "
      "\"destroy_flag\": false, \"abort_flag\": false}, \"collective_counts\": {",
      absl::StrJoin(rank.counts, ", ",
                    [](std::string* out, const auto& count) {
                      absl::StrAppend(out, "\"", count.first, "\": ", count.second);
                    }),
      "}}");
}

inline std::string JsonMissing(const AnsweredRank& rank, bool dead) {
  return absl::StrCat("{\"rank\": ", rank.rank, ", \"host\": \"", rank.node,
                      "\", \"pid\": ", rank.pid,
                      ", \"cuda_dev\": 1, \"nvml_dev\": 1, \"status\": {\"unresponsive\": true, "
                      "\"considered_dead\": ",
                      dead ? "true" : "false", "}}");
}

inline std::string JsonCommunicator(const std::string& hash, const std::vector<std::string>& ranks,
                                    const std::vector<std::string>& missing = {}) {
  return absl::StrCat("{\"hash\": \"0x", hash, "\", \"secondary_hash\": \"0x1:0x2\", \"size\": ",
                      ranks.size() + missing.size(), ", \"ranks_count\": ", ranks.size(),
                      ", \"missing_ranks_count\": ", missing.size(), ", \"ranks\": [",
                      absl::StrJoin(ranks, ", "), "], \"missing_ranks\": [",
                      absl::StrJoin(missing, ", "), "]}");
}

inline std::string JsonAnswer(const std::vector<std::string>& communicators) {
  return absl::StrCat(
      "{\n  \"nccl_version\": \"2.29.2\",\n  \"cuda_runtime_version\": 13000,\n"
      "  \"cuda_driver_version\": 13000,\n  \"timestamp\": \"2026-01-02 03:04:05\",\n"
      "  \"communicators_count\": ",
      communicators.size(), ",\n  \"communicators\": [", absl::StrJoin(communicators, ", "),
      "],\n  \"ras\": {\"collection_time_sec\": 0.001, \"timeouts_count\": 0}\n}\n");
}

// Four ranks on two nodes, of which rank 2 has not launched the last AllReduce.
inline std::string OneRankBehind() {
  std::vector<std::string> ranks;
  for (int rank = 0; rank < 4; ++rank) {
    ranks.push_back(JsonRank({rank,
                              rank < 2 ? "10.0.0.1" : "10.0.0.2",
                              100 + rank,
                              {{"AllReduce", rank == 2 ? 8811 : 8812}, {"Broadcast", 4}}}));
  }
  return JsonAnswer({JsonCommunicator("a91f", ranks)});
}

}  // namespace rollcall
