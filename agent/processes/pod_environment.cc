// SPDX-License-Identifier: Apache-2.0
#include "agent/processes/pod_environment.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "agent/processes/open_in_root.h"
#include "agent/processes/proc_files.h"
#include "agent/processes/rank_environment.h"
#include "base/open_regular.h"
#include "base/read_file.h"
#include "base/unique_fd.h"

namespace rollcall {
namespace {

// "" on an error, and for what is not a regular file: a pipe would block.
std::string ReadStrangersFile(const std::string& root, const std::string& path) {
  const UniqueFd fd = ReopenRegular(OpenInRoot(root, path, O_PATH | O_NOFOLLOW), O_RDONLY);
  if (!fd.valid()) return "";
  return ReadUpTo(fd.get(), kMostPodEnvironment).value_or("");
}

bool IsPodVariable(absl::string_view name) {
  return std::any_of(std::begin(kPodVariables), std::end(kPodVariables),
                     [name](const char* known) { return name == known; });
}

}  // namespace

std::string AddPodVariables(std::string environ, absl::string_view content) {
  for (const absl::string_view line : absl::StrSplit(content, '\n')) {
    const size_t end = line.find('=');
    if (end == absl::string_view::npos || line.find('\0') != absl::string_view::npos) continue;
    const absl::string_view name = line.substr(0, end);
    const bool has_it = FindInEnviron(environ, name).data() != nullptr;
    if (has_it || !IsPodVariable(name)) continue;
    if (!environ.empty() && environ.back() != '\0') environ += '\0';
    absl::StrAppend(&environ, line, absl::string_view("\0", 1));
  }
  return environ;
}

std::string WithPodVariables(std::string environ, const std::string& proc_root, pid_t pid) {
  if (FindInEnviron(environ, kPreloadVariable).data() != nullptr) return environ;
  return AddPodVariables(std::move(environ),
                         ReadStrangersFile(ProcPath(proc_root, pid, "root"), kPodEnvironmentFile));
}

}  // namespace rollcall
