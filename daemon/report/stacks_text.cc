#include "daemon/report/stacks_text.h"

#include <map>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/report/words.h"
#include "daemon/report/wrap.h"
#include "daemon/stacks/merge.h"
#include "daemon/stacks/stack_tree.h"

namespace rollcall {

std::string StackToText(const v1::ProcessStack& stack) {
  std::string text = Wrap("", "  ", StackTitle(stack));
  if (!stack.error().empty()) text += Wrap("  no stack: ", "    ", stack.error());
  for (const v1::ThreadStack& thread : stack.threads()) {
    text += Wrap("  ", "    ", ThreadTitle(thread));
    if (!thread.note().empty()) text += Wrap("    ", "    ", thread.note());
    int number = 0;
    for (const v1::Frame& frame : thread.frames()) {
      text += Wrap("    ", "        ", FrameInWords(frame, number++));
    }
  }
  return text;
}

namespace {

// The newest stacks of each process, all threads in one tree.
std::string MergedText(const v1::Incident& incident) {
  std::map<std::pair<std::string, int32_t>, const v1::ProcessStack*> newest;
  for (const v1::ProcessStack& stack : incident.stacks()) {
    if (!stack.threads().empty()) newest[{stack.host(), stack.pid()}] = &stack;
  }
  if (newest.size() < 2) return "";
  StackTree tree;
  for (const auto& [process, stack] : newest) {
    AddToTree(*stack, stack->rank(), &tree);
  }
  return absl::StrCat("All threads in one tree, what differs first\n\n", ToText(tree), "\n");
}

}  // namespace

std::string StacksToText(const v1::Incident& incident) {
  if (incident.stacks().empty()) return "No stacks were taken.\n";
  std::string text = MergedText(incident);
  for (const v1::ProcessStack* stack : StacksInOrder(incident)) {
    if (!text.empty()) text += "\n";
    text += StackToText(*stack);
  }
  return text;
}

}  // namespace rollcall
