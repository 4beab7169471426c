#include "daemon/stacks/merge.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "rollcall/v1/incident.pb.h"

namespace rollcall {
namespace {

std::string BaseName(const std::string& path) { return path.substr(path.rfind('/') + 1); }

}  // namespace

std::string FrameLabel(const v1::Frame& frame) {
  if (frame.function().empty()) return BaseName(frame.address());
  if (!frame.python()) return frame.function();
  std::string label = absl::StrCat(frame.function(), " ", BaseName(frame.file()));
  if (frame.line() > 0) absl::StrAppend(&label, ":", frame.line());
  return label;
}

void AddToTree(const v1::ProcessStack& stack, int32_t rank, StackTree* tree) {
  std::vector<uint32_t> frames;
  for (const v1::ThreadStack& thread : stack.threads()) {
    frames.clear();
    bool within_python = false;
    for (const v1::Frame& frame : thread.frames()) {
      within_python = within_python || frame.python();
      if (within_python && frame.interpreter()) continue;
      frames.push_back(tree->Intern(FrameLabel(frame)));
    }
    std::reverse(frames.begin(), frames.end());
    if (!frames.empty()) tree->Add(rank, frames);
  }
}

}  // namespace rollcall
