// SPDX-License-Identifier: Apache-2.0
#include "cli/run/incident_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <spdlog/spdlog.h>
#include <string.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/durations.h"
#include "base/unique_fd.h"
#include "cli/run/job_directory.h"

namespace rollcall {
namespace {

constexpr int64_t kPatienceNs = 4 * kSecond;  // a reader looks once a second

}  // namespace

std::string LineOf(const ConfirmedIncident& incident) {
  const nlohmann::ordered_json line = {{"id", incident.id},
                                       {"cause", incident.finding.cause},
                                       {"certainty", incident.finding.certainty},
                                       {"summary", incident.summary},
                                       {"report_path", incident.report_path}};
  return line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

void IncidentFile::Add(const ConfirmedIncident& incident) { Write(LineOf(incident)); }

void IncidentFile::AddEnd() { Write(R"({"ends_job":true})"); }

void IncidentFile::Write(const std::string& text) {
  if (folder_.empty()) return;
  const std::string path = absl::StrCat(folder_, "/", kIncidentFile);
  const std::string line = absl::StrCat(text, "\n");
  const UniqueFd fd(
      open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (fd.valid() &&
      write(fd.get(), line.data(), line.size()) == static_cast<ssize_t>(line.size())) {
    return;
  }
  spdlog::warn("cannot write {}: {}; the job's experiment trackers do not get this incident", path,
               strerror(errno));
}

bool IncidentFile::HasReader(int64_t now_ns) {
  if (until_ns_ == 0) until_ns_ = now_ns + kPatienceNs;
  return !folder_.empty() && now_ns < until_ns_ && HasMarker();
}

bool IncidentFile::HasMarker() const {
  DIR* list = opendir(folder_.c_str());
  if (list == nullptr) return false;
  bool found = false;
  while (const dirent* entry = readdir(list)) {
    found = found || absl::StartsWith(entry->d_name, kLinkerPrefix);
  }
  closedir(list);
  return found;
}

}  // namespace rollcall
