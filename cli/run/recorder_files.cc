// SPDX-License-Identifier: Apache-2.0
#include "cli/run/recorder_files.h"

#include <unistd.h>

#include <array>
#include <filesystem>
#include <random>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "agent/processes/rank_environment.h"

namespace rollcall {
namespace {

namespace fs = std::filesystem;

constexpr char kFolderOfPipes[] = "/tmp";
constexpr char kPipe[] = "TORCH_NCCL_DEBUG_INFO_PIPE_FILE";
// The newest name first: PyTorch prefers it, too.
constexpr std::array<const char*, 2> kDumps = {"TORCH_FR_DUMP_TEMP_FILE",
                                               "TORCH_NCCL_DEBUG_INFO_TEMP_FILE"};

bool IsNamedByUser(const std::function<const char*(const char*)>& getenv, const char* name) {
  const char* value = getenv(name);
  return value != nullptr && *value != '\0';
}

}  // namespace

std::map<std::string, std::string> RecorderVariables(
    const std::function<const char*(const char*)>& getenv, const std::string& prefix) {
  std::map<std::string, std::string> variables;
  if (prefix.empty()) return variables;
  if (!IsNamedByUser(getenv, kPipe)) variables[kPipe] = prefix;
  for (const char* name : kDumps) {
    if (IsNamedByUser(getenv, name)) return variables;
  }
  for (const char* name : kDumps) variables[name] = prefix;
  return variables;
}

std::string MakeRecorderPrefix() {
  if (access(kFolderOfPipes, W_OK | X_OK) != 0) return "";
  std::random_device random;
  return absl::StrFormat("%s/rollcall-%08x%08x-rank_", kFolderOfPipes, random(), random());
}

RecorderFiles FindRecorderFiles(const std::string& environ, int rank) {
  RecorderFiles files;
  const absl::string_view pipe = FindInEnviron(environ, kPipe);
  absl::string_view dump;
  for (const char* name : kDumps) {
    if (dump.empty()) dump = FindInEnviron(environ, name);
  }
  if (rank < 0 || !absl::StartsWith(pipe, "/") || !absl::StartsWith(dump, "/")) return files;
  files.pipe = absl::StrCat(pipe, rank, ".pipe");
  files.dump = absl::StrCat(dump, rank);
  return files;
}

std::string RemoveRecorderPipes(const std::string& prefix) {
  std::string dump;
  if (prefix.empty()) return dump;
  std::error_code error;
  for (auto at = fs::directory_iterator(kFolderOfPipes, error);
       !error && at != fs::directory_iterator(); at.increment(error)) {
    const std::string path = at->path().string();
    if (!absl::StartsWith(path, prefix)) continue;
    std::error_code ignored;
    if (fs::is_fifo(at->symlink_status(ignored))) {
      fs::remove(path, ignored);
    } else if (dump.empty() || path < dump) {
      dump = path;
    }
  }
  return dump;
}

}  // namespace rollcall
