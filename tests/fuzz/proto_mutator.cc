// SPDX-License-Identifier: Apache-2.0
#include "proto_mutator.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "byte_mutator.h"

namespace rollcall {
namespace fuzz {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;
using Random = std::minstd_rand;

constexpr size_t kLongestText = 256;

int Below(int limit, Random* random) {
  return limit <= 1 ? 0 : static_cast<int>((*random)() % static_cast<unsigned>(limit));
}

bool OneIn(int n, Random* random) { return Below(n, random) == 0; }

// All messages within `message`, and itself.
void List(Message* message, std::vector<Message*>* all) {
  all->push_back(message);
  const Reflection& reflection = *message->GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection.ListFields(*message, &fields);
  for (const FieldDescriptor* field : fields) {
    if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) continue;
    if (!field->is_repeated()) {
      List(reflection.MutableMessage(message, field), all);
      continue;
    }
    for (int i = 0; i < reflection.FieldSize(*message, field); ++i) {
      List(reflection.MutableRepeatedMessage(message, field, i), all);
    }
  }
}

// The value of a field: number `index` of a repeated one, otherwise the only one.
struct Place {
  Message* message;
  const FieldDescriptor* field;
  int index;

  const Reflection& reflection() const { return *message->GetReflection(); }
  bool is_repeated() const { return field->is_repeated(); }
};

// Reads and writes values of one type, in single and repeated fields alike.
#define ROLLCALL_FUZZ_ACCESS(Type, Name)                                                    \
  Type Get##Name(const Place& at) {                                                         \
    const Reflection& reflection = at.reflection();                                         \
    return at.is_repeated() ? reflection.GetRepeated##Name(*at.message, at.field, at.index) \
                            : reflection.Get##Name(*at.message, at.field);                  \
  }                                                                                         \
  void Set##Name(const Place& at, Type value) {                                             \
    const Reflection& reflection = at.reflection();                                         \
    if (at.is_repeated()) {                                                                 \
      reflection.SetRepeated##Name(at.message, at.field, at.index, value);                  \
    } else {                                                                                \
      reflection.Set##Name(at.message, at.field, value);                                    \
    }                                                                                       \
  }
ROLLCALL_FUZZ_ACCESS(int32_t, Int32)
ROLLCALL_FUZZ_ACCESS(int64_t, Int64)
ROLLCALL_FUZZ_ACCESS(uint32_t, UInt32)
ROLLCALL_FUZZ_ACCESS(uint64_t, UInt64)
ROLLCALL_FUZZ_ACCESS(double, Double)
ROLLCALL_FUZZ_ACCESS(float, Float)
ROLLCALL_FUZZ_ACCESS(bool, Bool)
ROLLCALL_FUZZ_ACCESS(std::string, String)
ROLLCALL_FUZZ_ACCESS(int, EnumValue)
#undef ROLLCALL_FUZZ_ACCESS

Message* MutableMessageAt(const Place& at) {
  return at.is_repeated() ? at.reflection().MutableRepeatedMessage(at.message, at.field, at.index)
                          : at.reflection().MutableMessage(at.message, at.field);
}

// Changes a number a little, or replaces it.
template <typename Number>
Number ChangedNumber(Number number, Random* random) {
  if (OneIn(2, random)) return static_cast<Number>(UnusualNumber(random));
  const auto step = static_cast<uint64_t>(1 + Below(OneIn(2, random) ? 2 : 1'000'000, random));
  const auto before = static_cast<uint64_t>(number);
  return static_cast<Number>(OneIn(2, random) ? before + step : before - step);
}

double ChangedReal(double real, Random* random) {
  constexpr double kUnusual[] = {
      0,      -1,  1e-300, 1e300,           -1e300,           1e18,
      9.3e18, 4e9, 0.5,    __builtin_inf(), -__builtin_inf(), __builtin_nan("")};
  if (OneIn(3, random)) return real * (Below(300, random) - 100) / 10;
  return kUnusual[Below(static_cast<int>(std::size(kUnusual)), random)];
}

