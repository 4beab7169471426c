// SPDX-License-Identifier: Apache-2.0
#include "agent/processes/process_namespaces.h"

#include <sys/stat.h>
#include <unistd.h>

#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "agent/processes/proc_files.h"
#include "agent/processes/proc_stat.h"
#include "base/durations.h"
#include "base/read_file.h"

namespace rollcall {
namespace {

// Returns 0 if it is unknown.
uint64_t ReadInode(const std::string& path) {
  struct stat about;
  return stat(path.c_str(), &about) == 0 ? about.st_ino : 0;
}

// Returns the offset of CLOCK_MONOTONIC over the host's in the time namespace of `process`: a pid,
// or "self".
std::optional<int64_t> MonotonicOffset(const std::string& proc_root, const std::string& process) {
  const std::string directory = absl::StrCat(proc_root, "/", process);
  // timens_offsets has the offsets of the namespace for children, so that one must be the same.
  const uint64_t own = ReadInode(directory + "/ns/time");
  if (own == 0 || own != ReadInode(directory + "/ns/time_for_children")) return std::nullopt;
  const auto text = ReadProcFile(directory + "/timens_offsets", 4096);
  if (!text.ok()) return std::nullopt;
  for (const absl::string_view line : absl::StrSplit(*text, '\n')) {
    const std::vector<absl::string_view> words =
        absl::StrSplit(line, absl::ByAnyChar(" \t"), absl::SkipEmpty());
    int64_t seconds = 0, ns = 0;
    if (words.size() == 3 && words[0] == "monotonic" && absl::SimpleAtoi(words[1], &seconds) &&
        absl::SimpleAtoi(words[2], &ns)) {
      return seconds * kSecond + ns;
    }
  }
  return std::nullopt;
}

}  // namespace

pid_t ReadOwnPid(const std::string& proc_root, pid_t pid) {
  const auto thread = ReadProcThread(proc_root, pid, pid);
  return thread.ok() ? thread->own_tid : 0;
}

uint64_t ReadPidNamespace(const std::string& proc_root, pid_t pid) {
  return ReadInode(ProcPath(proc_root, pid, "ns/pid"));
}

uint64_t ReadProcPidNamespace(const std::string& proc_root) {
  // The /proc of another namespace has another pid for this process, or none.
  if (ReadLink(proc_root + "/self") != std::to_string(getpid())) return 0;
  return ReadInode(proc_root + "/self/ns/pid");
}

std::string ReadNetworkNamespace(const std::string& proc_root, const std::string& process) {
  return ReadLink(absl::StrCat(proc_root, "/", process, "/ns/net"));
}

std::map<pid_t, pid_t> TranslateThreads(const std::string& proc_root, pid_t pid) {
  std::map<pid_t, pid_t> threads;
  const auto tids = ListNumbers(ProcPath(proc_root, pid, "task"));
  if (!tids.ok()) return threads;
  for (const pid_t tid : *tids) {
    const auto thread = ReadProcThread(proc_root, pid, tid);
    if (thread.ok() && thread->own_tid != 0) threads[thread->own_tid] = tid;
  }
  return threads;
}

std::optional<int64_t> MonotonicAhead(const std::string& proc_root, pid_t pid) {
  const uint64_t own = ReadInode(proc_root + "/self/ns/time");
  // Linux before 5.6 has no time namespaces: all processes have the same clock.
  if (own == 0 && ReadInode(proc_root + "/self/ns/pid") != 0) return 0;
  if (own != 0 && own == ReadInode(ProcPath(proc_root, pid, "ns/time"))) return 0;
  const auto process_offset = MonotonicOffset(proc_root, std::to_string(pid));
  const auto own_offset = MonotonicOffset(proc_root, "self");
  if (!process_offset.has_value() || !own_offset.has_value()) return std::nullopt;
  return *process_offset - *own_offset;
}

}  // namespace rollcall
