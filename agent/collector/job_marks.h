// SPDX-License-Identifier: Apache-2.0
// What an environment and a map of memory show of a process's job: marks that it has in common with
// the other ranks, and the libraries by which ranks talk. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace rollcall {

// As v1::JobMark.
struct Mark {
  std::string kind, value;
  bool of_host = false;
};

// Returns the marks, the best first. `host`: the name of this host, with the network namespace of
// the process, for addresses that mean another machine on each host.
std::vector<Mark> FindMarks(absl::string_view environ, const std::string& host);

// How many ranks of its job the launcher has started on this host, by the environment; 0 if it does
// not.
int32_t LocalWorldSize(absl::string_view environ);

// "nccl" for "/usr/lib/libnccl.so.2"; empty if no library matters.
absl::string_view LibraryOf(absl::string_view path);

// Whether ranks talk by threads of this name: those of NCCL, gloo and their process groups.
bool IsThreadOfRank(absl::string_view name);

// Whether the arguments (as in /proc/PID/cmdline) are those of a helper of a language's runtime,
// which inherits a rank and does not run the program.
bool IsRuntimeHelper(absl::string_view command);

// "train.py" of the arguments; "" if there is no script or module.
std::string ScriptOf(absl::string_view command);

}  // namespace rollcall
