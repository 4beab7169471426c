// SPDX-License-Identifier: Apache-2.0
#include "daemon/access/clean_message.h"

#include <string>
#include <vector>

#include "base/clean_text.h"
#include "rollcall/v1/agent.pb.h"

namespace rollcall {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

void CleanString(const Reflection& reflection, const FieldDescriptor* field, Message* message) {
  std::string scratch;
  if (!field->is_repeated()) {
    const std::string& text = reflection.GetStringReference(*message, field, &scratch);
    if (!IsCleanText(text)) reflection.SetString(message, field, CleanText(text));
    return;
  }
  for (int i = 0; i < reflection.FieldSize(*message, field); ++i) {
    const std::string& text = reflection.GetRepeatedStringReference(*message, field, i, &scratch);
    if (!IsCleanText(text)) reflection.SetRepeatedString(message, field, i, CleanText(text));
  }
}

void CleanChildren(const Reflection& reflection, const FieldDescriptor* field, Message* message) {
  if (!field->is_repeated()) return CleanStrings(reflection.MutableMessage(message, field));
  for (int i = 0; i < reflection.FieldSize(*message, field); ++i) {
    CleanStrings(reflection.MutableRepeatedMessage(message, field, i));
  }
}

void Clean(std::string* text) {
  if (!IsCleanText(*text)) *text = CleanText(*text);
}

// Reflection costs more than all the rest, and each tick has this message for each process.
void CleanEvidence(v1::Evidence* evidence) {
#define CLEAN(field) \
  if (!IsCleanText(evidence->field())) evidence->set_##field(CleanText(evidence->field()));
  CLEAN(state)
  CLEAN(wait_channel)
  CLEAN(error)
  CLEAN(phase)
#undef CLEAN
  for (v1::BlockedCall& call : *evidence->mutable_blocked()) {
    if (!IsCleanText(call.key())) call.set_key(CleanText(call.key()));
  }
  if (evidence->has_thread_failure()) {
    Clean(evidence->mutable_thread_failure()->mutable_thread());
    Clean(evidence->mutable_thread_failure()->mutable_error());
  }
  for (v1::CallingThread& caller : *evidence->mutable_callers()) Clean(caller.mutable_name());
}

void CleanTick(v1::Tick* tick) {
  for (v1::ProcessUpdate& process : *tick->mutable_processes()) {
    if (process.has_identity()) CleanStrings(process.mutable_identity());
    if (process.has_evidence()) CleanEvidence(process.mutable_evidence());
    for (std::string& site : *process.mutable_sites()) Clean(&site);
    for (v1::CommUpdate& comm : *process.mutable_communicators()) {
      if (!IsCleanText(comm.name())) comm.set_name(CleanText(comm.name()));
      if (!comm.has_records()) continue;
      for (std::string& shape : *comm.mutable_records()->mutable_shape()) Clean(&shape);
    }
  }
}

}  // namespace

void CleanStrings(v1::AgentMessage* message) {
  if (message->has_tick()) return CleanTick(message->mutable_tick());
  CleanStrings(static_cast<Message*>(message));
}

void CleanStrings(Message* message) {
  const Reflection& reflection = *message->GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection.ListFields(*message, &fields);
  for (const FieldDescriptor* field : fields) {
    if (field->type() == FieldDescriptor::TYPE_STRING) {
      CleanString(reflection, field, message);
    } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      CleanChildren(reflection, field, message);
    }
  }
}

}  // namespace rollcall
