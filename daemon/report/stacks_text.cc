// SPDX-License-Identifier: Apache-2.0
#include "daemon/report/stacks_text.h"

#include "absl/strings/str_cat.h"
#include "daemon/report/incident_words.h"
#include "daemon/report/stack_merge.h"
#include "daemon/report/stacks/stack_tree.h"
#include "daemon/report/wrap.h"

namespace rollcall {

namespace {

void AddThread(const v1::ThreadStack& thread, std::string* text) {
  *text += Wrap("  ", "    ", ThreadTitle(thread));
  if (!thread.note().empty()) *text += Wrap("    ", "    ", thread.note());
  int number = 0;
  for (const v1::Frame& frame : thread.frames()) {
    *text += Wrap("    ", "        ", FrameInWords(frame, number++));
  }
}

}  // namespace

std::string StackToText(const v1::ProcessStack& stack) {
  std::string text = Wrap("", "  ", StackTitle(stack));
  if (!stack.error().empty()) text += Wrap("  no stack: ", "    ", stack.error());
  const std::string children = ChildrenTitle(stack);
  if (!children.empty()) text += Wrap("  ", "    ", children);
  for (const v1::ThreadStack& thread : stack.threads()) AddThread(thread, &text);
  for (const v1::ChildProcess& child : stack.children()) {
    if (!child.threads().empty()) text += Wrap("  ", "    ", ChildTitle(child));
    for (const v1::ThreadStack& thread : child.threads()) AddThread(thread, &text);
  }
  return text;
}

namespace {

std::string MergedText(const v1::Incident& incident) {
  const v1::StackTree& merged = incident.stack_tree();
  if (merged.nodes().empty() || merged.nodes(0).rank_count() < 2) return "";
  return absl::StrCat("All threads in one tree, differences first\n\n", ToText(FromProto(merged)),
                      merged.cut() ? "(the tree is cut)\n" : "", "\n");
}

}  // namespace

std::string StacksToText(const v1::Incident& incident) {
  if (incident.stacks().empty()) return "No stacks.\n";
  std::string text = MergedText(incident);
  for (const v1::ProcessStack* stack : StacksInOrder(incident)) {
    if (!text.empty()) text += "\n";
    text += StackToText(*stack);
  }
  return text;
}

}  // namespace rollcall
