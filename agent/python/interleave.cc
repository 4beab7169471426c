#include "agent/python/interleave.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "interpose/python_layout.h"
#include "interpose/python_lines.h"

namespace rollcall {
namespace {

constexpr const char* kEvaluator = "_PyEval_EvalFrameDefault";

// Where CPython 3.8 to 3.14 takes its lock. Most are static and have no name in a stripped build;
// the last ones are exported.
constexpr const char* kLockTakers[] = {"take_gil",
                                       "_Py_HandlePending",
                                       "eval_frame_handle_pending",
                                       "handle_eval_breaker",
                                       "_PyEval_AcquireLock",
                                       "_PyThreadState_Attach",
                                       "PyEval_RestoreThread",
                                       "PyEval_AcquireThread",
                                       "PyEval_AcquireLock",
                                       "PyGILState_Ensure"};
// The lock is a condition variable; nothing else in the evaluator itself waits for one.
constexpr absl::string_view kTimedWait = "pthread_cond_timedwait";
constexpr absl::string_view kClockWait = "pthread_cond_clockwait";
constexpr size_t kFramesToLookAt = 12;

bool IsEvaluator(const Frame& frame, const PythonSample& python) {
  return !frame.inlined && frame.module == python.module &&
         absl::StartsWith(frame.function, kEvaluator);
}

// Up to and with its end mark, which is not shown.
struct Group {
  std::vector<Frame> frames;
};

Frame PythonFrameOf(const RawPythonFrame& raw, const PythonSample& python) {
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
      PythonLine(PythonLinesOf(python.minor), reinterpret_cast<const uint8_t*>(code.lines.data()),
                 code.lines.size(), code.first_line, offset);
  return frame;
}

std::vector<Group> GroupsOf(const RawThread& thread, const PythonSample& python) {
  std::vector<Group> groups(1);
  for (const RawPythonFrame& raw : thread.python_frames) {
    if (raw.code == 0) {
      groups.emplace_back();
    } else {
      groups.back().frames.push_back(PythonFrameOf(raw, python));
    }
  }
  if (groups.back().frames.empty()) groups.pop_back();
  return groups;
}

void Append(std::vector<Frame>* frames, Group* group) {
  for (Frame& frame : group->frames) frames->push_back(std::move(frame));
}

}  // namespace

std::vector<Frame> InterleavePython(std::vector<Frame> native, const RawThread& thread,
                                    const PythonSample& python, std::string* note) {
  std::vector<Group> groups = GroupsOf(thread, python);
  std::vector<Frame> frames;
  size_t next = 0;
  for (Frame& frame : native) {
    if (next < groups.size() && IsEvaluator(frame, python)) {
      Append(&frames, &groups[next++]);
    } else {
      frames.push_back(std::move(frame));
    }
  }
  if (next < groups.size()) {
    absl::StrAppend(note, note->empty() ? "" : "; ",
                    "the outer Python frames stand without the native ones between them");
  }
  for (; next < groups.size(); ++next) Append(&frames, &groups[next]);
  return frames;
}

bool WaitsForGil(const std::vector<Frame>& native, const PythonSample& python) {
  if (python.module.empty()) return false;
  bool waits_for_condition = false;
  for (size_t i = 0; i < std::min(native.size(), kFramesToLookAt); ++i) {
    const Frame& frame = native[i];
    if (frame.module != python.module) {
      waits_for_condition = waits_for_condition || absl::StrContains(frame.function, kTimedWait) ||
                            absl::StrContains(frame.function, kClockWait);
      continue;
    }
    // The innermost frame in the interpreter decides, inlined ones with it.
    if (!waits_for_condition) return false;
    for (const char* name : kLockTakers) {
      if (absl::StartsWith(frame.function, name)) return true;
    }
    if (!frame.inlined) return IsEvaluator(frame, python);
  }
  return false;
}

}  // namespace rollcall
