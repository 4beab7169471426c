// SPDX-License-Identifier: Apache-2.0
// A dump of PyTorch's Flight Recorder, as pickle or JSON.
#include "cli/flight_recorder/dump.h"

#include <algorithm>

#include "fuzz_target.h"

namespace rollcall {
namespace fuzz {
namespace {

void Run(Input input) {
  const auto dump = ReadDump(std::string(input.TakeRest()));
  if (!dump.ok()) {
    Promise(!dump.status().message().empty(), "an error says why");
    return;
  }
  const auto by_record = [](const DumpedCall& a, const DumpedCall& b) {
    return a.record_id < b.record_id;
  };
  Promise(std::is_sorted(dump->calls.begin(), dump->calls.end(), by_record), "calls are in order");
  for (const auto& [name, group] : dump->groups) {
    Promise(std::is_sorted(group.ranks.begin(), group.ranks.end()), "ranks ascend");
    Promise(group.ranks.empty() || group.ranks.front() >= 0, "ranks are not negative");
  }
}

const Registered kTarget({"dump", 8192, &Run});

}  // namespace
}  // namespace fuzz
}  // namespace rollcall
