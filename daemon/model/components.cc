// SPDX-License-Identifier: Apache-2.0
#include "daemon/model/components.h"

#include <algorithm>
#include <utility>

namespace rollcall {
namespace {

using Edges = std::vector<const std::vector<size_t>*>;

// Tarjan's, without recursion: a large job has long chains.
class Components {
 public:
  explicit Components(const Edges& edges)
      : edges_(edges), index_(edges.size(), 0), low_(edges.size(), 0), on_stack_(edges.size()) {}

  std::vector<std::vector<size_t>> Find() {
    for (size_t i = 0; i < edges_.size(); ++i) {
      if (index_[i] == 0) Visit(i);
    }
    return std::move(found_);
  }

 private:
  struct Step {
    size_t node;
    size_t next;
  };

  void Enter(size_t node) {
    index_[node] = low_[node] = ++count_;
    stack_.push_back(node);
    on_stack_[node] = true;
    path_.push_back({node, 0});
  }

  void Visit(size_t root) {
    Enter(root);
    while (!path_.empty()) {
      Step& step = path_.back();
      const std::vector<size_t>& edges = *edges_[step.node];
      if (step.next < edges.size()) {
        const size_t to = edges[step.next++];
        if (index_[to] == 0) {
          Enter(to);
        } else if (on_stack_[to]) {
          low_[step.node] = std::min(low_[step.node], index_[to]);
        }
        continue;
      }
      Leave(step.node);
    }
  }

  void Leave(size_t node) {
    path_.pop_back();
    if (!path_.empty()) low_[path_.back().node] = std::min(low_[path_.back().node], low_[node]);
    if (low_[node] != index_[node]) return;
    std::vector<size_t> component;
    size_t member = 0;
    do {
      member = stack_.back();
      stack_.pop_back();
      on_stack_[member] = false;
      component.push_back(member);
    } while (member != node);
    std::sort(component.begin(), component.end());
    found_.push_back(std::move(component));
  }

  const Edges& edges_;
  std::vector<size_t> index_, low_;
  std::vector<bool> on_stack_;
  std::vector<size_t> stack_;
  std::vector<Step> path_;
  std::vector<std::vector<size_t>> found_;
  size_t count_ = 0;
};

}  // namespace

std::vector<std::vector<size_t>> FindComponents(const Edges& edges) {
  return Components(edges).Find();
}

}  // namespace rollcall
