// SPDX-License-Identifier: Apache-2.0
// Where CPython keeps what a stack needs: offsets in bytes within its structures.
//
// From 3.13 on the interpreter publishes the offsets at the start of _PyRuntime. For 3.8 to 3.12
// they come from the headers of the releases, and are the same in all patch releases of a minor
// version. For 64-bit builds without Py_TRACE_REFS.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

namespace rollcall {

enum class PythonLines {
  kLnotab,     // 3.8, 3.9: pairs of differences
  kRanges,     // 3.10: pairs of differences for ranges; a range may have no line
  kLocations,  // 3.11 on: variable-length entries with columns
};

enum class PythonFrames {
  kObjects,      // 3.8 to 3.10: PyFrameObject, one for each activation of the C evaluator
  kEntryFlag,    // 3.11: a flag marks the frame at which the C evaluator was entered
  kEntryFrames,  // 3.12 on: a frame without code separates two activations
};

// Where an object of a class written in Python has its attributes.
enum class PythonAttributes {
  kDict,          // 3.8 to 3.10: a dict, at tp_dictoffset
  kValuesBefore,  // 3.11: before the object, a pointer to an array of values, or else to a dict
  kTaggedBefore,  // 3.12: one pointer for either; a pointer to values is their address minus one
  kInline,        // 3.13 on: a pointer to a dict before the object, or else the values after it
};

// A field is 0 if the version lacks it.
struct PythonLayout {
  int minor = 0;
  PythonLines lines = PythonLines::kLocations;
  PythonFrames frames = PythonFrames::kEntryFrames;
  PythonAttributes attributes = PythonAttributes::kInline;

  uint32_t runtime_interpreters = 0;  // head of the list of interpreters, in _PyRuntime
  uint32_t runtime_gil_locked = 0;    // up to 3.11, where all interpreters share one lock
  uint32_t runtime_gil_holder = 0;

  uint32_t interpreter_next = 0;
  uint32_t interpreter_threads = 0;  // head of the list of threads
  uint32_t interpreter_gil = 0;      // pointer to the interpreter's lock, from 3.12 on
  uint32_t gil_locked = 0;
  uint32_t gil_holder = 0;

  uint32_t thread_next = 0;
  uint32_t thread_id = 0;         // pthread_self()
  uint32_t thread_native_id = 0;  // gettid(), from 3.11 on
  uint32_t thread_frame = 0;      // the innermost frame; a cframe if `frame_indirect`
  uint32_t thread_handled = 0;    // pointer to the innermost item of exceptions being handled
  bool frame_indirect = false;    // 3.11, 3.12: thread -> cframe -> frame
  uint32_t cframe_frame = 0;

  uint32_t frame_bytes = 0;  // how much of a frame to read
  uint32_t frame_previous = 0;
  uint32_t frame_code = 0;
  uint32_t frame_instruction = 0;  // address of the instruction; kObjects: its index, an int
  uint32_t frame_owner = 0;        // kEntryFrames: kFirstForeignOwner or more means no code
  uint32_t frame_is_entry = 0;     // kEntryFlag
  uint32_t frame_first_local = 0;  // a reference to the first argument

  uint32_t code_bytes = 0;  // how much of a code object to read
  uint32_t code_filename = 0;
  uint32_t code_name = 0;
  uint32_t code_qualname = 0;
  uint32_t code_first_line = 0;
  uint32_t code_lines = 0;         // pointer to the line table, a bytes object
  uint32_t code_instructions = 0;  // offset of the first instruction in the code object

  uint32_t object_type = 8;
  uint32_t type_cached_keys = 0;  // of a class written in Python: names of its objects' attributes
  uint32_t handled_value = 0;     // of such an item: the exception; none, or None: look further
  uint32_t handled_previous = 0;  // the item outside of it
  uint32_t exception_traceback = 0;
  uint32_t tuple_items = 24;
  uint32_t string_length = 16;
  uint32_t string_state = 32;
  uint32_t string_ascii_bytes = 0;    // offset of the text of an ASCII string
  uint32_t string_compact_bytes = 0;  // offset of the text of any other string
  uint32_t bytes_size = 16;
  uint32_t bytes_data = 32;
};

inline constexpr uint8_t kFirstForeignOwner = 3;

PythonLines FindPythonLines(int minor);

// nullptr if the version is unknown or publishes its offsets.
const PythonLayout* FindPythonLayout(int minor);

// Reads the words at the start of _PyRuntime. nullopt if the words are not offsets, belong to an
// unknown version, or are implausible.
inline constexpr size_t kDebugOffsetWords = 96;
std::optional<PythonLayout> PythonLayoutFromDebugOffsets(const uint64_t* words);

struct PythonStringForm {
  size_t bytes_per_character = 1;  // 1, 2 or 4
  bool ascii = false;              // the text is at string_ascii_bytes
};

// Decodes the state of a PyASCIIObject. nullopt if no name or path has this state, so it is not a
// string.
std::optional<PythonStringForm> ParsePythonStringForm(uint32_t state);

}  // namespace rollcall
