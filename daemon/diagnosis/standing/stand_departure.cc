// SPDX-License-Identifier: Apache-2.0
#include "daemon/diagnosis/standing/stand_departure.h"

#include <algorithm>
#include <functional>
#include <vector>

#include "daemon/model/program_frame.h"

namespace rollcall {
namespace {

using Frames = std::vector<const ProgramFrame*>;  // of each rank, at one depth

// nullptr: the stack of the rank is not so deep.
Frames FramesAt(const StandScene& scene, size_t depth) {
  Frames frames;
  for (size_t i = 0; i < scene.Count(); ++i) {
    const std::vector<ProgramFrame>& all = scene.ProcessAt(scene.Rank(i).process).place.program;
    frames.push_back(depth < all.size() ? &all[depth] : nullptr);
  }
  return frames;
}

bool AreInOneFunction(const Frames& frames) {
  return std::all_of(frames.begin(), frames.end(), [&](const ProgramFrame* frame) {
    return frame != nullptr && frames.front() != nullptr &&
           frame->function == frames.front()->function && frame->file == frames.front()->file;
  });
}

bool AreAtOneLine(const Frames& frames) {
  return std::all_of(frames.begin(), frames.end(), [&](const ProgramFrame* frame) {
    return frame->line == frames.front()->line;
  });
}

using IsThere = std::function<bool(const ProgramFrame&)>;

// The ranks that are not there, if most are. Empty: all are, or most are not.
std::set<size_t> OutsideOfMost(const Frames& frames, const IsThere& is_there) {
  std::set<size_t> outside;
  for (size_t i = 0; i < frames.size(); ++i) {
    if (!is_there(*frames[i])) outside.insert(i);
  }
  return 2 * outside.size() < frames.size() ? outside : std::set<size_t>();
}

std::set<size_t> AtOtherLines(const Frames& frames) {
  for (const ProgramFrame* frame : frames) {
    auto others = OutsideOfMost(
        frames, [frame](const ProgramFrame& other) { return other.line == frame->line; });
    if (!others.empty()) return others;
  }
  return {};
}

std::set<size_t> OutsideOfALoop(const Frames& frames) {
  for (const ProgramFrame* frame : frames) {
    for (const CodeBlock& block : frame->blocks) {
      if (block.kind != CodeBlock::Kind::kLoop) continue;
      auto others = OutsideOfMost(frames, [&block](const ProgramFrame& other) {
        return block.first <= other.line && other.line <= block.last;
      });
      if (!others.empty()) return others;
    }
  }
  return {};
}

}  // namespace

std::set<size_t> FindDeparted(const StandScene& scene) {
  for (size_t depth = 0; depth < kMostProgramFrames; ++depth) {
    const Frames frames = FramesAt(scene, depth);
    if (frames.empty() || !AreInOneFunction(frames)) break;
    if (AreAtOneLine(frames)) continue;
    std::set<size_t> departed = AtOtherLines(frames);
    return departed.empty() ? OutsideOfALoop(frames) : departed;
  }
  return {};
}

}  // namespace rollcall
