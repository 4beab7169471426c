// SPDX-License-Identifier: Apache-2.0
#include "cli/reports/report_on_disk.h"

#include <errno.h>
#include <google/protobuf/util/json_util.h>
#include <string.h>
#include <sys/stat.h>

#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/open_regular.h"
#include "daemon/access/clean_message.h"
#include "daemon/report/report_files.h"

namespace rollcall {
namespace {

constexpr char kIncident[] = "incident.json";

bool IsFolder(const std::string& path) {
  struct stat about;
  return stat(path.c_str(), &about) == 0 && S_ISDIR(about.st_mode);
}

bool IsFile(const std::string& path) {
  struct stat about;
  return stat(path.c_str(), &about) == 0 && S_ISREG(about.st_mode);
}

absl::Status Unreadable(const std::string& path, const std::string& file, int error) {
  if (error == ENOENT && IsFolder(path)) {
    return absl::NotFoundError(absl::StrCat(path, " is not the folder of a report: it has no ",
                                            kIncident, ". Give the folder that has one"));
  }
  if (error == EINVAL || error == ELOOP)
    return absl::InvalidArgumentError(absl::StrCat(file, " is not a regular file"));
  if (error == EFBIG)
    return absl::InvalidArgumentError(absl::StrCat(file, " is larger than any report"));
  return FileError("read", file, error);
}

absl::Status Damaged(const std::string& file, const std::string& why) {
  return absl::InvalidArgumentError(
      absl::StrCat(file, " is damaged: ", why,
                   ". Where the other files of the report are whole, report.txt has the same for "
                   "people"));
}

}  // namespace

absl::StatusOr<v1::Incident> ReadReport(const std::string& path) {
  const std::string file = IsFolder(path) ? absl::StrCat(path, "/", kIncident) : path;
  // One byte more shows that a file is too large.
  const std::optional<std::string> json = ReadRegularFile(file, kMostReportBytes + 1);
  if (!json) return Unreadable(path, file, errno);
  if (json->size() > kMostReportBytes) return Unreadable(path, file, EFBIG);
  if (json->empty()) return Damaged(file, "it is empty");
  v1::Incident incident;
  google::protobuf::util::JsonParseOptions lenient;
  lenient.ignore_unknown_fields = true;
  if (!google::protobuf::util::JsonStringToMessage(*json, &incident, lenient).ok())
    return Damaged(file, "it does not hold one incident in JSON, or is cut");
  if (incident.id().empty() && incident.verdicts().empty())
    return absl::InvalidArgumentError(absl::StrCat(file, " holds no incident"));
  CleanStrings(&incident);
  return incident;
}

bool IsReportPath(const std::string& word) {
  for (const char* begin : {"/", "./", "../"}) {
    if (absl::StartsWith(word, begin)) return true;
  }
  if (word == "." || word == "..") return true;
  return (absl::EndsWith(word, ".json") && IsFile(word)) ||
         IsFile(absl::StrCat(word, "/", kIncident));
}

}  // namespace rollcall
