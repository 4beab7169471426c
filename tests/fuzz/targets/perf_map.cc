// SPDX-License-Identifier: Apache-2.0
// Maps of just-in-time compilers. The first eight bytes of an input are the address to find.
#include "agent/symbols/jit_names.h"
#include "fuzz_target.h"

namespace rollcall {
namespace fuzz {
namespace {

void Run(Input input) {
  const auto address = input.Take<uint64_t>();
  const std::string text(input.TakeRest());
  const JitNames names = JitNames::Parse(text);
  const std::string name = names.Find(address);
  Promise(text.find(name) != std::string::npos, "a name is in the map");
  (void)names.Find(0);
  (void)names.Find(UINT64_MAX);
}

const Registered kTarget({"perf_map", 2048, &Run});

}  // namespace
}  // namespace fuzz
}  // namespace rollcall
