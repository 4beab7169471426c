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

void RedactEnd(const Redactor& redactor, v1::OtherEnd* end) {
  for (std::string& name : *end->mutable_names()) Redact(redactor, &name);
}

void RedactThread(const Redactor& redactor, v1::ThreadStack* thread) {
  Redact(redactor, thread->mutable_name());
  Redact(redactor, thread->mutable_awaited_key());
  if (thread->has_handles()) Redact(redactor, thread->mutable_handles()->mutable_text());
  if (thread->has_other_end()) RedactEnd(redactor, thread->mutable_other_end());
  if (thread->has_watched()) RedactEnd(redactor, thread->mutable_watched());
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
  for (v1::ThreadStack& thread : *stack->mutable_threads()) RedactThread(redactor, &thread);
  for (auto* processes : {stack->mutable_children(), stack->mutable_others()}) {
    for (v1::ChildProcess& process : *processes) {
      Redact(redactor, process.mutable_name());
      for (v1::ThreadStack& thread : *process.mutable_threads()) RedactThread(redactor, &thread);
    }
  }
  for (v1::FileLock& lock : *stack->mutable_locks()) Redact(redactor, lock.mutable_path());
}

void Redact(const Redactor& redactor, v1::HostFacts* facts) {
  for (v1::HostFact& fact : *facts->mutable_facts()) {
    Redact(redactor, fact.mutable_subject());
    Redact(redactor, fact.mutable_text());
  }
  for (v1::HostProbe& probe : *facts->mutable_probes()) Redact(redactor, probe.mutable_note());
}

}  // namespace rollcall
