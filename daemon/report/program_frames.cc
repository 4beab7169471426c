// SPDX-License-Identifier: Apache-2.0
#include "daemon/report/program_frames.h"

#include <algorithm>
#include <cstddef>
#include <string>

#include "base/cut_text.h"
#include "daemon/model/client_limits.h"
#include "daemon/report/program_line.h"
#include "rollcall/v1/incident.pb.h"

namespace rollcall {
namespace {

CodeBlock ToBlock(const v1::CodeBlock& block) {
  CodeBlock found;
  found.first = block.first();
  found.last = block.last();
  found.skips_at = block.skips_at();
  found.ends_at = block.ends_at();
  found.is_periodic = block.is_periodic();
  if (block.kind() == v1::CodeBlock::CONDITION) found.kind = CodeBlock::Kind::kCondition;
  if (block.kind() == v1::CodeBlock::HANDLER) found.kind = CodeBlock::Kind::kHandler;
  return found;
}

ProgramFrame ToProgramFrame(const v1::Frame& frame) {
  ProgramFrame found;
  found.function = CutText(frame.python() ? frame.function() : ShortFunction(frame), limits::kName);
  found.file = CutText(frame.file().empty() ? frame.module() : frame.file(), limits::kSite);
  found.line = frame.line();
  found.has_source = frame.has_source();
  for (const v1::CodeBlock& block : frame.blocks()) {
    if (found.blocks.size() < kMostCodeBlocks) found.blocks.push_back(ToBlock(block));
  }
  return found;
}

}  // namespace

std::vector<ProgramFrame> ProgramFrames(const v1::ThreadStack& thread) {
  std::vector<ProgramFrame> frames;
  for (int i = thread.frames_size() - 1; i >= 0; --i) {
    if (IsLibraryFrame(thread.frames(i))) continue;
    if (frames.size() == kMostProgramFrames) frames.pop_back();
    frames.push_back(ToProgramFrame(thread.frames(i)));
  }
  frames.shrink_to_fit();
  return frames;
}

}  // namespace rollcall
