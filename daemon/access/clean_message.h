// SPDX-License-Identifier: Apache-2.0
// Cleans the text in messages once, where they arrive.
#pragma once

#include <google/protobuf/message.h>

namespace rollcall {

namespace v1 {
class AgentMessage;
}

// Applies CleanText() to every string of the message and of its children. Leaves fields of type
// bytes unchanged.
void CleanStrings(google::protobuf::Message* message);

// Does the same for messages of agents. Of a tick, which has thousands of numbers, visits only the
// texts.
void CleanStrings(v1::AgentMessage* message);

}  // namespace rollcall
