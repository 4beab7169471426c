// SPDX-License-Identifier: Apache-2.0
// Where messages come in, their text is cleaned once, before anybody reads it.
#pragma once

#include <google/protobuf/message.h>

namespace rollcall {

namespace v1 {
class AgentMessage;
}

// CleanText() on every string of the message and of those within it. Fields of bytes stay as they
// are.
void CleanStrings(google::protobuf::Message* message);

// The same. Of ticks, which hold thousands of numbers, only the texts are visited.
void CleanStrings(v1::AgentMessage* message);

}  // namespace rollcall
