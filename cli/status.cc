// SPDX-License-Identifier: Apache-2.0
// rollcall status: prints the state of a daemon's jobs.
#include <CLI/CLI.hpp>
#include <iostream>

#include "cli/commands.h"
#include "cli/job_pages.h"
#include "cli/job_table.h"
#include "cli/query.h"
#include "cli/status_lines.h"
#include "cli/terminal.h"
#include "cli/usage.h"
#include "daemon/access/clean_message.h"

namespace rollcall {
namespace {

// Asks for the job as the other commands do: if there is no such job or attempt, prints the error,
// which lists the existing ones, and returns false.
bool FindJob(const std::string& job, const JobFlags& chosen, DaemonQuery* query,
             v1::StatusResponse* response) {
  v1::JobRequest request;
  SetJob(job, chosen, &request);
  v1::JobView view;
  const bool found = query->Ask(
      "status", [&](auto* stub, auto* context) { return stub->GetJob(context, request, &view); });
  if (found) response->add_jobs()->Swap(view.mutable_status());
  return found;
}

struct StatusFlags {
  QueryFlags query;
  std::string job;
  JobFlags chosen;
  std::string order = NameOf(JobOrder::kUrgency);
  bool all = false;
  bool exit_code = false;
};

void AddStatusFlags(CLI::App* app, StatusFlags* flags) {
  AddQueryFlags(app, &flags->query);
  AddJobFlags(app, &flags->chosen);
  std::vector<std::string> orders;
  for (const JobOrder order : kJobOrders) orders.push_back(NameOf(order));
  app->add_option("--sort", flags->order, "order of the jobs")
      ->capture_default_str()
      ->check(CLI::IsMember(orders));
  app->add_flag("--all", flags->all, "print each job with all its communicators");
  app->add_flag("--exit-code", flags->exit_code, "exit with 3 if a job hangs");
  app->add_option("JOB", flags->job, "print this job with its communicators");
}

// Returns 0, or the exit code: this function has printed the error.
int Fetch(const StatusFlags& flags, v1::StatusResponse* response) {
  v1::StatusRequest request;
  SetJob(flags.job, flags.chosen, &request);
  request.set_without_communicators(flags.job.empty() && !flags.all &&
                                    flags.query.format == "text");
  DaemonQuery query(flags.query.daemon);
  const bool answered = FetchJobs(
      request,
      [&query](const v1::StatusRequest& page, v1::StatusResponse* answer) {
        return query.Ask("status", [&](auto* stub, auto* context) {
          return stub->GetStatus(context, page, answer);
        });
      },
      response);
  if (!answered) return query.exit_code();
  if (!flags.job.empty() && response->jobs().empty() &&
      !FindJob(flags.job, flags.chosen, &query, response)) {
    return query.exit_code();
  }
  CleanStrings(response);
  for (const JobOrder order : kJobOrders) {
    if (flags.order == NameOf(order)) SortJobs(order, response);
  }
  return 0;
}

std::vector<StatusLine> LinesOf(const StatusFlags& flags, const v1::StatusResponse& response) {
  if (flags.job.empty() && !flags.all) return StatusTable(response, TerminalColumns());
  std::vector<StatusLine> lines;
  for (const v1::JobStatus& job : response.jobs()) {
    for (StatusLine& line : JobLines(job, flags.all ? 0 : kMostCommunicators)) {
      lines.push_back(std::move(line));
    }
  }
  if (lines.empty()) lines.push_back({CountJobs(response)});
  if (flags.job.empty()) {
    for (StatusLine& line : UnrecordedLines(response, 0)) lines.push_back(std::move(line));
  }
  const std::string silent = SilentDaemons(response);
  if (!silent.empty()) lines.push_back({silent, LineStyle::kWorse});
  return lines;
}

}  // namespace

int StatusCommand(const std::vector<std::string>& arguments) {
  StatusFlags flags;
  CLI::App app("Prints the state of a daemon's jobs: one line for each, those that hang first.",
               "rollcall status");
  AddStatusFlags(&app, &flags);
  int exit_code = 0;
  if (!ParseFlags(&app, arguments, &exit_code)) return exit_code;
  const std::string problem = FindChoiceOfNoJob("status", flags.job, flags.chosen);
  if (!problem.empty()) return RefuseUsage(app, problem);
  v1::StatusResponse response;
  exit_code = Fetch(flags, &response);
  if (exit_code != 0) return exit_code;
  if (flags.query.format == "json") {
    PrintJson(response);
  } else {
    PrintLines(LinesOf(flags, response));
  }
  return flags.exit_code && CountHung(response) > 0 ? kExitHangFound : 0;
}

}  // namespace rollcall
