// SPDX-License-Identifier: Apache-2.0
// Where CPython keeps what a stack needs: offsets in bytes within its structures.
//
// From 3.13 on the interpreter publishes them itself, at the start of _PyRuntime. For 3.8 to 3.12
// they are those of the releases' headers; they do not change between the patch releases of one
// minor version. 64-bit builds without Py_TRACE_REFS.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

namespace rollcall {

enum class PythonLines {
  kLnotab,     // 3.8, 3.9: pairs of differences
  kRanges,     // 3.10: the same for ranges, with holes
  kLocations,  // 3.11 on: variable-length entries with columns
};

enum class PythonFrames {
  kObjects,      // 3.8 to 3.10: PyFrameObject, one for each activation of the C evaluator
  kEntryFlag,    // 3.11: the frame at which the C evaluator was entered says so
  kEntryFrames,  // 3.12 on: a frame of no code stands between two activations
};

// Where an object of a class written in Python keeps its attributes.
enum class PythonAttributes {
  kDict,          // 3.8 to 3.10: in a dict, to which tp_dictoffset leads
  kValuesBefore,  // 3.11: before the object, a pointer to an array of values, or else to a dict
  kTaggedBefore,  // 3.12: one pointer for either; for values it is one less than their address
  kInline,        // 3.13 on: a pointer to a dict before it, or else the values after it
};

// A field that this version has not is 0.
struct PythonLayout {
  int minor = 0;
  PythonLines lines = PythonLines::kLocations;
  PythonFrames frames = PythonFrames::kEntryFrames;
  PythonAttributes attributes = PythonAttributes::kInline;

  uint32_t runtime_interpreters = 0;  // head of the list of interpreters, in _PyRuntime
  uint32_t runtime_gil_locked = 0;    // up to 3.11 all interpreters share one lock
  uint32_t runtime_gil_holder = 0;

  uint32_t interpreter_next = 0;
  uint32_t interpreter_threads = 0;  // head of the list of threads
  uint32_t interpreter_gil = 0;      // pointer to its lock, from 3.12 on
  uint32_t gil_locked = 0;
  uint32_t gil_holder = 0;

  uint32_t thread_next = 0;
  uint32_t thread_id = 0;         // pthread_self()
  uint32_t thread_native_id = 0;  // gettid(), from 3.11 on
  uint32_t thread_frame = 0;      // the innermost frame, or what leads to it:
  bool frame_indirect = false;    // 3.11, 3.12: thread -> cframe -> frame
  uint32_t cframe_frame = 0;

  uint32_t frame_bytes = 0;  // to be read of a frame
  uint32_t frame_previous = 0;
  uint32_t frame_code = 0;
  uint32_t frame_instruction = 0;  // address of the instruction; kObjects: its index, an int
  uint32_t frame_owner = 0;        // kEntryFrames: one of kFirstForeignOwner or more is no code
  uint32_t frame_is_entry = 0;     // kEntryFlag
  uint32_t frame_first_local = 0;  // a reference to the first argument

  uint32_t code_bytes = 0;  // to be read of a code object
  uint32_t code_filename = 0;
  uint32_t code_name = 0;
  uint32_t code_qualname = 0;
  uint32_t code_first_line = 0;
  uint32_t code_lines = 0;         // pointer to the table, a bytes object
  uint32_t code_instructions = 0;  // where they begin, within the code object

  uint32_t object_type = 8;
  uint32_t type_cached_keys = 0;  // of a class written in Python: names of its objects' attributes
  uint32_t string_length = 16;
  uint32_t string_state = 32;
  uint32_t string_ascii_bytes = 0;    // where the text of an ASCII string begins
  uint32_t string_compact_bytes = 0;  // where that of any other begins
  uint32_t bytes_size = 16;
  uint32_t bytes_data = 32;
};

inline constexpr uint8_t kFirstForeignOwner = 3;

PythonLines PythonLinesOf(int minor);

// nullptr: this version is not known, or publishes its offsets itself.
const PythonLayout* PythonLayoutOf(int minor);

// The words at the start of _PyRuntime. nullopt: they are no offsets, those of a version that is
// not known, or make no sense.
inline constexpr size_t kDebugOffsetWords = 96;
std::optional<PythonLayout> PythonLayoutFromDebugOffsets(const uint64_t* words);

struct PythonStringForm {
  size_t bytes_per_character = 1;  // 1, 2 or 4
  bool ascii = false;              // its text lies where an ASCII string's does
};

// From PyASCIIObject's state. nullopt: none that a name or path has, so no string.
std::optional<PythonStringForm> PythonStringFormOf(uint32_t state);

}  // namespace rollcall
