// SPDX-License-Identifier: Apache-2.0
#include "daemon/agents/parsed_size.h"

#include <google/protobuf/message.h>
#include <google/protobuf/wire_format_lite.h>

#include <algorithm>

namespace rollcall {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::internal::WireFormatLite;

constexpr int kMostDepth = 32;  // the messages of Rollcall need ten
// An array has room for up to twice its elements, and when it grows in an arena it leaves its
// former halves behind: as much again.
constexpr uint64_t kGrowth = 4;
constexpr uint64_t kPointer = 8 * kGrowth;
// What is left over at the end of an arena's blocks, as a part of the objects.
constexpr uint64_t kLeftOver = 8;
// The object and the arena's note to end it, and what is left over.
constexpr uint64_t kString = (32 + 16) * (kLeftOver + 1) / kLeftOver;
constexpr uint64_t kUnknownField = 128;

uint8_t WidthOf(const FieldDescriptor* field) {
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT64:
    case FieldDescriptor::CPPTYPE_UINT64:
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return 8;
    default:
      return 4;
  }
}

bool IsFixed(const FieldDescriptor* field) {
  switch (field->type()) {
    case FieldDescriptor::TYPE_FIXED32:
    case FieldDescriptor::TYPE_FIXED64:
    case FieldDescriptor::TYPE_SFIXED32:
    case FieldDescriptor::TYPE_SFIXED64:
    case FieldDescriptor::TYPE_FLOAT:
    case FieldDescriptor::TYPE_DOUBLE:
      return true;
    default:
      return false;
  }
}

// Returns the bytes of a text outside of its object: the allocator takes more than its length.
uint64_t BytesOfText(uint64_t length) {
  constexpr uint64_t kInsideTheObject = 15, kOfAllocator = 32;
  return length <= kInsideTheObject ? 0 : length + kOfAllocator;
}

// How a number comes that is not packed.
WireFormatLite::WireType FormOf(bool is_fixed, uint8_t width) {
  if (!is_fixed) return WireFormatLite::WIRETYPE_VARINT;
  return width == 8 ? WireFormatLite::WIRETYPE_FIXED64 : WireFormatLite::WIRETYPE_FIXED32;
}

// Counts the varints of a packed field: each one ends with a byte below 128.
bool CountPacked(google::protobuf::io::CodedInputStream* input, uint32_t length, uint64_t* count) {
  while (length > 0) {
    const void* data = nullptr;
    int size = 0;
    if (!input->GetDirectBufferPointer(&data, &size) || size <= 0) return false;
    const auto part = std::min(static_cast<uint32_t>(size), length);
    const auto* bytes = static_cast<const uint8_t*>(data);
    *count += static_cast<uint64_t>(
        std::count_if(bytes, bytes + part, [](uint8_t byte) { return byte < 128; }));
    if (!input->Skip(static_cast<int>(part))) return false;
    length -= part;
  }
  return true;
}

}  // namespace

ParsedSize::ParsedSize(const Descriptor* type) { Add(type); }

uint32_t ParsedSize::Add(const Descriptor* type) {
  const auto known = std::find(added_.begin(), added_.end(), type);
  if (known != added_.end()) return static_cast<uint32_t>(known - added_.begin());
  const auto index = static_cast<uint32_t>(added_.size());
  added_.push_back(type);
  types_.emplace_back();
  const google::protobuf::Message* const empty =
      google::protobuf::MessageFactory::generated_factory()->GetPrototype(type);
  types_[index].bytes = empty->SpaceUsedLong();
  for (int i = 0; i < type->field_count(); ++i) {
    const FieldDescriptor* const field = type->field(i);
    Field out;
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      out.kind = Field::kMessage;
      out.message = Add(field->message_type());
    } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_STRING) {
      out.kind = Field::kText;
    } else {
      out.kind = Field::kNumber;
      out.width = WidthOf(field);
      out.is_fixed = IsFixed(field);
    }
    out.is_repeated = field->is_repeated();
    const auto number = static_cast<size_t>(field->number());
    std::vector<Field>& fields = types_[index].fields;
    if (fields.size() <= number) fields.resize(number + 1);
    fields[number] = out;
  }
  return index;
}

std::optional<uint64_t> ParsedSize::Of(google::protobuf::io::ZeroCopyInputStream* stream) const {
  Input input(stream);
  uint64_t bytes = types_[0].bytes;
  if (!Count(&input, types_[0], 0, &bytes)) return std::nullopt;
  return bytes;
}

bool ParsedSize::Count(Input* input, const Type& type, int depth, uint64_t* bytes) const {
  if (depth > kMostDepth) return false;
  while (const uint32_t tag = input->ReadTag()) {
    if (!CountField(input, type, tag, depth, bytes)) return false;
  }
  return input->ConsumedEntireMessage();
}

bool ParsedSize::CountField(Input* input, const Type& type, uint32_t tag, int depth,
                            uint64_t* bytes) const {
  const auto number = static_cast<size_t>(WireFormatLite::GetTagFieldNumber(tag));
  const Field field = number < type.fields.size() ? type.fields[number] : Field();
  const auto wire_type = WireFormatLite::GetTagWireType(tag);
  uint64_t value = 0;
  switch (wire_type) {
    case WireFormatLite::WIRETYPE_LENGTH_DELIMITED:
      return CountDelimited(input, field, depth, bytes);
    case WireFormatLite::WIRETYPE_VARINT:
      if (!input->ReadVarint64(&value)) return false;
      break;
    case WireFormatLite::WIRETYPE_FIXED64:
      if (!input->Skip(8)) return false;
      break;
    case WireFormatLite::WIRETYPE_FIXED32:
      if (!input->Skip(4)) return false;
      break;
    default:
      return false;  // groups: no message of ours has one
  }
  // The parser keeps a number of another form as an unknown field.
  if (field.kind != Field::kNumber || wire_type != FormOf(field.is_fixed, field.width)) {
    *bytes += kUnknownField;
  } else if (field.is_repeated) {
    *bytes += field.width * kGrowth;
  }  // else it is in the object already
  return true;
}

bool ParsedSize::CountDelimited(Input* input, const Field& field, int depth,
                                uint64_t* bytes) const {
  uint32_t length = 0;
  if (!input->ReadVarint32(&length) || length > INT32_MAX) return false;
  // The parser keeps a number that comes as bytes as an unknown field.
  const bool is_packed = field.kind == Field::kNumber && field.is_repeated;
  switch (field.kind == Field::kNumber && !is_packed ? Field::kUnknown : field.kind) {
    case Field::kMessage: {
      const Type& type = types_[field.message];
      *bytes += type.bytes + type.bytes / kLeftOver + kPointer;
      const auto limit = input->PushLimit(static_cast<int>(length));
      if (input->BytesUntilLimit() != static_cast<int>(length) ||
          !Count(input, type, depth + 1, bytes)) {
        return false;
      }
      input->PopLimit(limit);
      return true;
    }
    case Field::kNumber: {
      uint64_t count = length / field.width;
      if (field.is_fixed) {
        if (!input->Skip(static_cast<int>(length))) return false;
      } else if (count = 0; !CountPacked(input, length, &count)) {
        return false;
      }
      *bytes += count * field.width * kGrowth;
      return true;
    }
    case Field::kText:
      *bytes += kString + kPointer + BytesOfText(length);
      break;
    case Field::kUnknown:
      *bytes += kUnknownField + kString + BytesOfText(length);
      break;
  }
  return input->Skip(static_cast<int>(length));
}

}  // namespace rollcall
