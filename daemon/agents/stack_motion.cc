// SPDX-License-Identifier: Apache-2.0
#include "daemon/agents/stack_motion.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>

#include "daemon/report/program_line.h"
#include "rollcall/v1/incident.pb.h"

namespace rollcall {
namespace {

// In seconds. A process that polls uses little CPU time, a process that works uses most of the
// interval.
constexpr double kLeastSpinning = 0.05;
constexpr size_t kMostMovedNames = 400;

std::string ListFrames(const v1::ThreadStack& thread) {
  std::string frames;
  for (const v1::Frame& frame : thread.frames()) {
    frames += frame.function().empty() ? frame.address() : frame.function();
    // Another line of the same function is progress, too.
    frames += ":" + std::to_string(frame.line()) + "\n";
  }
  return frames;
}

std::map<int32_t, std::string> FramesByThread(const v1::ProcessStack& stack) {
  std::map<int32_t, std::string> frames;
  for (const v1::ThreadStack& thread : stack.threads()) {
    if (!thread.frames().empty()) frames[thread.tid()] = ListFrames(thread);
  }
  return frames;
}

// A framework's own threads (heartbeats, exporters, event loops) move while the program stands
// still. Removes them if another thread runs the program.
void KeepThreadsOfProgram(const v1::ProcessStack& before, const v1::ProcessStack& after,
                          std::map<int32_t, std::string>* first,
                          std::map<int32_t, std::string>* second) {
  std::set<int32_t> of_program;
  for (const v1::ProcessStack* stack : {&before, &after}) {
    for (const v1::ThreadStack& thread : stack->threads()) {
      if (RunsTheProgram(thread)) of_program.insert(thread.tid());
    }
  }
  if (of_program.empty()) return;
  for (std::map<int32_t, std::string>* frames : {first, second}) {
    for (auto at = frames->begin(); at != frames->end();) {
      at = of_program.count(at->first) == 0 ? frames->erase(at) : std::next(at);
    }
  }
}

}  // namespace

Motion MotionBetween(const v1::ProcessStack& before, const v1::ProcessStack& after) {
  auto first = FramesByThread(before);
  auto second = FramesByThread(after);
  if (first.empty() || second.empty()) return Motion::kUnknown;
  KeepThreadsOfProgram(before, after, &first, &second);
  if (first != second) return Motion::kMoving;
  return after.cpu_seconds() - before.cpu_seconds() > kLeastSpinning ? Motion::kSpinning
                                                                     : Motion::kFrozen;
}

bool ShowsNothing(const v1::ProcessStack& stack) {
  return std::all_of(stack.threads().begin(), stack.threads().end(),
                     [](const v1::ThreadStack& thread) {
                       const bool waits = thread.state() == "S" || thread.state() == "D";
                       const bool is_held = thread.state() == "T" || thread.state() == "t";
                       return thread.frames().empty() && !waits && !is_held;
                     });
}

std::string FunctionNames(const v1::ProcessStack& stack) {
  std::set<std::string> names;
  for (const v1::ThreadStack& thread : stack.threads()) {
    for (const v1::Frame& frame : thread.frames()) {
      if (!frame.function().empty() && names.size() < kMostMovedNames)
        names.insert(frame.function());
    }
  }
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : " ") + name;
  return text;
}

}  // namespace rollcall
