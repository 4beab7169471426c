// SPDX-License-Identifier: Apache-2.0
// The line that a shell on another host runs to look at its jobs. Pure.
//
// It runs the `rollcall` that is installed there, if it is of this version. Otherwise it asks for
// this program, which is one static file, puts it into a new folder that no other user can enter,
// runs it, and removes the folder, whatever happens. It needs no more of the host than a POSIX
// shell with cat, chmod, ln, mkdir, rm and wc.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace rollcall {

struct RemoteScript {
  // 32 random hex digits: the name of the folder, which cannot be guessed, and the mark of the
  // program's output among what a login may print.
  std::string token;
  std::string version;                 // VersionLine("rollcall") of this program
  uint64_t program_bytes = 0;          // of this program
  std::vector<std::string> arguments;  // of rollcall: "diagnose", "--look=...", ...
};

// What the line writes to its stdout, each a line of its own.
std::string NeedsProgramLine(absl::string_view token);

// Returns the argument of `sh -c`.
std::string ScriptLine(const RemoteScript& script);

// Returns the text in single quotes, for any shell: sh, csh, fish.
std::string ShellQuoted(absl::string_view text);

}  // namespace rollcall
