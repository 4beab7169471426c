// SPDX-License-Identifier: Apache-2.0
// The stacks of many threads of many ranks, merged from the outermost frame
// inwards: equal stacks share one branch, and a rank that differs has its own.
//
// Plain values; one owner, no lock. 16,384 ranks of 40 threads are its size.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "daemon/report/stacks/rank_set.h"

namespace rollcall {

class StackTree {
 public:
  struct Node {
    uint32_t label = 0;  // 0: the root
    uint32_t parent = 0;
    RankSet ranks;
    uint64_t threads = 0;  // whose stacks come through here
    uint64_t ending = 0;   // of them, those whose innermost frame this is
    std::vector<uint32_t> children;
  };

  // Threads whose stacks are equal.
  struct Class {
    RankSet ranks;
    uint64_t threads = 0;
    std::vector<std::string> frames;  // outermost first
  };

  StackTree();

  // The number of a frame's name, for Add(); the same name gets the same one.
  uint32_t Intern(const std::string& frame);

  // A branch that was merged elsewhere; returns its index, for its children.
  uint32_t AddNode(uint32_t parent, const std::string& frame, RankSet ranks, uint64_t threads,
                   uint64_t ending);

  // One thread. `frames`: outermost first.
  void Add(int32_t rank, const std::vector<uint32_t>& frames);

  const std::string& LabelOf(const Node& node) const { return labels_[node.label]; }
  const Node& root() const { return nodes_[0]; }
  const Node& node(uint32_t index) const { return nodes_[index]; }

  // Branches of the fewest ranks first, so that differences are on top.
  std::vector<uint32_t> ChildrenInOrder(const Node& node) const;
  std::vector<Class> Classes() const;

 private:
  uint32_t ChildOf(uint32_t parent, uint32_t label);

  std::vector<std::string> labels_;
  absl::flat_hash_map<std::string, uint32_t> label_of_;
  std::vector<Node> nodes_;
  absl::flat_hash_map<uint64_t, uint32_t> child_of_;  // parent and label
};

// For people: a line a frame, a branch a level, with the ranks where branches separate.
// At most 100 columns: template arguments and parameters are left out of names.
// At most `most_lines`, and says what was left out.
std::string ToText(const StackTree& tree, size_t most_lines = 2000);

// "main;train;ncclAllReduce 63", a line for each class: what flame graph tools read.
std::string ToFolded(const StackTree& tree);

// A graph for Graphviz.
std::string ToDot(const StackTree& tree);

// {"frame": "...", "ranks": "0-2,4", "threads": 5, "children": [...]}
std::string ToJson(const StackTree& tree);

}  // namespace rollcall
