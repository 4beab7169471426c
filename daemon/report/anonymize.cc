// SPDX-License-Identifier: Apache-2.0
#include "daemon/report/anonymize.h"

#include <google/protobuf/message.h>

#include <functional>
#include <map>
#include <set>

#include "absl/strings/strip.h"
#include "daemon/report/anonymize_text.h"

namespace rollcall {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

// "Culprit.host".
std::string NameOf(const FieldDescriptor* field) {
  return std::string(absl::StripPrefix(field->full_name(), "rollcall.v1."));
}

using Visitor = std::function<void(const FieldDescriptor*, Message*)>;

// Calls `visit` for each field that has a value, of the message and of its children.
void Walk(Message* message, const Visitor& visit) {
  const Reflection& reflection = *message->GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection.ListFields(*message, &fields);
  for (const FieldDescriptor* field : fields) {
    if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) {
      visit(field, message);
    } else if (!field->is_repeated()) {
      Walk(reflection.MutableMessage(message, field), visit);
    } else {
      for (int i = 0; i < reflection.FieldSize(*message, field); ++i) {
        Walk(reflection.MutableRepeatedMessage(message, field, i), visit);
      }
    }
  }
}

void ReplaceText(const FieldDescriptor* field,
                 const std::function<std::string(const std::string&)>& replace, Message* message) {
  const Reflection& reflection = *message->GetReflection();
  if (!field->is_repeated()) {
    reflection.SetString(message, field, replace(reflection.GetString(*message, field)));
    return;
  }
  for (int i = 0; i < reflection.FieldSize(*message, field); ++i) {
    reflection.SetRepeatedString(message, field, i,
                                 replace(reflection.GetRepeatedString(*message, field, i)));
  }
}

// A field without a row is hidden like a name: the table does not permit to show it.
TextKind KindOf(const FieldDescriptor* field) {
  static const std::map<std::string, TextKind>& kinds = *[] {
    auto* made = new std::map<std::string, TextKind>;
    for (const TextField& row : TextFields()) made->emplace(row.field, row.kind);
    return made;
  }();
  const auto at = kinds.find(NameOf(field));
  return at == kinds.end() ? TextKind::kDropped : at->second;
}

void ReplacePid(Pseudonyms* names, const FieldDescriptor* field, Message* owner) {
  const Reflection& reflection = *owner->GetReflection();
  if (!field->is_repeated()) {
    reflection.SetInt32(owner, field, names->NumberOf(reflection.GetInt32(*owner, field)));
    return;
  }
  for (int i = 0; i < reflection.FieldSize(*owner, field); ++i) {
    const int32_t pid = reflection.GetRepeatedInt32(*owner, field, i);
    reflection.SetRepeatedInt32(owner, field, i, names->NumberOf(pid));
  }
}

void ReplacePids(Pseudonyms* names, Message* message) {
  const std::set<std::string> pids(PidFields().begin(), PidFields().end());
  Walk(message, [&](const FieldDescriptor* field, Message* owner) {
    if (pids.count(NameOf(field)) != 0) ReplacePid(names, field, owner);
  });
}

}  // namespace

void Anonymize(v1::Incident* incident, Pseudonyms* names) {
  ReplacePids(names, incident);
  incident->clear_silenced();
  for (v1::Verdict& verdict : *incident->mutable_verdicts()) {
    for (v1::Culprit& culprit : *verdict.mutable_culprits()) culprit.clear_uid();
  }
  TextAnonymizer texts(names);
  for (const bool sentences : {false, true}) {
    Walk(incident, [&](const FieldDescriptor* field, Message* owner) {
      if (field->cpp_type() != FieldDescriptor::CPPTYPE_STRING) return;
      const TextKind kind = KindOf(field);
      if ((kind == TextKind::kText) != sentences) return;
      ReplaceText(field, [&](const std::string& text) { return texts.Replace(kind, text); }, owner);
    });
  }
}

}  // namespace rollcall
