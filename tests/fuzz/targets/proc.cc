// SPDX-License-Identifier: Apache-2.0
// Texts of /proc that a process can write parts of: its name, its files' names, its environment.
// The first byte of an input says which text follows.
#include "agent/processes/proc_maps.h"
#include "agent/processes/proc_stat.h"
#include "agent/processes/rank_environment.h"
#include "fuzz_target.h"

namespace rollcall {
namespace fuzz {
namespace {

void ReadMaps(const std::string& text) {
  const std::vector<ProcMap> maps = ParseProcMaps(text);
  uint64_t end = 0;
  for (const ProcMap& map : maps) {
    Promise(map.start >= end && map.end > map.start, "mappings ascend");
    Promise(FindMap(maps, map.start) == &map && FindMap(maps, map.end - 1) == &map,
            "a mapping is found by its addresses");
    end = map.end;
  }
  Promise(FindMap(maps, end) == nullptr, "there is nothing behind the last mapping");
}

void ReadStat(const std::string& text) {
  const auto stat = ParseProcStat(text);
  if (stat.ok()) Promise(stat->name.size() < text.size(), "the name is in the text");
}

void ReadEnviron(const std::string& text) {
  const EnvironmentRank found = FindRankInEnviron(text);
  Promise(found.coordinates.rank >= -1, "a rank is a number, or none");
  const absl::string_view value = FindInEnviron(text, "ROLLCALL_JOB");
  Promise(value.size() < text.size() || value.empty(), "a value is in the block");
}

void Run(Input input) {
  const auto kind = input.Take<uint8_t>();
  const std::string text(input.TakeRest());
  switch (kind % 3) {
    case 0:
      return ReadMaps(text);
    case 1:
      return ReadStat(text);
    default:
      return ReadEnviron(text);
  }
}

const Registered kTarget({"proc", 2048, &Run});

}  // namespace
}  // namespace fuzz
}  // namespace rollcall
