// SPDX-License-Identifier: Apache-2.0
#include "daemon/report/writer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/report/html.h"
#include "daemon/report/incident_words.h"
#include "daemon/report/json.h"
#include "daemon/report/stacks_text.h"
#include "daemon/report/text.h"

namespace rollcall {
namespace {

struct File {
  std::string name;
  std::string content;
};

constexpr int kMaxNames = 1000;
// Reports hold command lines and stacks: for the owner, and the group to read.
constexpr mode_t kFolderMode = 0750;
constexpr mode_t kFileMode = 0640;

absl::Status Failed(const std::string& what, const std::string& path, int error) {
  const std::string message = absl::StrCat("cannot ", what, " ", path, ": ", strerror(error));
  if (error == ENOSPC || error == EDQUOT) return absl::ResourceExhaustedError(message);
  if (error == EMFILE || error == ENFILE) return absl::UnavailableError(message);
  if (error == ENOENT) return absl::NotFoundError(message);
  if (error == EACCES || error == EPERM || error == EROFS) {
    return absl::PermissionDeniedError(message);
  }
  return absl::FailedPreconditionError(message);
}

absl::Status WriteAll(int fd, const std::string& content, const std::string& path) {
  for (size_t done = 0; done < content.size();) {
    const ssize_t n = write(fd, content.data() + done, content.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return Failed("write", path, errno);
    done += static_cast<size_t>(n);
  }
  if (fsync(fd) != 0) return Failed("write", path, errno);
  return absl::OkStatus();
}

absl::Status WriteFile(const std::string& path, const std::string& content) {
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, kFileMode);
  if (fd < 0) return Failed("create", path, errno);
  absl::Status status = WriteAll(fd, content, path);
  if (close(fd) != 0 && status.ok()) status = Failed("write", path, errno);
  return status;
}

// A rename is on disk once its folder is.
void SyncFolder(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;
  fsync(fd);
  close(fd);
}

// The extent of a report: smaller if the disk has no room for all of it.
enum class Extent { kWhole, kCulpritsStacks, kNoStacks };

v1::Incident CutTo(Extent extent, v1::Incident incident) {
  if (extent == Extent::kWhole) return incident;
  incident.clear_stack_tree();
  auto* stacks = incident.mutable_stacks();
  stacks->erase(std::remove_if(stacks->begin(), stacks->end(),
                               [extent](const v1::ProcessStack& stack) {
                                 return extent == Extent::kNoStacks || !stack.culprit();
                               }),
                stacks->end());
  if (!incident.verdicts().empty()) {
    incident.mutable_verdicts(0)->add_missing_evidence(absl::StrCat(
        "the disk was full when Rollcall wrote this report: ",
        extent == Extent::kNoStacks ? "all stacks" : "the stacks of all but the culprits",
        " are missing"));
  }
  return incident;
}

absl::StatusOr<std::vector<File>> Render(const v1::Incident& whole, Extent extent) {
  const v1::Incident incident = CutTo(extent, whole);
  absl::StatusOr<std::string> json = ToJson(incident);
  if (!json.ok()) return json.status();
  return std::vector<File>{{"stacks.txt", StacksToText(incident)},
                           {"report.txt", ToText(incident)},
                           {"report.html", ToHtml(incident, extent == Extent::kWhole)},
                           {"incident.json", *std::move(json)}};
}

absl::Status MakeFolder(const std::string& path) {
  std::error_code error;
  const bool is_new = std::filesystem::create_directories(path, error);
  if (error) return Failed("create the report folder", path, error.value());
  if (is_new) chmod(path.c_str(), kFolderMode);
  return absl::OkStatus();
}

absl::StatusOr<std::string> MakeTemporary(const std::string& report_dir) {
  std::string path = absl::StrCat(report_dir, "/.rollcall-XXXXXX");
  if (mkdtemp(path.data()) == nullptr) return Failed("write into", report_dir, errno);
  chmod(path.c_str(), kFolderMode);  // mkdtemp keeps the group out too
  return path;
}

void Remove(const std::string& folder) {
  std::error_code ignored;
  std::filesystem::remove_all(folder, ignored);
}

absl::Status WriteFiles(const std::string& folder, const std::vector<File>& files) {
  for (const auto& [name, content] : files) {
    const absl::Status status = WriteFile(absl::StrCat(folder, "/", name), content);
    if (!status.ok()) return status;
  }
  SyncFolder(folder);
  return absl::OkStatus();
}

std::string NameFor(const v1::Incident& incident) {
  const auto& time = incident.has_confirmed_at() ? incident.confirmed_at() : incident.opened_at();
  const std::string cause = incident.verdicts().empty() ? "unknown" : incident.verdicts(0).cause();
  return absl::StrCat(TimeForName(time), "-", cause);
}

bool Exists(const std::string& path) {
  struct stat info;
  return lstat(path.c_str(), &info) == 0;
}

// The first name that is free, counted from `*n`.
std::string FreePath(const std::string& wanted, int* n) {
  for (; *n <= kMaxNames; ++*n) {
    const std::string path = *n == 1 ? wanted : absl::StrCat(wanted, "-", *n);
    if (!Exists(path)) return path;
  }
  return "";
}

// Writes as much of the report as fits on the disk.
absl::Status WriteWhatFits(const std::string& folder, const v1::Incident& incident) {
  absl::Status status;
  for (const Extent extent : {Extent::kWhole, Extent::kCulpritsStacks, Extent::kNoStacks}) {
    const absl::StatusOr<std::vector<File>> files = Render(incident, extent);
    if (!files.ok()) return files.status();
    status = WriteFiles(folder, *files);
    if (!absl::IsResourceExhausted(status)) return status;
  }
  return status;
}

// Writes all files under a hidden name, then renames the folder.
absl::StatusOr<std::string> Publish(const std::string& temporary, const std::string& wanted,
                                    v1::Incident incident) {
  for (int n = 1;; ++n) {
    const std::string path = FreePath(wanted, &n);
    if (path.empty()) return Failed("find a free name like", wanted, EEXIST);
    incident.set_report_path(path);
    const absl::Status written = WriteWhatFits(temporary, incident);
    if (!written.ok()) return written;
    if (rename(temporary.c_str(), path.c_str()) == 0) return path;
    // Another writer may have taken the name just now.
    if (errno != EEXIST && errno != ENOTEMPTY && errno != ENOTDIR) {
      return Failed("rename the report to", path, errno);
    }
  }
}

}  // namespace

absl::Status CheckReportDir(const std::string& report_dir) {
  const absl::Status made = MakeFolder(report_dir);
  if (!made.ok()) return made;
  const absl::StatusOr<std::string> temporary = MakeTemporary(report_dir);
  if (!temporary.ok()) return temporary.status();
  Remove(*temporary);
  return absl::OkStatus();
}

absl::StatusOr<std::string> CreateReport(const std::string& report_dir, v1::Incident incident) {
  const absl::Status made = MakeFolder(report_dir);
  if (!made.ok()) return made;
  std::error_code error;
  const std::string folder = std::filesystem::canonical(report_dir, error).string();
  if (error) return Failed("find the report folder", report_dir, error.value());
  const absl::StatusOr<std::string> temporary = MakeTemporary(folder);
  if (!temporary.ok()) return temporary.status();
  const std::string wanted = absl::StrCat(folder, "/", NameFor(incident));
  absl::StatusOr<std::string> path = Publish(*temporary, wanted, std::move(incident));
  if (!path.ok()) {
    Remove(*temporary);
    return path.status();
  }
  SyncFolder(folder);
  return path;
}

absl::Status UpdateReport(const std::string& folder, v1::Incident incident) {
  incident.set_report_path(folder);
  const absl::StatusOr<std::vector<File>> files = Render(incident, Extent::kWhole);
  if (!files.ok()) return files.status();
  const auto fresh = [&folder](const File& file) {
    return absl::StrCat(folder, "/.", file.name, ".new");
  };
  // All of them first: the files of one report must show the same moment.
  absl::Status written;
  for (const File& file : *files) {
    if (written.ok()) written = WriteFile(fresh(file), file.content);
  }
  for (const File& file : *files) {
    if (!written.ok()) {
      unlink(fresh(file).c_str());
    } else if (rename(fresh(file).c_str(), absl::StrCat(folder, "/", file.name).c_str()) != 0) {
      written = Failed("replace", file.name, errno);
    }
  }
  SyncFolder(folder);
  return written;
}

}  // namespace rollcall
