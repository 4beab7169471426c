// SPDX-License-Identifier: Apache-2.0
#include "daemon/incidents/old_reports.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>
#include <vector>

#include "base/monotonic_clock.h"
#include "base/open_regular.h"
#include "daemon/report/report_files.h"

namespace rollcall {
namespace {

namespace fs = std::filesystem;

constexpr char kIncident[] = "incident.json";

struct Report {
  fs::path folder;
  int64_t changed_ns = 0;
  uint64_t bytes = 0;
};

bool IsPlainFile(const fs::path& path, struct stat* info) {
  return lstat(path.c_str(), info) == 0 && S_ISREG(info->st_mode);
}

std::vector<Report> FindReports(const std::string& report_dir) {
  std::vector<Report> reports;
  std::error_code error;
  for (fs::directory_iterator at(report_dir, error), end; !error && at != end;
       at.increment(error)) {
    std::error_code ignored;
    struct stat info;
    if (at->symlink_status(ignored).type() != fs::file_type::directory) continue;
    if (!IsPlainFile(at->path() / kIncident, &info)) continue;
    Report& report = reports.emplace_back();
    report.folder = at->path();
    report.changed_ns = NsOf(info.st_mtim);
    for (const char* name : kReportFiles) {
      if (!IsPlainFile(report.folder / name, &info)) continue;
      report.bytes += static_cast<uint64_t>(info.st_blocks) * 512;
    }
  }
  std::sort(reports.begin(), reports.end(),
            [](const Report& a, const Report& b) { return a.changed_ns < b.changed_ns; });
  return reports;
}

// Whether the folder is a report that is no longer needed.
bool MayDelete(const Report& report, int64_t now_ns,
               const std::function<bool(const std::string& id)>& is_live) {
  const std::string content =
      ReadRegularFile(report.folder / kIncident, kMostReportBytes).value_or("");
  const auto json = nlohmann::json::parse(content, nullptr, false);
  if (!json.is_object()) return false;
  const auto text = [&json](const char* name) {
    const auto at = json.find(name);
    return at != json.end() && at->is_string() ? at->get<std::string>() : "";
  };
  const std::string id = text("id");
  if (id.empty() || fs::path(text("report_path")).filename() != report.folder.filename()) {
    return false;
  }
  const bool is_open = text("closed_at").empty();
  if (is_open && now_ns - report.changed_ns < kOpenReportLiveNs) return false;
  return !is_live(id);
}

bool Delete(const Report& report) {
  for (const char* name : kReportFiles) {
    unlink((report.folder / ("." + std::string(name) + ".new")).c_str());
    unlink((report.folder / name).c_str());
  }
  rmdir(report.folder.c_str());  // fails if a person has put a file there
  struct stat info;
  return lstat((report.folder / kIncident).c_str(), &info) != 0;
}

}  // namespace

DeletedReports DeleteOldReports(const std::string& report_dir, const ReportLimits& limits,
                                int64_t now_ns,
                                const std::function<bool(const std::string& id)>& is_live) {
  DeletedReports deleted;
  if (!limits.HasAny()) return deleted;
  const std::vector<Report> reports = FindReports(report_dir);
  size_t count = reports.size();
  uint64_t bytes = 0;
  for (const Report& report : reports) bytes += report.bytes;
  for (const Report& report : reports) {
    const bool too_old = limits.keep_ns != 0 && now_ns - report.changed_ns > limits.keep_ns;
    const bool too_many = limits.count != 0 && count > limits.count;
    const bool too_large = limits.bytes != 0 && bytes > limits.bytes;
    if (!too_old && !too_many && !too_large) break;
    if (deleted.count == kDeletedAtOnce) {
      deleted.has_more = true;
      break;
    }
    if (!MayDelete(report, now_ns, is_live) || !Delete(report)) continue;
    ++deleted.count;
    --count;
    bytes -= report.bytes;
  }
  return deleted;
}

}  // namespace rollcall
