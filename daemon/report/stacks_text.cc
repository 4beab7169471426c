#include "daemon/report/stacks_text.h"

#include "absl/strings/str_cat.h"
#include "daemon/report/words.h"
#include "daemon/report/wrap.h"

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

std::string StacksToText(const v1::Incident& incident) {
  if (incident.stacks().empty()) return "No stacks were taken.\n";
  std::string text;
  for (const v1::ProcessStack* stack : StacksInOrder(incident)) {
    if (!text.empty()) text += "\n";
    text += StackToText(*stack);
  }
  return text;
}

}  // namespace rollcall
