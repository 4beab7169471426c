// SPDX-License-Identifier: Apache-2.0
// Changes messages of Protobuf by their fields, so that the result is a message again. Debian has
// no libprotobuf-mutator; this is the part of it that the targets need.
#pragma once

#include <google/protobuf/message.h>

#include <cstddef>
#include <cstdint>
#include <random>

namespace rollcall {
namespace fuzz {

// Makes one change: sets, clears, adds, removes, repeats or swaps a value of a field somewhere in
// the message. Values often come from an equal field elsewhere in the message, because ids and
// indices have a meaning only if they are equal.
void MutateMessage(google::protobuf::Message* message, std::minstd_rand* random);

// A Target::mutate for serialized messages of this type. Starts from an empty message where the
// bytes do not parse, and changes nothing where the result would be too long.
template <typename Message>
size_t MutateAs(uint8_t* data, size_t size, size_t most, unsigned seed) {
  std::minstd_rand random(seed);
  Message message;
  if (!message.ParseFromArray(data, static_cast<int>(size))) message.Clear();
  const auto changes = 1 + random() % 4;
  for (unsigned i = 0; i < changes; ++i) MutateMessage(&message, &random);
  const size_t new_size = message.ByteSizeLong();
  if (new_size > most) return size;
  message.SerializeToArray(data, static_cast<int>(new_size));
  return new_size;
}

}  // namespace fuzz
}  // namespace rollcall
