// SPDX-License-Identifier: Apache-2.0
#include "agent/symbols/source_files.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <functional>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "agent/processes/open_in_root.h"
#include "agent/processes/proc_files.h"
#include "agent/symbols/file_in_use.h"
#include "base/open_regular.h"
#include "base/read_file.h"
#include "base/unique_fd.h"

namespace rollcall {
namespace {

constexpr size_t kMostBytes = 1 << 20;     // of a file
constexpr size_t kMostAllBytes = 4 << 20;  // of a process
constexpr size_t kMostFiles = 32;
constexpr size_t kMostBlocks = 8;  // around a line
// A path may lie on a server that does not answer: only an open file has a device.
constexpr uint64_t kSourceDevice = ~uint64_t{0};

// The agent may read more than the process, which must not learn of it.
bool MayRead(const struct stat& process, const struct stat& file) {
  if ((file.st_mode & S_IROTH) != 0 || process.st_uid == 0) return true;
  if (file.st_uid == process.st_uid) return (file.st_mode & S_IRUSR) != 0;
  return file.st_gid == process.st_gid && (file.st_mode & S_IRGRP) != 0;
}

}  // namespace

SourceFiles::SourceFiles(std::string proc_root, pid_t pid, const ModuleFiles& files)
    : proc_root_(std::move(proc_root)), pid_(pid), files_(files) {}

std::string SourceFiles::Read(const std::string& file) const {
  const FileId id = {kSourceDevice, std::hash<std::string>()(file)};
  if (files_.IsLeftOut(id)) return "";
  SetFileInUse(id);
  struct stat process, status;
  if (stat(absl::StrCat(proc_root_, "/", pid_).c_str(), &process) != 0) return "";
  const UniqueFd path = OpenInRoot(ProcPath(proc_root_, pid_, "root"), file, O_PATH);
  if (!path.valid()) return "";
  const UniqueFd fd = ReopenRegular(path, O_RDONLY, &status);
  if (!fd.valid() || !MayRead(process, status)) return "";
  const std::optional<std::string> text = ReadUpTo(fd.get(), kMostBytes + 1);
  return text.has_value() && text->size() <= kMostBytes ? *text : "";
}

const std::string& SourceFiles::TextOf(const std::string& file) {
  static const std::string kNone;
  const auto known = texts_.find(file);
  if (known != texts_.end()) return known->second;
  if (texts_.size() == kMostFiles || bytes_ > kMostAllBytes) return kNone;
  const std::string& text = texts_[file] = Read(file);
  bytes_ += text.size();
  return text;
}

bool SourceFiles::FindBlocks(const std::string& file, int line, std::vector<SourceBlock>* blocks,
                             int32_t* returns_at) {
  if (!absl::StartsWith(file, "/") || !absl::EndsWith(file, ".py") || line < 1) return false;
  const std::string& text = TextOf(file);
  if (text.empty()) return false;
  *blocks = BlocksAround(text, line, kMostBlocks);
  *returns_at = ReturnBefore(text, line);
  return true;
}

}  // namespace rollcall
