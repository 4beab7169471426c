// SPDX-License-Identifier: Apache-2.0
#include "agent/collector/redact_update.h"

#include <string>

namespace rollcall {
namespace {

void Redact(const Redactor& redactor, std::string* text) {
  if (!text->empty()) *text = redactor.Redact(*text);
}

void RedactEvidence(const Redactor& redactor, v1::Evidence* evidence) {
  Redact(redactor, evidence->mutable_error());
  Redact(redactor, evidence->mutable_phase());
  for (v1::BlockedCall& call : *evidence->mutable_blocked()) {
    Redact(redactor, call.mutable_key());
  }
  if (!evidence->has_thread_failure()) return;
  Redact(redactor, evidence->mutable_thread_failure()->mutable_thread());
  Redact(redactor, evidence->mutable_thread_failure()->mutable_error());
}

}  // namespace

void Redact(const Redactor& redactor, SendArguments send, v1::ProcessUpdate* update) {
  if (update->has_identity()) {
    v1::Identity* identity = update->mutable_identity();
    *identity->mutable_command() = CommandToSend(identity->command(), send, redactor);
#define PROCESS_DETAIL(name) Redact(redactor, identity->mutable_##name());
#include "proto/facts.def"
  }
  if (update->has_evidence()) RedactEvidence(redactor, update->mutable_evidence());
}

void Redact(const Redactor& redactor, v1::ProcessStack* stack) {
  for (v1::ThreadStack& thread : *stack->mutable_threads()) {
    Redact(redactor, thread.mutable_name());
    if (thread.has_handles()) Redact(redactor, thread.mutable_handles()->mutable_text());
  }
  for (v1::ChildProcess& child : *stack->mutable_children()) {
    Redact(redactor, child.mutable_name());
  }
}

void Redact(const Redactor& redactor, v1::HostFacts* facts) {
  for (v1::HostFact& fact : *facts->mutable_facts()) {
    Redact(redactor, fact.mutable_subject());
    Redact(redactor, fact.mutable_text());
  }
  for (v1::HostProbe& probe : *facts->mutable_probes()) Redact(redactor, probe.mutable_note());
}

}  // namespace rollcall
