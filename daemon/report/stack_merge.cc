// SPDX-License-Identifier: Apache-2.0
#include "daemon/report/stack_merge.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/base_name.h"
#include "rollcall/v1/incident.pb.h"

namespace rollcall {
namespace {}  // namespace

std::string FrameLabel(const v1::Frame& frame) {
  if (frame.function().empty()) return std::string(BaseName(frame.address()));
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

v1::StackTree ToProto(const StackTree& tree, size_t most_nodes) {
  struct Step {
    uint32_t node;
    int parent;
  };
  v1::StackTree message;
  std::vector<Step> way = {{0, 0}};
  while (!way.empty()) {
    const Step step = way.back();
    way.pop_back();
    if (static_cast<size_t>(message.nodes_size()) == most_nodes) {
      message.set_cut(true);
      break;
    }
    const StackTree::Node& node = tree.node(step.node);
    const int index = message.nodes_size();
    v1::StackTree::Node* added = message.add_nodes();
    added->set_parent(step.parent);
    added->set_frame(tree.FrameName(node));
    added->set_ranks(node.ranks.List());
    added->set_rank_count(static_cast<int32_t>(node.ranks.size()));
    added->set_threads(static_cast<int32_t>(node.threads));
    added->set_ending(static_cast<int32_t>(node.ending));
    const std::vector<uint32_t> children = tree.ChildrenInOrder(node);
    for (auto child = children.rbegin(); child != children.rend(); ++child) {
      way.push_back({*child, index});
    }
  }
  return message;
}

StackTree FromProto(const v1::StackTree& message) {
  StackTree tree;
  std::vector<uint32_t> indices;
  for (const v1::StackTree::Node& node : message.nodes()) {
    if (node.parent() < 0 ||
        (node.parent() > 0 && node.parent() >= static_cast<int>(indices.size())))
      continue;
    const uint32_t parent = indices.empty() ? 0 : indices[static_cast<size_t>(node.parent())];
    indices.push_back(tree.AddNode(parent, node.frame(), RankRanges(node.ranks()),
                                   static_cast<uint64_t>(std::max(node.threads(), 0)),
                                   static_cast<uint64_t>(std::max(node.ending(), 0))));
  }
  return tree;
}

}  // namespace rollcall
