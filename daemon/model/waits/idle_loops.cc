// SPDX-License-Identifier: Apache-2.0
#include "daemon/model/waits/idle_loops.h"

#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

namespace rollcall {
namespace {

using Names = std::vector<absl::string_view>;

absl::string_view LastWord(absl::string_view name) { return name.substr(name.rfind('.') + 1); }

absl::string_view FirstWord(absl::string_view name) { return name.substr(0, name.find('.')); }

bool IsOfPython(absl::string_view name) {
  return absl::StrContains(name, '.') && !absl::StrContains(name, "::");
}

// Returns nullptr if the name is not a server's loop.
const WaitFrame* LoopNamed(absl::string_view name) {
  for (const WaitFrame& loop : WaitFramesOf(waits::kServerLoop)) {
    const bool fits = loop.where.empty() ? name == loop.name
                                         : IsOfPython(name) && FirstWord(name) == loop.where &&
                                               LastWord(name) == loop.name;
    if (fits) return &loop;
  }
  return nullptr;
}

bool OnlyWaits(absl::string_view name) {
  if (!IsOfPython(name)) {
    // What the interpreter and the C library call shows nothing; a function of the program does.
    return !absl::StrContains(name, "::") || absl::StrContains(name, "asio::") ||
           absl::StrContains(name, "std::") || absl::StrContains(name, "grpc") ||
           absl::StrContains(name, "ray::");
  }
  return IsWait(LastWord(name), waits::kPause);
}

// A function of C that waits. Inside a loop of Python, others are the interpreter's.
bool IsKernelWait(absl::string_view name) {
  return absl::StrContains(name, "::") || HasWait(name, waits::kKernelPause);
}

}  // namespace

// Between a loop and the kernel stands only what waits.
const WaitFrame* FindIdleLoop(const std::string& functions) {
  const Names names = absl::StrSplit(functions, ' ', absl::SkipEmpty());  // innermost first
  bool is_in_kernel = true;
  for (const absl::string_view name : names) {
    const WaitFrame* loop = LoopNamed(name);
    if (loop != nullptr) return loop->where.empty() && !is_in_kernel ? nullptr : loop;
    if (!OnlyWaits(name)) return nullptr;
    is_in_kernel = is_in_kernel && IsKernelWait(name);
  }
  return nullptr;
}

}  // namespace rollcall
