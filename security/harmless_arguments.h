// SPDX-License-Identifier: Apache-2.0
// What of a process's command line leaves its host.
//
// Only what is known to be harmless (harmless_flags.h): the program, the script or module that an
// interpreter or a launcher starts, the names of flags, and the values of listed flags. Of all else
// only the length: "[14 characters]". Not a digest: an attacker with the digest of a short secret
// finds the secret by trying.
//
// A deny list (redact.h) cannot promise that no secret passes. This list can, for secrets that are
// values or bare arguments. It cannot for what poses as a name: a path of a program or script that
// contains a secret, or a secret that reads like the name of a flag, "--" and lower-case words.
//
// Pure. Takes time linear in the length.
#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "security/redact.h"

namespace rollcall {

enum class SendArguments {
  kListed,  // only what is known to be harmless
  kAll,     // all arguments, after Redactor::Redact()
};

// `command`: the arguments, separated by line breaks. In a text without a line break, blanks
// separate them: a title that the process gave itself, or one argument only. The result is one
// line; what is sent of the arguments passes `redactor`, too.
std::string CommandToSend(absl::string_view command, SendArguments send, const Redactor& redactor);

}  // namespace rollcall
