// SPDX-License-Identifier: Apache-2.0
#include "agent/python/thread_objects.h"

#include <algorithm>
#include <utility>

#include "security/whole_words.h"

namespace rollcall {
namespace {

constexpr size_t kLongestThreadName = 128;
constexpr uint64_t kMaxKeys = 64;  // read per table: Thread sets _name among its first dozen keys
constexpr size_t kMaxKnownKeys = 256;
constexpr const char* kNameAttribute = "_name";
constexpr const char* kDaemonAttribute = "_daemonic";
constexpr uint32_t kBoolDigit = 24;  // of True and False, which are integers

// Measured with offsetof(). The same in 3.8 to 3.14, except where a comment gives versions.
constexpr uint32_t kTypeBasicSize = 32;
constexpr uint32_t kTypeDictOffset = 288;
constexpr uint32_t kDictKeys = 32;
constexpr uint32_t kDictValues = 40;
constexpr uint32_t kWordBytes = 8;

// PyDictKeysObject up to 3.10.
constexpr uint32_t kOldKeysSize = 8;
constexpr uint32_t kOldKeysCount = 32;
constexpr uint32_t kOldKeysIndices = 40;
// Python has this from 3.11 on.
constexpr uint32_t kKeysLogIndexBytes = 9;
constexpr uint32_t kKeysKind = 10;
constexpr uint32_t kKeysCount = 24;
constexpr uint32_t kKeysIndices = 32;

// An entry has hash, key, value; from 3.11 on only key and value if all keys are strings.
constexpr uint32_t kEntryBytes = 24;
constexpr uint32_t kStringEntryBytes = 16;

// From 3.13 on PyDictValues begins with four bytes of counters.
constexpr uint32_t ValuesHead(int minor) { return minor >= 13 ? 8 : 0; }

uint32_t OldIndexBytes(uint64_t size) {
  if (size <= 0xff) return 1;
  return size <= 0xffff ? 2 : 4;
}

}  // namespace

std::string PythonThreadObjects::ReadName(uint64_t thread) {
  std::string name;
  const uint64_t string = FindAttribute(thread, kNameAttribute);
  bool is_cut = false;
  if (string != 0) objects_->ReadString(string, kLongestThreadName, &name, &is_cut);
  return is_cut ? WithoutCutEnd(std::move(name), 0) : name;
}

bool PythonThreadObjects::KeepsProcess(uint64_t thread) {
  const uint64_t value = FindAttribute(thread, kDaemonAttribute);
  uint32_t digit = 1;
  return value != 0 && objects_->Read(value + kBoolDigit, &digit, sizeof(digit)) && digit == 0;
}

uint64_t PythonThreadObjects::ReadReference(uint64_t address) {
  uint64_t value = 0;
  return objects_->ReadPointer(address, &value) ? value & kReferenceMask : 0;
}

// Returns the address of the attribute's value, an object; 0 if not found.
uint64_t PythonThreadObjects::FindAttribute(uint64_t thread, const char* name) {
  if (layout_.attributes != PythonAttributes::kDict && layout_.type_cached_keys == 0) return 0;
  const uint64_t type = ReadReference(thread + layout_.object_type);
  if (type == 0) return 0;
  uint64_t pointer = 0;
  switch (layout_.attributes) {
    case PythonAttributes::kDict: {
      int64_t offset = 0;
      if (!objects_->Read(type + kTypeDictOffset, &offset, sizeof(offset)) || offset <= 0) return 0;
      return FindInDict(ReadReference(thread + static_cast<uint64_t>(offset)), name);
    }
    case PythonAttributes::kValuesBefore:
      if (!objects_->ReadPointer(thread - 4 * kWordBytes, &pointer)) return 0;
      if (pointer != 0) return FindInValues(type, pointer, name);
      return FindInDict(ReadReference(thread - 3 * kWordBytes), name);
    case PythonAttributes::kTaggedBefore:
      if (!objects_->ReadPointer(thread - 3 * kWordBytes, &pointer)) return 0;
      if ((pointer & 1) != 0) return FindInValues(type, pointer + 1, name);
      return FindInDict(pointer, name);
    case PythonAttributes::kInline:
      if (!objects_->ReadPointer(thread - 3 * kWordBytes, &pointer)) return 0;
      if (pointer != 0) return FindInDict(pointer, name);
      int64_t size = 0;
      if (!objects_->Read(type + kTypeBasicSize, &size, sizeof(size)) || size <= 0) return 0;
      return FindInValues(type, thread + static_cast<uint64_t>(size), name);
  }
  return 0;
}

uint64_t PythonThreadObjects::FindInValues(uint64_t type, uint64_t values, const char* name) {
  const KeySlot* slot = FindKey(ReadReference(type + layout_.type_cached_keys), name);
  if (slot == nullptr) return 0;
  return ReadReference(values + ValuesHead(layout_.minor) + slot->index * kWordBytes);
}

uint64_t PythonThreadObjects::FindInDict(uint64_t dict, const char* name) {
  if (dict == 0) return 0;
  const KeySlot* slot = FindKey(ReadReference(dict + kDictKeys), name);
  if (slot == nullptr) return 0;
  const uint64_t values = ReadReference(dict + kDictValues);
  if (values == 0) return ReadReference(slot->value_address);
  return ReadReference(values + ValuesHead(layout_.minor) + slot->index * kWordBytes);
}

const PythonThreadObjects::KeySlot* PythonThreadObjects::FindKey(uint64_t keys_address,
                                                                 const std::string& name) {
  const auto known = key_slots_.find({keys_address, name});
  if (known != key_slots_.end()) return &known->second;
  Keys keys;
  if (!ReadKeys(keys_address, &keys)) return nullptr;
  for (uint64_t i = 0; i < keys.count; ++i) {
    const uint64_t entry = keys.entries + i * keys.entry_bytes;
    std::string text;
    const uint64_t key = ReadReference(entry + keys.key);
    if (key == 0 || !objects_->ReadString(key, kLongestThreadName, &text) || text != name) continue;
    if (key_slots_.size() >= kMaxKnownKeys) key_slots_.clear();
    return &(key_slots_[{keys_address, name}] = {i, entry + keys.key + kWordBytes});
  }
  return nullptr;
}

bool PythonThreadObjects::ReadKeys(uint64_t address, Keys* keys) {
  uint8_t head[kOldKeysIndices];
  if (address == 0 || !objects_->Read(address, head, sizeof(head))) return false;
  keys->entry_bytes = kEntryBytes;
  keys->key = kWordBytes;
  if (layout_.attributes == PythonAttributes::kDict) {
    const auto size = ReadField<uint64_t>(head, kOldKeysSize);
    keys->count = ReadField<uint64_t>(head, kOldKeysCount);
    keys->entries = address + kOldKeysIndices + size * OldIndexBytes(size);
  } else {
    if (head[kKeysLogIndexBytes] > 32) return false;
    keys->count = ReadField<uint64_t>(head, kKeysCount);
    keys->entries = address + kKeysIndices + (uint64_t{1} << head[kKeysLogIndexBytes]);
    if (head[kKeysKind] != 0) {
      keys->entry_bytes = kStringEntryBytes;
      keys->key = 0;
    }
  }
  keys->count = std::min(keys->count, kMaxKeys);
  return true;
}

}  // namespace rollcall
