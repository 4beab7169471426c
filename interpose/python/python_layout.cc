// SPDX-License-Identifier: Apache-2.0
#include "interpose/python/python_layout.h"

#include <cstring>

namespace rollcall {
namespace {

// In 3.12 to 3.14, in builds with a GIL.
constexpr uint32_t kCachedKeys312 = 880;
// From 3.11 on, where an item of the exceptions being handled has no type of its own.
constexpr uint32_t kHandledValue311 = 0;
constexpr uint32_t kHandledPrevious311 = 8;
constexpr uint32_t kTraceback311 = 40;
// The exceptions being handled lie this far before a thread's id, in 3.8 to 3.14. Nothing publishes
// it.
constexpr uint32_t kHandledBeforeId = 32;

// Measured with offsetof() on the headers of 3.8.18, 3.9.18, 3.10.13, 3.11.7 and 3.12.1.
constexpr PythonLayout Python38() {
  PythonLayout layout;
  layout.minor = 8;
  layout.lines = PythonLines::kLnotab;
  layout.frames = PythonFrames::kObjects;
  layout.attributes = PythonAttributes::kDict;
  layout.runtime_interpreters = 32;
  layout.runtime_gil_locked = 1168;
  layout.runtime_gil_holder = 1160;
  layout.interpreter_next = 0;
  layout.interpreter_threads = 8;
  layout.thread_next = 8;
  layout.thread_id = 176;
  layout.thread_frame = 24;
  layout.thread_handled = 144;
  layout.handled_value = 8;
  layout.handled_previous = 24;
  layout.exception_traceback = 32;
  layout.frame_bytes = 120;
  layout.frame_previous = 24;
  layout.frame_code = 32;
  layout.frame_instruction = 104;
  layout.frame_first_local = 360;
  layout.code_bytes = 128;
  layout.code_filename = 104;
  layout.code_name = 112;
  layout.code_first_line = 40;
  layout.code_lines = 120;
  layout.string_ascii_bytes = 48;
  layout.string_compact_bytes = 72;
  return layout;
}

constexpr PythonLayout Python39() {
  PythonLayout layout = Python38();
  layout.minor = 9;
  layout.runtime_gil_locked = 368;
  layout.runtime_gil_holder = 360;
  return layout;
}

constexpr PythonLayout Python310() {
  PythonLayout layout = Python39();
  layout.minor = 10;
  layout.lines = PythonLines::kRanges;
  layout.frame_instruction = 96;
  layout.frame_first_local = 352;
  return layout;
}

constexpr PythonLayout Python311() {
  PythonLayout layout;
  layout.minor = 11;
  layout.frames = PythonFrames::kEntryFlag;
  layout.attributes = PythonAttributes::kValuesBefore;
  layout.runtime_interpreters = 40;
  layout.runtime_gil_locked = 376;
  layout.runtime_gil_holder = 368;
  layout.interpreter_next = 0;
  layout.interpreter_threads = 16;
  layout.thread_next = 8;
  layout.thread_id = 152;
  layout.thread_native_id = 160;
  layout.thread_frame = 56;
  layout.thread_handled = 120;
  layout.handled_value = kHandledValue311;
  layout.handled_previous = kHandledPrevious311;
  layout.exception_traceback = kTraceback311;
  layout.frame_indirect = true;
  layout.cframe_frame = 8;
  layout.frame_bytes = 72;
  layout.frame_previous = 48;
  layout.frame_code = 32;
  layout.frame_instruction = 56;
  layout.frame_is_entry = 68;
  layout.frame_first_local = 72;
  layout.code_bytes = 192;
  layout.code_filename = 112;
  layout.code_name = 120;
  layout.code_qualname = 128;
  layout.code_first_line = 72;
  layout.code_lines = 136;
  layout.code_instructions = 184;
  layout.type_cached_keys = 872;
  layout.string_ascii_bytes = 48;
  layout.string_compact_bytes = 72;
  return layout;
}

constexpr PythonLayout Python312() {
  PythonLayout layout = Python311();
  layout.minor = 12;
  layout.frames = PythonFrames::kEntryFrames;
  layout.attributes = PythonAttributes::kTaggedBefore;
  layout.runtime_gil_locked = 0;
  layout.runtime_gil_holder = 0;
  layout.interpreter_threads = 72;
  layout.interpreter_gil = 384;
  layout.gil_locked = 16;
  layout.gil_holder = 8;
  layout.thread_id = 136;
  layout.thread_native_id = 144;
  layout.thread_handled = 104;
  layout.cframe_frame = 0;
  layout.frame_previous = 8;
  layout.frame_code = 0;
  layout.frame_is_entry = 0;
  layout.frame_owner = 70;
  layout.code_first_line = 68;
  layout.code_instructions = 192;
  layout.type_cached_keys = kCachedKeys312;
  layout.string_ascii_bytes = 40;
  layout.string_compact_bytes = 56;
  return layout;
}

constexpr PythonLayout kLayouts[] = {Python38(), Python39(), Python310(), Python311(), Python312()};

// The index of each field in _Py_DebugOffsets, from Include/internal/pycore_runtime.h (3.13) and
// pycore_debug_offsets.h (3.14). Words 0 to 2 are cookie, version, free-threaded.
struct OffsetWords {
  int runtime_interpreters;
  int interpreter_next, interpreter_threads, interpreter_gil;
  int own_gil, own_gil_locked, own_gil_holder;  // offsets in the interpreter
  int thread_next, thread_frame, thread_id, thread_native_id;
  int frame_size, frame_previous, frame_code, frame_instruction, frame_first_local, frame_owner;
  int code_filename, code_name, code_qualname, code_lines, code_first_line, code_instructions;
  int object_type;
  int tuple_items;
  int bytes_size, bytes_data;
  int string_state, string_length, string_ascii_bytes;
};

constexpr OffsetWords kWords313 = {5,  8,  9,  14, 15, 17, 18, 21, 23, 24, 25, 28, 29, 30, 31,
                                   32, 33, 35, 36, 37, 38, 39, 43, 45, 51, 65, 66, 68, 69, 70};
constexpr OffsetWords kWords314 = {5,  8,  9,  15, 16, 18, 19, 24, 26, 27, 28, 31, 32, 33, 34,
                                   35, 36, 40, 41, 42, 43, 44, 48, 51, 57, 75, 76, 78, 79, 80};

constexpr uint32_t kVersion313 = 0x030d;
constexpr uint32_t kVersion314 = 0x030e;
// sizeof(PyCompactUnicodeObject) - sizeof(PyASCIIObject), from 3.12 on.
constexpr uint32_t kCompactExtra = 16;
// Free-threaded builds have more fields before an object's type.
constexpr uint32_t kTypeWithGil = 8;

bool IsPlausible(const PythonLayout& layout) {
  constexpr uint32_t kMost = 1 << 20;
  for (const uint32_t offset :
       {layout.runtime_interpreters, layout.interpreter_next, layout.interpreter_threads,
        layout.interpreter_gil, layout.gil_locked, layout.gil_holder, layout.thread_next,
        layout.thread_id, layout.thread_native_id, layout.thread_frame}) {
    if (offset > kMost) return false;
  }
  constexpr uint32_t kWord = sizeof(uint64_t);
  // A process writes these numbers, and readers take them from copies of its objects.
  if (layout.frame_bytes < kWord || layout.code_instructions > 512 || layout.string_length > 128 ||
      layout.bytes_data < kWord || layout.bytes_size > layout.bytes_data - kWord) {
    return false;
  }
  const uint32_t frame_most = layout.frame_bytes - sizeof(uint64_t);
  const uint32_t code_most = layout.code_bytes - sizeof(uint64_t);
  return layout.frame_bytes <= 512 && layout.frame_previous <= frame_most &&
         layout.frame_code <= frame_most && layout.frame_instruction <= frame_most &&
         layout.frame_first_local <= 512 && layout.frame_owner < layout.frame_bytes &&
         layout.code_bytes <= 512 && layout.code_filename <= code_most &&
         layout.code_name <= code_most && layout.code_qualname <= code_most &&
         layout.code_lines <= code_most && layout.code_first_line <= code_most &&
         layout.object_type <= 64 && layout.tuple_items <= 128 && layout.bytes_data <= 128 &&
         layout.string_ascii_bytes <= 128 && layout.string_state < layout.string_ascii_bytes;
}

}  // namespace

PythonLines FindPythonLines(int minor) {
  const PythonLayout* layout = FindPythonLayout(minor);
  return layout == nullptr ? PythonLines::kLocations : layout->lines;
}

const PythonLayout* FindPythonLayout(int minor) {
  for (const PythonLayout& layout : kLayouts) {
    if (layout.minor == minor) return &layout;
  }
  return nullptr;
}

std::optional<PythonLayout> PythonLayoutFromDebugOffsets(const uint64_t* words) {
  if (std::memcmp(words, "xdebugpy", 8) != 0) return std::nullopt;
  const uint32_t version = static_cast<uint32_t>(words[1] >> 16);
  if (version != kVersion313 && version != kVersion314) return std::nullopt;
  const OffsetWords& at = version == kVersion313 ? kWords313 : kWords314;
  const auto word = [words](int index) { return static_cast<uint32_t>(words[index]); };
  PythonLayout layout;
  layout.minor = static_cast<int>(version & 0xff);
  layout.runtime_interpreters = word(at.runtime_interpreters);
  layout.interpreter_next = word(at.interpreter_next);
  layout.interpreter_threads = word(at.interpreter_threads);
  layout.interpreter_gil = word(at.interpreter_gil);
  layout.gil_locked = word(at.own_gil_locked) - word(at.own_gil);
  layout.gil_holder = word(at.own_gil_holder) - word(at.own_gil);
  layout.thread_next = word(at.thread_next);
  layout.thread_frame = word(at.thread_frame);
  layout.thread_id = word(at.thread_id);
  layout.thread_native_id = word(at.thread_native_id);
  layout.frame_bytes = word(at.frame_size);
  layout.frame_previous = word(at.frame_previous);
  layout.frame_code = word(at.frame_code);
  layout.frame_instruction = word(at.frame_instruction);
  layout.frame_first_local = word(at.frame_first_local);
  layout.frame_owner = word(at.frame_owner);
  layout.code_filename = word(at.code_filename);
  layout.code_name = word(at.code_name);
  layout.code_qualname = word(at.code_qualname);
  layout.code_lines = word(at.code_lines);
  layout.code_first_line = word(at.code_first_line);
  layout.code_instructions = word(at.code_instructions);
  layout.code_bytes = layout.code_instructions + sizeof(uint64_t);
  layout.object_type = word(at.object_type);
  layout.type_cached_keys = layout.object_type == kTypeWithGil ? kCachedKeys312 : 0;
  if (layout.object_type == kTypeWithGil && layout.thread_id >= kHandledBeforeId) {
    layout.thread_handled = layout.thread_id - kHandledBeforeId;
  }
  layout.handled_value = kHandledValue311;
  layout.handled_previous = kHandledPrevious311;
  layout.exception_traceback = kTraceback311;
  layout.tuple_items = word(at.tuple_items);
  layout.bytes_size = word(at.bytes_size);
  layout.bytes_data = word(at.bytes_data);
  layout.string_state = word(at.string_state);
  layout.string_length = word(at.string_length);
  layout.string_ascii_bytes = word(at.string_ascii_bytes);
  layout.string_compact_bytes = layout.string_ascii_bytes + kCompactExtra;
  if (!IsPlausible(layout)) return std::nullopt;
  return layout;
}

std::optional<PythonStringForm> ParsePythonStringForm(uint32_t state) {
  // kind:3, compact:1 and ascii:1 follow the mark of interned strings, which has 2 bits, or 8 or 16
  // in free-threaded and later versions. The mark has small values, so a wrong shift reads kind 0.
  for (const int interned_bits : {2, 8, 16}) {
    const uint32_t kind = state >> interned_bits & 7;
    const bool compact = (state >> (interned_bits + 3) & 1) != 0;
    const bool ascii = (state >> (interned_bits + 4) & 1) != 0;
    if ((kind == 1 || kind == 2 || kind == 4) && compact && (!ascii || kind == 1)) {
      return PythonStringForm{kind, ascii};
    }
  }
  return std::nullopt;
}

}  // namespace rollcall
