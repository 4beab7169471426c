// SPDX-License-Identifier: Apache-2.0
// What a message becomes in memory when it is parsed, counted without parsing it: an empty message
// takes two bytes on the wire and 300 in memory. So who sends a message of 60 MiB can ask for
// gigabytes.
#pragma once

#include <google/protobuf/descriptor.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream.h>

#include <cstdint>
#include <optional>
#include <vector>

namespace rollcall {

class ParsedSize {
 public:
  // Measures messages of this type, parsed into an arena.
  explicit ParsedSize(const google::protobuf::Descriptor* type);

  // Bytes, at least as many as the parsed message takes. nullopt if this is not such a message, or
  // its messages are nested too deeply. Reads the input to its end, and allocates nothing.
  std::optional<uint64_t> Of(google::protobuf::io::ZeroCopyInputStream* input) const;

 private:
  struct Field {
    enum Kind : uint8_t { kUnknown, kNumber, kText, kMessage };
    Kind kind = kUnknown;
    bool is_repeated = false;
    bool is_fixed = false;  // a number that takes as many bytes on the wire
    uint8_t width = 0;      // of a number in memory, in bytes
    uint32_t message = 0;   // its type's index in types_
  };
  struct Type {
    uint64_t bytes = 0;         // of an object without content
    std::vector<Field> fields;  // by number
  };
  using Input = google::protobuf::io::CodedInputStream;

  uint32_t Add(const google::protobuf::Descriptor* type);
  bool Count(Input* input, const Type& type, int depth, uint64_t* bytes) const;
  bool CountField(Input* input, const Type& type, uint32_t tag, int depth, uint64_t* bytes) const;
  bool CountDelimited(Input* input, const Field& field, int depth, uint64_t* bytes) const;

  std::vector<Type> types_;  // the first one is the message's
  std::vector<const google::protobuf::Descriptor*> added_;
};

}  // namespace rollcall
