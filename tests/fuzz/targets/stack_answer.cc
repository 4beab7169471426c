// SPDX-License-Identifier: Apache-2.0
// What the child that names stacks answers to the agent. The child reads files of strangers.
#include <string>
#include <vector>

#include "agent/link/stacks_proto.h"
#include "agent/stacks/stack_work.h"
#include "fuzz_target.h"

namespace rollcall {
namespace fuzz {
namespace {

void Run(Input input) {
  const std::string bytes(input.TakeRest());
  ProcessStack stack;
  if (FromBytes(bytes, &stack)) {
    (void)ToProto(stack);
    ProcessStack again;
    const std::string written = ToBytes(stack);
    Promise(FromBytes(written, &again), "what was read can be written and read");
    Promise(ToBytes(again) == written, "and is the same then");
  }
  std::vector<uint64_t> distances;
  (void)FromBytes(bytes, &distances);
  Promise(distances.size() <= bytes.size() / sizeof(uint64_t), "no room for what is not there");
}

const Registered kTarget({"stack_answer", 4096, &Run});

}  // namespace
}  // namespace fuzz
}  // namespace rollcall
