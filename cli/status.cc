// SPDX-License-Identifier: Apache-2.0
// rollcall status: prints the state of a daemon's jobs.
#include <CLI/CLI.hpp>
#include <iostream>

#include "cli/commands.h"
#include "cli/query.h"
#include "cli/status_lines.h"
#include "daemon/server/clean_message.h"

namespace rollcall {

int StatusCommand(const std::vector<std::string>& arguments) {
  QueryFlags flags;
  v1::StatusRequest request;
  std::string job;
  CLI::App app("Prints the state of a daemon's jobs.", "rollcall status");
  AddQueryFlags(&app, &flags);
  app.add_option("JOB", job, "show only this job");
  int exit_code = 0;
  if (!ParseFlags(&app, arguments, &exit_code)) return exit_code;
  request.set_job(CanonicalJob(job));
  v1::StatusResponse response;
  const bool answered = DaemonQuery(flags.daemon).Ask("status", [&](auto* stub, auto* context) {
    return stub->GetStatus(context, request, &response);
  });
  if (!answered) return 1;
  CleanStrings(&response);
  if (flags.format == "json") {
    PrintJson(response);
  } else {
    for (const StatusLine& line : StatusLines(response)) std::cout << line.text << "\n";
  }
  return 0;
}

}  // namespace rollcall
