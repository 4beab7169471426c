// SPDX-License-Identifier: Apache-2.0
// The flags of rollcalld: their table, and the options of the daemon that follow from them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "daemon/access/daemon_security.h"
#include "daemon/daemon.h"
#include "daemon/judging_flags.h"
#include "service/service_flags.h"

namespace CLI {
class App;
}

namespace rollcall {

struct DaemonFlags {
  DaemonFlags();

  ServiceFlags service;
  DaemonOptions options;  // what a flag sets directly
  JudgingFlags judging;
  std::string keep_jobs = "1h";
  std::string http_token_file;
  std::string history;
  std::string store, daemon_name;
  std::string import_history;  // a file, or empty
  int history_days = 180;
  int history_mib = 1024;
  int report_days = 180;
  size_t report_count = 10'000;
  uint64_t report_mib = 10'240;
  size_t records_mib = limits::kRecordBytes >> 20;
  std::string host_labels;
  std::vector<std::string> alerts;
  std::string alert_routes;
  std::string alert_template;
  std::string alert_reminder = "30m";
  SecurityOptions security;
};

// Returns the table. `*flags` must outlive the parsing.
std::unique_ptr<CLI::App> MakeDaemonApp(DaemonFlags* flags);

// The options that follow from the parsed flags. Reads the files of secrets and templates; errors
// name the wrong flag, why, and what to type. Creates nothing.
absl::StatusOr<DaemonOptions> MakeDaemonOptions(const DaemonFlags& flags);

// Reads the files of certificates, tokens and keys, and refuses addresses that they do not guard.
absl::StatusOr<std::unique_ptr<DaemonSecurity>> OpenDaemonSecurity(const DaemonFlags& flags,
                                                                   const DaemonOptions& options);

}  // namespace rollcall
