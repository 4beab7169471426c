// SPDX-License-Identifier: Apache-2.0
// Deletes old reports, the oldest first.
//
// Deletes only what the daemon wrote: the files of a report in a folder whose incident.json names
// an incident and this folder. Other files in that folder stay, and the folder with them. Follows
// no links.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

namespace rollcall {

// 0 means no limit.
struct ReportLimits {
  int64_t keep_ns = 0;
  size_t count = 0;
  uint64_t bytes = 0;

  bool HasAny() const { return keep_ns != 0 || count != 0 || bytes != 0; }
};

// A report of an incident that has not closed is live for this time after its last change, also if
// the daemon that wrote it has been restarted.
inline constexpr int64_t kOpenReportLiveNs = int64_t{7} * 86400 * 1'000'000'000;

// Reports that one call deletes at most, so that a new report does not wait long.
inline constexpr size_t kDeletedAtOnce = 200;

struct DeletedReports {
  size_t count = 0;
  bool has_more = false;  // call again
};

// Deletes reports below `report_dir` that exceed the limits at `now_ns` (since the Unix epoch), but
// none for which `is_live` is true; it gets the incident's id.
DeletedReports DeleteOldReports(const std::string& report_dir, const ReportLimits& limits,
                                int64_t now_ns,
                                const std::function<bool(const std::string& id)>& is_live);

}  // namespace rollcall
