// SPDX-License-Identifier: Apache-2.0
#include "agent/python/objects.h"

#include <algorithm>

#include "agent/python/python_strings.h"

namespace rollcall {
namespace {

constexpr uint64_t kNoPage = ~uint64_t{0};
constexpr size_t kMaxHeaderBytes = 256;
constexpr size_t kMaxCodeObjectBytes = 512;
constexpr size_t kLongestCodeName = 512;
constexpr size_t kLongestCodeFile = 4096;
constexpr size_t kLongestLineTable = 1 << 20;

}  // namespace

PageCopies::PageCopies(ProcessMemory* memory)
    : memory_(memory), bytes_(new uint8_t[kSlots * kPageBytes]) {
  Clear();
}

void PageCopies::Clear() { numbers_.fill(kNoPage); }

const uint8_t* PageCopies::Page(uint64_t number) {
  const size_t slot = number % kSlots;
  uint8_t* bytes = &bytes_[slot * kPageBytes];
  if (numbers_[slot] == number) return bytes;
  numbers_[slot] = kNoPage;
  if (!memory_->Read(number * kPageBytes, bytes, kPageBytes)) return nullptr;
  numbers_[slot] = number;
  return bytes;
}

bool PageCopies::Read(uint64_t address, void* to, size_t size) {
  auto* out = static_cast<uint8_t*>(to);
  while (size > 0) {
    const uint8_t* page = Page(address / kPageBytes);
    if (page == nullptr) return false;
    const size_t at = address % kPageBytes;
    const size_t count = std::min(size, kPageBytes - at);
    std::memcpy(out, page + at, count);
    out += count;
    address += count;
    size -= count;
  }
  return true;
}

bool PythonObjects::HasType(const uint8_t* object, uint64_t type) const {
  return type == 0 || ReadField<uint64_t>(object, layout_.object_type) == type;
}

bool PythonObjects::ReadCode(uint64_t address, uint8_t* object, size_t size) {
  return Read(address, object, size) && HasType(object, interpreter_.code_type);
}

bool PythonObjects::ReadCodeNames(uint64_t address, PythonCode* code) {
  uint8_t object[kMaxCodeObjectBytes];
  if (!ReadCode(address, object, layout_.code_bytes)) return false;
  const uint32_t name = layout_.code_qualname != 0 ? layout_.code_qualname : layout_.code_name;
  if (!ReadString(ReadField<uint64_t>(object, name), kLongestCodeName, &code->name)) return false;
  ReadString(ReadField<uint64_t>(object, layout_.code_filename), kLongestCodeFile, &code->file);
  code->first_line = ReadField<int32_t>(object, layout_.code_first_line);
  if (layout_.code_instructions != 0) code->instructions = address + layout_.code_instructions;
  ReadBytes(ReadField<uint64_t>(object, layout_.code_lines), kLongestLineTable, &code->lines);
  return true;
}

bool PythonObjects::ReadString(uint64_t address, size_t most, std::string* text, bool* is_cut) {
  uint8_t object[kMaxHeaderBytes];
  if (!Read(address, object, layout_.string_state + sizeof(uint32_t))) return false;
  if (!HasType(object, interpreter_.string_type)) return false;
  const auto form = ParsePythonStringForm(ReadField<uint32_t>(object, layout_.string_state));
  if (!form.has_value()) return false;
  const auto length = ReadField<int64_t>(object, layout_.string_length);
  if (length < 0) return false;
  const size_t count = std::min(static_cast<size_t>(length), most);
  std::string bytes(count * form->bytes_per_character, '\0');
  const uint32_t data = form->ascii ? layout_.string_ascii_bytes : layout_.string_compact_bytes;
  if (!Read(address + data, bytes.data(), bytes.size())) return false;
  *text = PythonStringToUtf8(bytes, form->bytes_per_character);
  if (is_cut != nullptr) *is_cut = static_cast<size_t>(length) > most;
  return true;
}

bool PythonObjects::ReadBytes(uint64_t address, size_t most, std::string* bytes) {
  uint8_t object[kMaxHeaderBytes];
  if (!Read(address, object, layout_.bytes_data)) return false;
  if (!HasType(object, interpreter_.bytes_type)) return false;
  const auto size = ReadField<int64_t>(object, layout_.bytes_size);
  if (size < 0 || static_cast<size_t>(size) > most) return false;
  bytes->resize(static_cast<size_t>(size));
  return Read(address + layout_.bytes_data, bytes->data(), bytes->size());
}

}  // namespace rollcall
