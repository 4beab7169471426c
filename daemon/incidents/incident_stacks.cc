// SPDX-License-Identifier: Apache-2.0
#include "daemon/incidents/incident_stacks.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "daemon/agents/children_at_work.h"
#include "daemon/agents/stack_motion.h"
#include "daemon/report/stack_merge.h"
#include "rollcall/v1/incident.pb.h"

namespace rollcall {
namespace {

constexpr size_t kSamplesKept = 2;  // of one process

bool IsSameProcess(const v1::ProcessStack& a, const v1::ProcessStack& b) {
  return a.pid() == b.pid() && a.host() == b.host();
}

// Indices of the incident's samples of the same process, oldest first.
std::vector<int> FindStacks(const v1::ProcessStack& stack, const v1::Incident& incident) {
  std::vector<int> indices;
  for (int i = 0; i < incident.stacks_size(); ++i) {
    if (IsSameProcess(stack, incident.stacks(i))) indices.push_back(i);
  }
  return indices;
}

// Orders culprits first, then by rank; the samples of one process oldest first.
void Append(const v1::ProcessStack& stack, v1::Incident* incident) {
  auto* stacks = incident->mutable_stacks();
  *stacks->Add() = stack;
  std::stable_sort(stacks->begin(), stacks->end(),
                   [](const v1::ProcessStack& a, const v1::ProcessStack& b) {
                     return std::make_tuple(!a.culprit(), a.rank(), a.host(), a.pid()) <
                            std::make_tuple(!b.culprit(), b.rank(), b.host(), b.pid());
                   });
}

}  // namespace

void AddSample(const v1::ProcessStack& stack, v1::Incident* incident) {
  const std::vector<int> known = FindStacks(stack, *incident);
  if (known.size() >= kSamplesKept) {
    auto* stacks = incident->mutable_stacks();
    const auto empty = std::find_if(known.begin(), known.end(), [stacks](int index) {
      return stacks->Get(index).threads().empty();
    });
    stacks->erase(stacks->begin() + (empty == known.end() ? known.front() : *empty));
  }
  Append(stack, incident);
}

void AddFailure(const v1::ProcessStack& stack, v1::Incident* incident) {
  const std::vector<int> known = FindStacks(stack, *incident);
  const bool is_recorded = std::any_of(known.begin(), known.end(), [&](int index) {
    return incident->stacks(index).error() == stack.error();
  });
  if (!is_recorded && known.size() < kSamplesKept) Append(stack, incident);
}

StackChange ChangeSince(const v1::Incident& incident, const v1::ProcessStack& stack) {
  StackChange change;
  for (const v1::ProcessStack& other : incident.stacks()) {
    if (other.threads().empty() || !IsSameProcess(stack, other)) continue;
    change = {MotionBetween(other, stack), FindChildrenAtWork(other, stack),
              BytesReceivedASecond(other, stack)};
  }
  return change;
}

v1::StackTree MergedStacks(const v1::Incident& incident, const StackTree& rest) {
  std::map<std::pair<std::string, int32_t>, const v1::ProcessStack*> newest;
  for (const v1::ProcessStack& stack : incident.stacks()) {
    if (!stack.threads().empty()) newest[{stack.host(), stack.pid()}] = &stack;
  }
  StackTree tree = rest;
  for (const auto& [process, stack] : newest) AddToTree(*stack, stack->rank(), &tree);
  return ToProto(tree);
}

}  // namespace rollcall
