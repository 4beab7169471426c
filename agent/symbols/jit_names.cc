// SPDX-License-Identifier: Apache-2.0
#include "agent/symbols/jit_names.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "agent/processes/descriptor_socket.h"
#include "agent/processes/open_in_root.h"
#include "agent/processes/proc_files.h"
#include "agent/symbols/file_in_use.h"
#include "base/open_regular.h"

namespace rollcall {
namespace {

constexpr size_t kMaxBytes = 64 << 20;
constexpr size_t kMaxName = 512;

// Returns the pid in the process's own pid namespace, the last one of NSpid.
std::string ReadOwnPidText(const std::string& proc_root, pid_t pid) {
  const std::string status = ReadProcFile(ProcPath(proc_root, pid, "status")).value_or("");
  const size_t at = status.find("\nNSpid:");
  if (at == std::string::npos) return std::to_string(pid);
  const absl::string_view line =
      absl::string_view(status).substr(at + 7, status.find('\n', at + 1) - at - 7);
  return std::string(line.substr(line.find_last_of(" \t") + 1));
}

// Every user can write to /tmp, so this reads only files of the process's user or of root. A link
// in the path stays in the process's root.
std::string ReadMap(const std::string& root, const std::string& path, uid_t owner) {
  struct stat about;
  const UniqueFd fd = ReopenRegular(OpenInRoot(root, path, O_PATH | O_NOFOLLOW), O_RDONLY, &about);
  if (!fd.valid() || (about.st_uid != owner && about.st_uid != 0)) return "";
  std::string text(std::min<size_t>(static_cast<size_t>(about.st_size), kMaxBytes), '\0');
  const ssize_t count = pread(fd.get(), text.data(), text.size(), 0);
  text.resize(count > 0 ? static_cast<size_t>(count) : 0);
  return text;
}

}  // namespace

JitNames JitNames::Parse(absl::string_view text) {
  JitNames names;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    const std::vector<absl::string_view> words = absl::StrSplit(line, absl::MaxSplits(' ', 2));
    uint64_t start = 0, size = 0;
    if (words.size() != 3 || !absl::SimpleHexAtoi(words[0], &start) ||
        !absl::SimpleHexAtoi(words[1], &size) || size == 0 || start + size < start) {
      continue;
    }
    names.code_[start] = {start + size, std::string(words[2].substr(0, kMaxName))};
  }
  return names;
}

JitNames JitNames::ReadForProcess(const std::string& proc_root, pid_t pid) {
  SetFileInUse({});  // no file of a mapping
  struct stat process;
  if (stat(absl::StrCat(proc_root, "/", pid).c_str(), &process) != 0) return {};
  return Parse(ReadMap(ProcPath(proc_root, pid, "root"),
                       absl::StrCat("/tmp/perf-", ReadOwnPidText(proc_root, pid), ".map"),
                       process.st_uid));
}

std::string JitNames::Find(uint64_t address) const {
  auto after = code_.upper_bound(address);
  if (after == code_.begin()) return "";
  --after;
  return address < after->second.end ? after->second.name : "";
}

}  // namespace rollcall
