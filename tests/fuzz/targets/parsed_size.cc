// SPDX-License-Identifier: Apache-2.0
// What an agent's message becomes when it is parsed, counted before. The input is an AgentMessage.
#include "daemon/agents/parsed_size.h"

#include <google/protobuf/arena.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <algorithm>
#include <optional>
#include <string_view>

#include "fuzz_target.h"
#include "proto_mutator.h"
#include "rollcall/v1/agent.pb.h"

namespace rollcall {
namespace fuzz {
namespace {

std::optional<uint64_t> Count(std::string_view bytes, int block) {
  static const auto* const kSizes = new ParsedSize(v1::AgentMessage::descriptor());
  google::protobuf::io::ArrayInputStream input(bytes.data(), static_cast<int>(bytes.size()), block);
  return kSizes->Of(&input);
}

void Run(Input input) {
  const std::string_view bytes = input.TakeRest();
  const std::optional<uint64_t> counted = Count(bytes, -1);
  Promise(Count(bytes, 7) == counted, "the pieces do not matter");
  if (!counted.has_value()) return;
  google::protobuf::Arena arena;
  auto* const message = google::protobuf::Arena::CreateMessage<v1::AgentMessage>(&arena);
  if (!message->ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return;
  // The first block of an arena is larger than a small message.
  const uint64_t taken = std::max<uint64_t>(arena.SpaceUsed(), message->SpaceUsedLong());
  Promise(taken <= *counted + 4096, "a message takes no more than was counted");
}

const Registered kTarget({"parsed_size", 8192, &Run, &MutateAs<v1::AgentMessage>});

}  // namespace
}  // namespace fuzz
}  // namespace rollcall
