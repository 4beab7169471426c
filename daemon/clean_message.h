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

// The same, in a tenth of the time for the ticks of large hosts: the numbers in them are not walked.
void CleanStrings(v1::AgentMessage* message);

}  // namespace rollcall
