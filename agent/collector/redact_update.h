// SPDX-License-Identifier: Apache-2.0
// Hides secrets in the texts that an agent sends. The library and the agent record names and lines
// of stacks, no values but those of exceptions, so only texts that a program or its user wrote can
// contain a secret.
#pragma once

#include "rollcall/v1/agent.pb.h"
#include "security/harmless_arguments.h"
#include "security/redact.h"

namespace rollcall {

// The command line, of which `send` selects a part, the exception that ended the process, and the
// phase.
void Redact(const Redactor& redactor, SendArguments send, v1::ProcessUpdate* update);

// The names of the threads and children, which the program gives, and the texts of exceptions.
void Redact(const Redactor& redactor, v1::ProcessStack* stack);

// Lines of the kernel's log, and the names of servers and file systems.
void Redact(const Redactor& redactor, v1::HostFacts* facts);

}  // namespace rollcall
