// The door of the daemon: what agents send is cleaned once, before anybody reads it.
#pragma once

#include <google/protobuf/message.h>

namespace rollcall {

// CleanText() on every string of the message and of those within it. Fields of bytes stay as they
// are.
void CleanStrings(google::protobuf::Message* message);

}  // namespace rollcall
