// SPDX-License-Identifier: Apache-2.0
#include "daemon/report/writer.h"

#include <errno.h>
#include <google/protobuf/util/json_util.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/open_regular.h"
#include "daemon/report/html.h"
#include "daemon/report/incident_words.h"
#include "daemon/report/json.h"
#include "daemon/report/report_files.h"
#include "daemon/report/report_text.h"
#include "daemon/report/stacks_text.h"

namespace rollcall {
namespace {

struct File {
  std::string name;
  std::string content;
};

constexpr int kMaxNames = 1000;

// The extent of a report. It is smaller if the disk has too little room.
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

absl::Status WriteFiles(const std::string& folder, const std::vector<File>& files) {
  for (const auto& [name, content] : files) {
    const absl::Status status = WriteFile(absl::StrCat(folder, "/", name), content);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

// The name of a job as a part of a file's name: letters, digits, dots and dashes, cut.
std::string SafeName(const std::string& job) {
  constexpr size_t kLongest = 64;
  std::string name = job.substr(0, kLongest);
  for (char& c : name) {
    if (!absl::ascii_isalnum(static_cast<unsigned char>(c)) && c != '.' && c != '_') c = '-';
  }
  return name;
}

// The part of a folder's name that stays the same in the life of an incident, also if a daemon was
// killed before it saved the path: "20261120T193000Z-train", "20261120T193000Z-train.2" for
// attempt 2.
std::string StableName(const v1::Incident& incident) {
  const auto& time = incident.has_opened_at() ? incident.opened_at() : incident.confirmed_at();
  const std::string attempt = incident.attempt() == 0 ? "" : absl::StrCat(".", incident.attempt());
  const std::string job =
      incident.job().empty() ? "" : absl::StrCat("-", SafeName(incident.job()), attempt);
  return absl::StrCat(TimeForName(time), job);
}

// "20261120T193000Z-train-missing_rank".
std::string NameFor(const v1::Incident& incident) {
  const std::string cause = incident.verdicts().empty() ? "unknown" : incident.verdicts(0).cause();
  return absl::StrCat(StableName(incident), "-", SafeName(cause));
}

// Somebody else who may write into the folder of the reports can have put a folder of that name
// there.
bool IsOwnFolder(const std::filesystem::path& folder) {
  struct stat about;
  return lstat(folder.c_str(), &about) == 0 && S_ISDIR(about.st_mode) && about.st_uid == geteuid();
}

bool IsReportOf(const std::filesystem::path& folder, const v1::Incident& incident) {
  if (!IsOwnFolder(folder)) return false;
  const std::string json = ReadRegularFile(folder / "incident.json", kMostReportBytes).value_or("");
  v1::Incident written;
  google::protobuf::util::JsonParseOptions lenient;
  lenient.ignore_unknown_fields = true;
  if (!google::protobuf::util::JsonStringToMessage(json, &written, lenient).ok()) return false;
  return written.id() == incident.id() && written.tenant() == incident.tenant() &&
         written.opened_at().seconds() == incident.opened_at().seconds() &&
         written.opened_at().nanos() == incident.opened_at().nanos();
}

bool Exists(const std::string& path) {
  struct stat info;
  return lstat(path.c_str(), &info) == 0;
}

// Returns the first free name, with numbers from `*n` on.
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
absl::StatusOr<std::string> Publish(TemporaryFolder* temporary, const std::string& wanted,
                                    v1::Incident incident, ReportPlace place) {
  for (int n = 1;; ++n) {
    const std::string path = FreePath(wanted, &n);
    if (path.empty()) return FileError("find a free name like", wanted, EEXIST);
    incident.set_report_path(place == ReportPlace::kPath ? path : path.substr(path.rfind('/') + 1));
    const absl::Status written = WriteWhatFits(temporary->path(), incident);
    if (!written.ok()) return written;
    const int error = temporary->Rename(path);
    if (error == 0) return path;
    // Another writer may have taken the name just now.
    if (error != EEXIST && error != ENOTEMPTY && error != ENOTDIR) {
      return FileError("rename the report to", path, error);
    }
  }
}

}  // namespace

absl::Status CheckReportDir(const std::string& report_dir) {
  const absl::Status made = MakeFolder(report_dir);
  return made.ok() ? TemporaryFolder::Create(report_dir).status() : made;
}

absl::StatusOr<std::string> CreateReport(const std::string& report_dir, v1::Incident incident,
                                         ReportPlace place) {
  const absl::Status made = MakeFolder(report_dir);
  if (!made.ok()) return made;
  std::error_code error;
  const std::string folder = std::filesystem::canonical(report_dir, error).string();
  if (error) return FileError("find the report folder", report_dir, error.value());
  const auto temporary = TemporaryFolder::Create(folder);
  if (!temporary.ok()) return temporary.status();
  const std::string wanted = absl::StrCat(folder, "/", NameFor(incident));
  return Publish(temporary->get(), wanted, std::move(incident), place);
}

std::string FindReport(const std::string& report_dir, const v1::Incident& incident) {
  if (!incident.has_opened_at()) return "";
  const std::string prefix = StableName(incident) + "-";
  std::error_code error;
  std::filesystem::directory_iterator at(report_dir, error), end;
  for (; !error && at != end; at.increment(error)) {
    if (!absl::StartsWith(at->path().filename().string(), prefix)) continue;
    if (!IsReportOf(at->path(), incident)) continue;
    const std::string folder = std::filesystem::canonical(at->path(), error).string();
    return error ? "" : folder;
  }
  return "";
}

absl::Status UpdateReport(const std::string& folder, v1::Incident incident) {
  incident.set_report_path(folder);
  const absl::StatusOr<std::vector<File>> files = Render(incident, Extent::kWhole);
  if (!files.ok()) return files.status();
  const auto fresh = [&folder](const File& file) {
    return absl::StrCat(folder, "/.", file.name, ".new");
  };
  // Writes all files before it renames any: the files of one report must show the same moment.
  absl::Status written;
  for (const File& file : *files) {
    if (written.ok()) written = WriteFile(fresh(file), file.content);
  }
  for (const File& file : *files) {
    if (!written.ok()) {
      unlink(fresh(file).c_str());
    } else if (rename(fresh(file).c_str(), absl::StrCat(folder, "/", file.name).c_str()) != 0) {
      written = FileError("replace", file.name, errno);
    }
  }
  return written;
}

}  // namespace rollcall
