// SPDX-License-Identifier: Apache-2.0
#include "cli/remote/remote_script.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"

namespace rollcall {
namespace {

// $1: token, $2: version, $3: size, $4: arguments. A folder may be of a file system that runs no
// programs, which only a try shows. Never /dev/shm: in a pod it is small, and NCCL needs it.
constexpr char kScript[] =
    "umask 077; "
    "if [ \"$(rollcall --version </dev/null 2>/dev/null)\" = $2 ]; "
    "then exec rollcall $4 </dev/null; fi; "
    "d=; for t in \"${TMPDIR:-/tmp}\" /tmp /var/tmp \"$HOME\"; do d=\"$t/rollcall-$1\"; "
    "if mkdir -m 0700 \"$d\" 2>/dev/null; then "
    "if echo \"#!/bin/sh\" >\"$d/try\" && chmod 0700 \"$d/try\" && \"$d/try\" 2>/dev/null; "
    "then break; fi; rm -rf \"$d\"; fi; d=; done; "
    "if [ -z \"$d\" ]; then echo \"found no folder where programs may run: install rollcall there\" "
    ">&2; exit 41; fi; "
    "trap 'rm -rf \"$d\"' 0; trap \"exit 1\" 1 2 13 15; "
    "echo \"$5\"; cat >\"$d/rollcall\"; "
    "if [ \"$(wc -c <\"$d/rollcall\")\" -ne $3 ]; "
    "then echo \"the program did not arrive whole\" >&2; exit 42; fi; "
    "chmod 0700 \"$d/rollcall\"; ln -s rollcall \"$d/rollcall-probe\"; "
    "\"$d/rollcall\" $4 </dev/null; exit $?";

}  // namespace

std::string NeedsProgramLine(absl::string_view token) {
  return absl::StrCat("rollcall-needs-program ", token);
}

std::string ShellQuoted(absl::string_view text) {
  return absl::StrCat("'", absl::StrReplaceAll(text, {{"'", "'\\''"}}), "'");
}

std::string ScriptLine(const RemoteScript& script) {
  const std::string arguments = absl::StrJoin(
      script.arguments, " ",
      [](std::string* out, const std::string& argument) { out->append(ShellQuoted(argument)); });
  return absl::StrReplaceAll(kScript, {{"$1", script.token},
                                       {"$2", ShellQuoted(script.version)},
                                       {"$3", std::to_string(script.program_bytes)},
                                       {"$4", arguments},
                                       {"$5", NeedsProgramLine(script.token)}});
}

}  // namespace rollcall
