// SPDX-License-Identifier: Apache-2.0
// rollcall status: prints the state of a daemon's jobs.
#include <CLI/CLI.hpp>
#include <iostream>

#include "cli/commands.h"
#include "cli/job_pages.h"
#include "cli/query.h"
#include "cli/status_lines.h"
#include "daemon/server/clean_message.h"

namespace rollcall {
namespace {

// Asks for the job as the other commands do: if there is no such job or attempt, prints the error, which
// lists the existing ones, and returns false.
bool FindJob(const std::string& job, const JobFlags& chosen, DaemonQuery* query,
             v1::StatusResponse* response) {
  v1::JobRequest request;
  SetJob(job, chosen, &request);
  v1::JobView view;
  const bool found = query->Ask("status", [&](auto* stub, auto* context) {
    return stub->GetJob(context, request, &view);
  });
  if (found) response->add_jobs()->Swap(view.mutable_status());
  return found;
}

}  // namespace

int StatusCommand(const std::vector<std::string>& arguments) {
  QueryFlags flags;
  v1::StatusRequest request;
  std::string job;
  CLI::App app("Prints the state of a daemon's jobs.", "rollcall status");
  AddQueryFlags(&app, &flags);
  JobFlags chosen;
  AddJobFlags(&app, &chosen);
  app.add_option("JOB", job, "show only this job");
  int exit_code = 0;
  if (!ParseFlags(&app, arguments, &exit_code)) return exit_code;
  SetJob(job, chosen, &request);
  DaemonQuery query(flags.daemon);
  v1::StatusResponse response;
  const bool answered = FetchJobs(
      request,
      [&query](const v1::StatusRequest& page, v1::StatusResponse* answer) {
        return query.Ask("status", [&](auto* stub, auto* context) {
          return stub->GetStatus(context, page, answer);
        });
      },
      &response);
  if (!answered) return 1;
  if (!job.empty() && response.jobs().empty() && !FindJob(job, chosen, &query, &response)) return 1;
  CleanStrings(&response);
  if (flags.format == "json") {
    PrintJson(response);
  } else {
    for (const StatusLine& line : StatusLines(response)) std::cout << line.text << "\n";
  }
  return 0;
}

}  // namespace rollcall
