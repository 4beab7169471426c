// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include "fuzz_input.h"
#include "seeds.h"
#include "tests/unit/cli/flight_recorder/pickle_writer.h"

namespace rollcall {
namespace fuzz {
namespace {

using nlohmann::json;

json Call(int record, const std::string& name, const std::string& state) {
  return {{"record_id", record},
          {"process_group", {"0", "default_pg"}},
          {"pg_id", 0},
          {"collective_seq_id", record + 1},
          {"p2p_seq_id", 0},
          {"profiling_name", name},
          {"input_sizes", {{1024, 4}}},
          {"output_sizes", {{1024, 4}}},
          {"input_dtypes", {"Float"}},
          {"state", state},
          {"time_created_ns", 1'800'000'000'000'000'000 + record},
          {"retired", state == "completed"},
          {"is_p2p", name.find("->") != std::string::npos},
          {"frames", {{{"filename", "/x/train.py"}, {"line", 57}, {"name", "step"}}}}};
}

// The dump of one of two ranks, whose last call is `last`.
json RankDump(const std::string& last) {
  return {{"version", "2.10"},
          {"pg_config", {{"0", {{"desc", "default_pg"}, {"ranks", "[0, 1]"}}}}},
          {"pg_status",
           {{"0",
             {{"last_enqueued_collective", 3},
              {"last_started_collective", 3},
              {"last_completed_collective", 2}}}}},
          {"entries",
           {Call(0, "nccl:all_reduce", "completed"), Call(1, "nccl:broadcast", "completed"),
            Call(2, last, "scheduled")}}};
}

}  // namespace

void AddDumpSeeds(Seeds* seeds) {
  const json zero = RankDump("nccl:all_reduce"), one = RankDump("nccl:all_gather"),
             pair = RankDump("nccl:send 0->1");
  (*seeds)["dump"] = {PickleWriter::Write(zero), zero.dump(), PickleWriter::Write(pair)};
  (*seeds)["dumps"] = {Part(PickleWriter::Write(zero)) + Part(PickleWriter::Write(one)),
                       Part(zero.dump()) + Part(pair.dump()), Part(zero.dump())};
}

}  // namespace fuzz
}  // namespace rollcall
