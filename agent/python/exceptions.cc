// SPDX-License-Identifier: Apache-2.0
#include "agent/python/exceptions.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "interpose/python/python_files.h"
#include "interpose/python/python_lines.h"
#include "security/whole_words.h"

namespace rollcall {
namespace {

constexpr int kMostItems = 64;      // of exceptions being handled, one inside of another
constexpr int kMostEntries = 1024;  // of a traceback
constexpr int kMostCodes = 64;      // of these, of which the code is read
constexpr uint64_t kMostArguments = 6;
constexpr size_t kLongestTypeName = 96;
constexpr size_t kLongestExceptionText = 240;
// What a control character becomes, such as the end of a line.
constexpr const char kReplaced[] = "\xef\xbf\xbd";

// Measured with offsetof(). The same in 3.8 to 3.14, except where a comment gives versions.
constexpr uint32_t kTypeName = 24;
constexpr uint32_t kTypeFlags = 168;
constexpr uint32_t kExceptionArguments = 24;
constexpr uint32_t kTupleSize = 16;
constexpr uint32_t kIntegerTag = 16;  // up to 3.11: the number of digits, below 0 if the number is
constexpr uint32_t kIntegerDigits = 24;
constexpr int kDigitBits = 30;
constexpr uint32_t kTracebackNext = 16;
constexpr uint32_t kTracebackFrame = 24;
constexpr uint32_t kTracebackInstruction = 32;
constexpr uint32_t kTracebackLine = 36;  // -1 if the instruction contains it
constexpr uint32_t kFrameOfObject = 24;  // from 3.11 on: the frame within a frame object

constexpr uint64_t kIsInteger = 1 << 24;
constexpr uint64_t kIsTuple = 1 << 26;
constexpr uint64_t kIsString = 1 << 28;
constexpr uint64_t kIsException = 1 << 30;

std::string FirstLine(const std::string& text) {
  const std::string line_end = kReplaced;
  size_t begin = 0;
  while (text.compare(begin, line_end.size(), line_end) == 0) begin += line_end.size();
  return text.substr(begin, text.find(line_end, begin) - begin);
}

}  // namespace

uint64_t PythonExceptions::ReadReference(uint64_t address) {
  uint64_t value = 0;
  return objects_->ReadPointer(address, &value) ? value & kReferenceMask : 0;
}

// Returns 0 if it is not an object.
uint64_t PythonExceptions::ReadTypeFlags(uint64_t object) {
  uint64_t flags = 0;
  const uint64_t type = object == 0 ? 0 : ReadReference(object + layout_.object_type);
  return type != 0 && objects_->ReadPointer(type + kTypeFlags, &flags) ? flags : 0;
}

// An item is of a generator or coroutine, or of the thread. It may be empty, or hold None.
uint64_t PythonExceptions::FindHandled(uint64_t state) {
  if (layout_.thread_handled == 0) return 0;
  uint64_t item = ReadReference(state + layout_.thread_handled);
  for (int i = 0; i < kMostItems && item != 0; ++i) {
    const uint64_t exception = ReadReference(item + layout_.handled_value);
    if ((ReadTypeFlags(exception) & kIsException) != 0) return exception;
    item = ReadReference(item + layout_.handled_previous);
  }
  return 0;
}

std::string PythonExceptions::ReadTypeName(uint64_t type) {
  char name[kLongestTypeName + 1] = {};
  uint64_t address = 0;  // of text, which may begin anywhere
  if (!objects_->ReadPointer(type + kTypeName, &address)) return "";
  for (size_t i = 0; i < kLongestTypeName; ++i) {
    if (!objects_->Read(address + i, &name[i], 1) || name[i] == '\0') break;
    if (static_cast<unsigned char>(name[i]) < 0x20 || name[i] == 0x7f) name[i] = '?';
  }
  return name;
}

std::string PythonExceptions::ReadInteger(uint64_t object) {
  int64_t tag = 0;
  uint32_t digits[2] = {};
  if (!objects_->Read(object + kIntegerTag, &tag, sizeof(tag)) ||
      !objects_->Read(object + kIntegerDigits, digits, sizeof(digits))) {
    return "";
  }
  const bool is_tagged = layout_.minor >= 12;
  const bool is_negative = is_tagged ? (tag & 3) == 2 : tag < 0;
  const int64_t count = is_tagged ? tag >> 3 : (tag < 0 ? -tag : tag);
  if (count < 0 || count > 2) return "";
  int64_t value = count > 0 ? digits[0] : 0;
  if (count > 1) value += int64_t{digits[1]} << kDigitBits;
  return absl::StrCat(is_negative ? -value : value);
}

// Returns an empty text if it has another type.
std::string PythonExceptions::ReadArgument(uint64_t object, bool quotes) {
  const uint64_t flags = ReadTypeFlags(object);
  if ((flags & kIsInteger) != 0) return ReadInteger(object);
  std::string text;
  bool is_cut = false;
  if ((flags & kIsString) == 0 ||
      !objects_->ReadString(object, kLongestExceptionText, &text, &is_cut)) {
    return "";
  }
  text = FirstLine(is_cut ? WithoutCutEnd(std::move(text), 0) : text);
  return quotes ? absl::StrCat("'", text, "'") : text;
}

// As Python prints them: one alone as it is, several as a tuple.
std::string PythonExceptions::ReadArguments(uint64_t exception, bool quotes_one) {
  const uint64_t tuple = ReadReference(exception + kExceptionArguments);
  uint64_t size = 0;
  if ((ReadTypeFlags(tuple) & kIsTuple) == 0 || !objects_->ReadPointer(tuple + kTupleSize, &size)) {
    return "";
  }
  std::vector<std::string> parts;
  for (uint64_t i = 0; i < std::min(size, kMostArguments); ++i) {
    const uint64_t object = ReadReference(tuple + layout_.tuple_items + i * sizeof(uint64_t));
    std::string part = ReadArgument(object, size > 1 || quotes_one);
    if (!part.empty()) parts.push_back(std::move(part));
  }
  return absl::StrJoin(parts, ", ");
}

bool PythonExceptions::ReadCodeOfFrame(uint64_t frame, PythonCode* code) {
  uint64_t inner = frame;
  if (layout_.frames != PythonFrames::kObjects) inner = ReadReference(frame + kFrameOfObject);
  if (inner == 0) return false;
  return objects_->ReadCodeNames(ReadReference(inner + layout_.frame_code), code);
}

int PythonExceptions::ReadLine(uint64_t entry, const PythonCode& code) {
  int32_t line = 0, instruction = 0;
  if (!objects_->Read(entry + kTracebackLine, &line, sizeof(line))) return 0;
  if (line > 0) return line;
  if (!objects_->Read(entry + kTracebackInstruction, &instruction, sizeof(instruction))) return 0;
  return PythonLine(layout_.lines, reinterpret_cast<const uint8_t*>(code.lines.data()),
                    code.lines.size(), code.first_line, instruction);
}

// A traceback begins at the outermost frame, the handler's own.
std::vector<uint64_t> PythonExceptions::ListEntries(uint64_t traceback) {
  std::vector<uint64_t> entries;
  for (int i = 0; i < kMostEntries && traceback != 0; ++i) {
    entries.push_back(traceback);
    traceback = ReadReference(traceback + kTracebackNext);
  }
  return entries;
}

// Finds the innermost line of the program. From the inside outwards, so that few code objects are
// read.
void PythonExceptions::FindRaisingLine(uint64_t traceback, PythonException* found) {
  const std::vector<uint64_t> entries = ListEntries(traceback);
  int left = kMostCodes;
  for (auto entry = entries.rbegin(); entry != entries.rend() && left > 0; ++entry, --left) {
    PythonCode code;
    const uint64_t frame = ReadReference(*entry + kTracebackFrame);
    if (frame == 0 || !ReadCodeOfFrame(frame, &code) || code.file.empty()) continue;
    if (IsPythonLibraryFile(code.file.c_str())) continue;
    found->line = ReadLine(*entry, code);
    found->file = std::move(code.file);
    found->function = std::move(code.name);
    return;
  }
}

PythonException PythonExceptions::ReadHandled(uint64_t state) {
  PythonException found;
  const uint64_t exception = state == 0 ? 0 : FindHandled(state);
  if (exception == 0) return found;
  found.type = ReadTypeName(ReadReference(exception + layout_.object_type));
  if (found.type.empty()) return found;
  found.text = ReadArguments(exception, found.type == "KeyError");
  FindRaisingLine(ReadReference(exception + layout_.exception_traceback), &found);
  return found;
}

}  // namespace rollcall
