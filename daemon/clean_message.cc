#include "daemon/clean_message.h"

#include <string>
#include <vector>

#include "proto/clean_text.h"

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
    const std::string& text =
        reflection.GetRepeatedStringReference(*message, field, i, &scratch);
    if (!IsCleanText(text)) reflection.SetRepeatedString(message, field, i, CleanText(text));
  }
}

void CleanChildren(const Reflection& reflection, const FieldDescriptor* field, Message* message) {
  if (!field->is_repeated()) return CleanStrings(reflection.MutableMessage(message, field));
  for (int i = 0; i < reflection.FieldSize(*message, field); ++i) {
    CleanStrings(reflection.MutableRepeatedMessage(message, field, i));
  }
}

}  // namespace

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
