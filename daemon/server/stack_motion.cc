// SPDX-License-Identifier: Apache-2.0
#include "daemon/server/stack_motion.h"

#include <map>
#include <set>

#include "rollcall/v1/incident.pb.h"

namespace rollcall {
namespace {

// A process that polls uses a little; one that works uses most of the time.
constexpr double kWorthNoticing = 0.05;
constexpr size_t kMostWords = 400;

std::string FramesOf(const v1::ThreadStack& thread) {
  std::string frames;
  for (const v1::Frame& frame : thread.frames()) {
    frames += frame.function().empty() ? frame.address() : frame.function();
    // Another line of one function is progress, too.
    frames += ":" + std::to_string(frame.line()) + "\n";
  }
  return frames;
}

std::map<int32_t, std::string> FramesByThread(const v1::ProcessStack& stack) {
  std::map<int32_t, std::string> frames;
  for (const v1::ThreadStack& thread : stack.threads()) {
    if (!thread.frames().empty()) frames[thread.tid()] = FramesOf(thread);
  }
  return frames;
}

}  // namespace

Motion MotionBetween(const v1::ProcessStack& before, const v1::ProcessStack& after) {
  const auto first = FramesByThread(before);
  const auto second = FramesByThread(after);
  if (first.empty() || second.empty()) return Motion::kUnknown;
  if (first != second) return Motion::kMoving;
  return after.cpu_seconds() - before.cpu_seconds() > kWorthNoticing ? Motion::kSpinning
                                                                     : Motion::kFrozen;
}

std::string WordsOf(const v1::ProcessStack& stack) {
  std::set<std::string> words;
  for (const v1::ThreadStack& thread : stack.threads()) {
    for (const v1::Frame& frame : thread.frames()) {
      if (!frame.function().empty() && words.size() < kMostWords) words.insert(frame.function());
    }
  }
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

}  // namespace rollcall
