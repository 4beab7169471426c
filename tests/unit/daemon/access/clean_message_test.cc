// SPDX-License-Identifier: Apache-2.0
// CleanStrings() on messages from agents.
#include "daemon/access/clean_message.h"

#include <gtest/gtest.h>

#include <string>

#include "rollcall/v1/agent.pb.h"

namespace rollcall {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

// Adds one of each field, with `text` in every string.
void Fill(const std::string& text, int depth, Message* message) {
  const auto& reflection = *message->GetReflection();
  for (int i = 0; i < message->GetDescriptor()->field_count(); ++i) {
    const FieldDescriptor* field = message->GetDescriptor()->field(i);
    const bool repeated = field->is_repeated();
    if (field->type() == FieldDescriptor::TYPE_STRING) {
      repeated ? reflection.AddString(message, field, text)
               : reflection.SetString(message, field, text);
    } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE && depth > 0) {
      Fill(text, depth - 1,
           repeated ? reflection.AddMessage(message, field)
                    : reflection.MutableMessage(message, field));
    }
  }
}

// In the bytes of a message, 0x1b may also be a length.
bool HasControls(const google::protobuf::Message& message) {
  return message.DebugString().find("\\033") != std::string::npos;
}

TEST(CleanStringsTest, CleansEveryStringOfATick) {
  v1::AgentMessage message;
  Fill("a\x1b\xc2\x9b", 8, message.mutable_tick());
  ASSERT_TRUE(HasControls(message));
  CleanStrings(&message);
  EXPECT_FALSE(HasControls(message)) << message.DebugString();
  EXPECT_EQ(message.tick().processes(0).communicators(0).name(), "a??");
}

TEST(CleanStringsTest, CleansEveryStringOfOtherMessages) {
  v1::AgentMessage message;
  Fill("a\x1b\xc2\x9b", 8, message.mutable_stacks());
  CleanStrings(&message);
  EXPECT_FALSE(HasControls(message)) << message.DebugString();
  v1::AgentMessage hello;
  Fill("a\x1b", 8, hello.mutable_hello());
  CleanStrings(&hello);
  EXPECT_EQ(hello.hello().host(), "a?");
}

}  // namespace
}  // namespace rollcall