// Protobuf refuses a whole message for one text that is not UTF-8.
void MakeUtf8(std::string* text, Random* random) {
  constexpr const char* kNotAscii[] = {"\u00e9", "\u2028", "\ufeff", "\uffff", "\U0001f600"};
  for (char& byte : *text) byte = static_cast<char>(byte & 0x7f);
  if (OneIn(8, random)) *text += kNotAscii[Below(static_cast<int>(std::size(kNotAscii)), random)];
}

std::string ChangedText(const FieldDescriptor* field, std::string text, Random* random) {
  text.resize(std::min(text.size(), kLongestText));
  const size_t size = text.size();
  text.resize(kLongestText);
  text.resize(MutateBytes(reinterpret_cast<uint8_t*>(text.data()), size, kLongestText, random));
  if (field->type() == FieldDescriptor::TYPE_STRING) MakeUtf8(&text, random);
  return text;
}

int ChangedEnum(const FieldDescriptor* field, Random* random) {
  return OneIn(8, random) ? Below(1000, random) : Below(field->enum_type()->value_count(), random);
}

void ChangeValue(const Place& at, Random* random) {
  switch (at.field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return SetInt32(at, ChangedNumber(GetInt32(at), random));
    case FieldDescriptor::CPPTYPE_INT64:
      return SetInt64(at, ChangedNumber(GetInt64(at), random));
    case FieldDescriptor::CPPTYPE_UINT32:
      return SetUInt32(at, ChangedNumber(GetUInt32(at), random));
    case FieldDescriptor::CPPTYPE_UINT64:
      return SetUInt64(at, ChangedNumber(GetUInt64(at), random));
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return SetDouble(at, ChangedReal(GetDouble(at), random));
    case FieldDescriptor::CPPTYPE_FLOAT:
      return SetFloat(at, static_cast<float>(OneIn(2, random)));
    case FieldDescriptor::CPPTYPE_BOOL:
      return SetBool(at, !GetBool(at));
    case FieldDescriptor::CPPTYPE_ENUM:
      return SetEnumValue(at, ChangedEnum(at.field, random));
    case FieldDescriptor::CPPTYPE_STRING:
      return SetString(at, ChangedText(at.field, GetString(at), random));
    case FieldDescriptor::CPPTYPE_MESSAGE:
      MutableMessageAt(at);
      return;
  }
}

void CopyMessage(const Place& from, const Place& to) {
  // By way of a copy: one message may be within the other.
  const std::unique_ptr<Message> copy(MutableMessageAt(from)->New());
  copy->CopyFrom(*MutableMessageAt(from));
  MutableMessageAt(to)->CopyFrom(*copy);
}

void CopyValue(const Place& from, const Place& to) {
  switch (to.field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return SetInt32(to, GetInt32(from));
    case FieldDescriptor::CPPTYPE_INT64:
      return SetInt64(to, GetInt64(from));
    case FieldDescriptor::CPPTYPE_UINT32:
      return SetUInt32(to, GetUInt32(from));
    case FieldDescriptor::CPPTYPE_UINT64:
      return SetUInt64(to, GetUInt64(from));
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return SetDouble(to, GetDouble(from));
    case FieldDescriptor::CPPTYPE_FLOAT:
      return SetFloat(to, GetFloat(from));
    case FieldDescriptor::CPPTYPE_BOOL:
      return SetBool(to, GetBool(from));
    case FieldDescriptor::CPPTYPE_ENUM:
      return SetEnumValue(to, GetEnumValue(from));
    case FieldDescriptor::CPPTYPE_STRING:
      return SetString(to, GetString(from));
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return CopyMessage(from, to);
  }
}

