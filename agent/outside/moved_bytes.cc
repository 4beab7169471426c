// SPDX-License-Identifier: Apache-2.0
#include "agent/outside/moved_bytes.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "agent/processes/proc_files.h"

namespace rollcall {
namespace {

constexpr size_t kIoBytes = 4096;

}  // namespace

std::optional<uint64_t> ReadMovedBytes(const std::string& proc_root, pid_t pid) {
  const std::string text = ReadProcFile(ProcPath(proc_root, pid, "io"), kIoBytes).value_or("");
  std::optional<uint64_t> moved;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    uint64_t bytes = 0;
    if (!absl::ConsumePrefix(&line, "rchar: ") && !absl::ConsumePrefix(&line, "wchar: ")) continue;
    if (absl::SimpleAtoi(line, &bytes)) moved = moved.value_or(0) + bytes;
  }
  return moved;
}

}  // namespace rollcall
