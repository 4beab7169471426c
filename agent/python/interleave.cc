// SPDX-License-Identifier: Apache-2.0
#include "agent/python/interleave.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "interpose/python/python_layout.h"
#include "interpose/python/python_lines.h"

namespace rollcall {
namespace {

constexpr const char* kEvaluator = "_PyEval_EvalFrameDefault";

// The Python frames that one activation of the C evaluator runs.
struct Group {
  std::vector<Frame> frames;
  uint64_t within = 0;  // an address in the evaluator's native frame; 0 if unknown
};

bool IsNamedEvaluator(const Frame& frame, const PythonSample& python) {
  return frame.module == python.module && absl::StartsWith(frame.function, kEvaluator);
}

// Whether native[i] is the evaluator that ran the group. The name alone is not enough: the compiler
// splits the evaluator into parts, and distributions strip the names of these parts.
bool RanGroup(const std::vector<Frame>& native, size_t i, const Group& group,
              const PythonSample& python) {
  const Frame& frame = native[i];
  if (frame.inlined) return false;
  const uint64_t begin = native.front().stack_pointer;
  const uint64_t end = native.back().stack_pointer;
  if (group.within < begin || group.within >= end) return IsNamedEvaluator(frame, python);
  return i + 1 < native.size() && group.within >= frame.stack_pointer &&
         group.within < native[i + 1].stack_pointer;
}

Frame MakePythonFrame(const RawPythonFrame& raw, const PythonSample& python) {
  Frame frame;
  frame.python = true;
  frame.address = raw.code;
  const auto found = python.code.find(raw.code);
  if (found == python.code.end()) {
    frame.function = "<unreadable Python frame>";
    return frame;
  }
  const PythonCode& code = found->second;
  frame.function = code.name;
  frame.source_file = code.file;
  const auto offset =
      code.instructions == 0
          ? raw.instruction
          : static_cast<int64_t>(static_cast<uint64_t>(raw.instruction) - code.instructions);
  frame.line =
      PythonLine(FindPythonLines(python.minor), reinterpret_cast<const uint8_t*>(code.lines.data()),
                 code.lines.size(), code.first_line, offset);
  return frame;
}

std::vector<Group> MakeGroups(const RawThread& thread, const PythonSample& python) {
  std::vector<Group> groups(1);
  for (const RawPythonFrame& raw : thread.python_frames) {
    if (raw.code == 0) {
      groups.back().within = static_cast<uint64_t>(raw.instruction);
      groups.emplace_back();
    } else {
      groups.back().frames.push_back(MakePythonFrame(raw, python));
    }
  }
  if (groups.back().frames.empty()) groups.pop_back();
  return groups;
}

void Append(std::vector<Frame>* frames, Group* group) {
  for (Frame& frame : group->frames) frames->push_back(std::move(frame));
}

}  // namespace

std::vector<Frame> InterleavePython(const std::vector<Frame>& native, const RawThread& thread,
                                    const PythonSample& python, std::string* note) {
  std::vector<Group> groups = MakeGroups(thread, python);
  std::vector<Frame> frames;
  size_t next = 0;
  for (size_t i = 0; i < native.size(); ++i) {
    if (next < groups.size() && RanGroup(native, i, groups[next], python)) {
      Append(&frames, &groups[next++]);
    } else {
      frames.push_back(native[i]);
    }
  }
  if (next < groups.size() && !native.empty()) {
    absl::StrAppend(note, note->empty() ? "" : "; ",
                    "the native frames between the outer Python frames are missing");
  }
  for (; next < groups.size(); ++next) Append(&frames, &groups[next]);
  return frames;
}

}  // namespace rollcall