// Adds a value with the default of its type.
Place AddValue(Message* message, const FieldDescriptor* field) {
  const Reflection& reflection = *message->GetReflection();
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      reflection.AddInt32(message, field, 0);
      break;
    case FieldDescriptor::CPPTYPE_INT64:
      reflection.AddInt64(message, field, 0);
      break;
    case FieldDescriptor::CPPTYPE_UINT32:
      reflection.AddUInt32(message, field, 0);
      break;
    case FieldDescriptor::CPPTYPE_UINT64:
      reflection.AddUInt64(message, field, 0);
      break;
    case FieldDescriptor::CPPTYPE_DOUBLE:
      reflection.AddDouble(message, field, 0);
      break;
    case FieldDescriptor::CPPTYPE_FLOAT:
      reflection.AddFloat(message, field, 0);
      break;
    case FieldDescriptor::CPPTYPE_BOOL:
      reflection.AddBool(message, field, false);
      break;
    case FieldDescriptor::CPPTYPE_ENUM:
      reflection.AddEnumValue(message, field, 0);
      break;
    case FieldDescriptor::CPPTYPE_STRING:
      reflection.AddString(message, field, "");
      break;
    case FieldDescriptor::CPPTYPE_MESSAGE:
      reflection.AddMessage(message, field);
      break;
  }
  return {message, field, reflection.FieldSize(*message, field) - 1};
}

// A value of the same field in any message; `at` itself if none is found.
Place OtherValue(const std::vector<Message*>& all, const Place& at, Random* random) {
  for (int tries = 0; tries < 8; ++tries) {
    Message* other = all[static_cast<size_t>(Below(static_cast<int>(all.size()), random))];
    if (other->GetDescriptor() != at.message->GetDescriptor()) continue;
    const Reflection& reflection = *other->GetReflection();
    if (!at.is_repeated()) {
      if (at.field->has_presence() && !reflection.HasField(*other, at.field)) continue;
      return {other, at.field, 0};
    }
    const int size = reflection.FieldSize(*other, at.field);
    if (size > 0) return {other, at.field, Below(size, random)};
  }
  return at;
}

void ChangeRepeated(const std::vector<Message*>& all, Message* message,
                    const FieldDescriptor* field, Random* random) {
  const Reflection& reflection = *message->GetReflection();
  const int size = reflection.FieldSize(*message, field);
  const int kind = size == 0 ? 0 : Below(5, random);
  if (kind == 1) {
    reflection.SwapElements(message, field, Below(size, random), size - 1);
    return reflection.RemoveLast(message, field);
  }
  if (kind == 2) {
    return reflection.SwapElements(message, field, Below(size, random), Below(size, random));
  }
  const Place place =
      kind == 0 ? AddValue(message, field) : Place{message, field, Below(size, random)};
  const Place other = OtherValue(all, place, random);
  const bool is_same = other.message == place.message && other.index == place.index;
  if (!is_same && OneIn(2, random)) return CopyValue(other, place);
  ChangeValue(place, random);
}

void ChangeSingle(const std::vector<Message*>& all, Message* message, const FieldDescriptor* field,
                  Random* random) {
  const Place place = {message, field, 0};
  if (OneIn(10, random)) return message->GetReflection()->ClearField(message, field);
  const Place other = OtherValue(all, place, random);
  if (other.message != message && OneIn(2, random)) return CopyValue(other, place);
  ChangeValue(place, random);
}

}  // namespace

void MutateMessage(Message* message, Random* random) {
  std::vector<Message*> all;
  List(message, &all);
  Message* chosen = all[static_cast<size_t>(Below(static_cast<int>(all.size()), random))];
  const Descriptor* type = chosen->GetDescriptor();
  if (type->field_count() == 0) return;
  const FieldDescriptor* field = type->field(Below(type->field_count(), random));
  if (field->is_repeated()) return ChangeRepeated(all, chosen, field, random);
  ChangeSingle(all, chosen, field, random);
}

}  // namespace fuzz
}  // namespace rollcall
