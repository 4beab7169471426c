// SPDX-License-Identifier: Apache-2.0
// Stacks that agents send for an incident: samples, their comparison, the merged tree in all its
// forms. The input is an Incident, whose stacks arrive one after the other.
#include "daemon/access/clean_message.h"
#include "daemon/agents/stack_motion.h"
#include "daemon/incidents/incident_stacks.h"
#include "daemon/report/stack_merge.h"
#include "daemon/report/stack_places.h"
#include "daemon/report/stacks_text.h"
#include "fuzz_target.h"
#include "proto_mutator.h"
#include "rollcall/v1/incident.pb.h"

namespace rollcall {
namespace fuzz {
namespace {

void ShowTree(const StackTree& tree) {
  (void)ToText(tree, 50);
  (void)ToFolded(tree);
  (void)ToDot(tree);
  (void)ToJson(tree);
  const v1::StackTree message = ToProto(tree, 100);
  Promise(message.nodes_size() <= 100, "a tree has a limit");
  const StackTree copy = FromProto(message);
  Promise(ToProto(copy, 100).nodes_size() <= message.nodes_size() + 1, "a copy does not grow");
}

void Run(Input input) {
  const std::string_view bytes = input.TakeRest();
  v1::Incident sent;
  if (!sent.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return;
  CleanStrings(static_cast<google::protobuf::Message*>(&sent));
  v1::Incident incident;
  *incident.mutable_verdicts() = sent.verdicts();
  StackTree rest;
  for (const v1::ProcessStack& stack : sent.stacks()) {
    (void)ChangeSince(incident, stack);
    (void)FunctionNames(stack);
    if (stack.threads().empty()) {
      AddFailure(stack, &incident);
    } else {
      AddSample(stack, &incident);
    }
    AddToTree(stack, stack.rank(), &rest);
  }
  AddSites(&incident);
  (void)StacksToText(incident);
  ShowTree(rest);
  ShowTree(FromProto(MergedStacks(incident, rest)));
  ShowTree(FromProto(sent.stack_tree()));
}

const Registered kTarget({"stacks", 8192, &Run, &MutateAs<v1::Incident>});

}  // namespace
}  // namespace fuzz
}  // namespace rollcall
