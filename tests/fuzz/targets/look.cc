// SPDX-License-Identifier: Apache-2.0
// What another host sends to `rollcall diagnose`: found in its output, parsed, and judged.
#include "base/clean_text.h"
#include "cli/remote/look_frame.h"
#include "cli/remote/look_stream.h"
#include "daemon/looks/judge.h"
#include "fuzz_target.h"
#include "proto_mutator.h"

namespace rollcall {
namespace fuzz {
namespace {

constexpr uint64_t kMostMemory = 64 << 20;
constexpr char kToken[] = "ab";

void Run(Input input) {
  const std::string bytes(input.TakeRest());
  ByteBudget budget(kMostMemory);
  LookStream raw(kToken, &budget);
  raw.Add(bytes);
  LookStream stream(kToken, &budget);
  stream.Add(LookHead(kToken) + std::to_string(bytes.size()) + "\n");
  stream.Add(bytes);
  Promise(stream.state() == LookStream::State::kDone && stream.look() == bytes,
          "a look arrives as it was");
  const auto look = ParseLook(bytes, &budget);
  if (!look.ok()) return;
  Promise(IsCleanText(look->host()), "texts are clean");
  for (const LookedAtJob& job : JudgeLooks({*look, *look})) {
    for (const v1::Verdict& verdict : job.incident.verdicts())
      Promise(verdict.certainty() != "certain", "a look makes nothing certain");
  }
}

const Registered kTarget({"look", 8192, &Run, &MutateAs<v1::HostLook>});

}  // namespace
}  // namespace fuzz
}  // namespace rollcall
