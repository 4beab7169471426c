// SPDX-License-Identifier: Apache-2.0
// rollcall watch: shows the state of a daemon's jobs live on the full screen.
#include <poll.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <iostream>

#include "absl/strings/str_cat.h"
#include "base/clean_text.h"
#include "cli/commands.h"
#include "cli/query.h"
#include "cli/screen.h"
#include "cli/status_lines.h"
#include "cli/terminal.h"
#include "cli/usage.h"
#include "cli/watch_view.h"
#include "daemon/access/clean_message.h"

namespace rollcall {
namespace {

constexpr int kTickMs = 1000;

class Watch {
 public:
  Watch(const DaemonAddress& daemon, const std::string& job, const JobFlags& flags)
      : daemon_(daemon.address), query_(daemon) {
    SetJob(job, flags, &request_);
  }

  // Shows the jobs until the user presses q.
  void OnScreen() {
    Screen screen;
    while (true) {
      Ask();
      screen.Show(Lines(screen.columns(), screen.rows()));
      const Screen::Key key = screen.AwaitKey(kTickMs);
      if (key == Screen::Key::kQuit) return;
      view_.Press(key);
    }
  }

  // Watches without a terminal: prints the output of `rollcall status` at each change of a job's
  // state.
  int AsLines() {
    std::string before = "nothing yet";
    while (true) {
      if (!query_.Ask("watch", [this](auto* stub, auto* context) {
            return stub->GetStatus(context, request_, &response_);
          })) {
        return query_.exit_code();
      }
      CleanStrings(&response_);
      std::string states;
      for (const v1::JobStatus& job : response_.jobs()) {
        absl::StrAppend(&states, job.name(), " ", job.attempt(), " ", job.state(), " ",
                        job.processes_alive(), "\n");
      }
      for (const v1::UnrecordedJob& job : response_.unrecorded()) {
        absl::StrAppend(&states, job.name(), " ", job.ranks(), "\n");
      }
      if (states != before) {
        SortJobs(JobOrder::kUrgency, &response_);
        PrintLines(StatusTable(response_, 0));
        std::cout << std::endl;
        if (!std::cout) return 0;  // the reader has closed the pipe
      }
      before = states;
      // poll() also shows a closed pipe when there is nothing to print.
      pollfd out = {STDOUT_FILENO, 0, 0};
      if (poll(&out, 1, kTickMs) > 0 && (out.revents & (POLLERR | POLLHUP)) != 0) return 0;
    }
  }

 private:
  void Ask() {
    v1::StatusResponse fresh;
    const grpc::Status status = query_.Try(
        [&](auto* stub, auto* context) { return stub->GetStatus(context, request_, &fresh); });
    problem_ = status.ok() ? "" : CleanText(status.error_message());
    if (!status.ok()) return;
    CleanStrings(&fresh);
    view_.Update(std::move(fresh));
  }

  std::vector<StatusLine> Lines(int columns, int rows) {
    auto lines = view_.Lines(columns, problem_.empty() ? rows : rows - 1);
    if (problem_.empty()) return lines;
    lines.insert(lines.begin(),
                 {CutToWidth(absl::StrCat("NOT UP TO DATE: cannot reach ", daemon_, ": ", problem_),
                             columns),
                  LineStyle::kBad});
    return lines;
  }

  const std::string daemon_;  // address
  DaemonQuery query_;
  v1::StatusRequest request_;
  v1::StatusResponse response_;  // of AsLines()
  WatchView view_;
  std::string problem_;
};

// 0 if the daemon answers, and has the job if one is named. Else prints the error, which lists the
// jobs that there are, and returns the exit code.
int FindWhatToWatch(const DaemonAddress& daemon, const std::string& job, const JobFlags& chosen) {
  DaemonQuery query(daemon);
  v1::StatusRequest request;
  SetJob(job, chosen, &request);
  request.set_without_communicators(true);
  v1::StatusResponse response;
  if (!query.Ask("watch", [&](auto* stub, auto* context) {
        return stub->GetStatus(context, request, &response);
      })) {
    return query.exit_code();
  }
  if (job.empty() || !response.jobs().empty()) return 0;
  v1::JobRequest wanted;
  SetJob(job, chosen, &wanted);
  v1::JobView view;
  const bool found = query.Ask(
      "watch", [&](auto* stub, auto* context) { return stub->GetJob(context, wanted, &view); });
  return found ? 0 : query.exit_code();
}

}  // namespace

int WatchCommand(const std::vector<std::string>& arguments) {
  DaemonAddress daemon;
  std::string job;
  CLI::App app("Shows the state of a daemon's jobs live on the full screen.", "rollcall watch");
  AddDaemonFlags(&app, &daemon);
  JobFlags chosen;
  AddJobFlags(&app, &chosen);
  app.add_option("JOB", job, "show only this job");
  int exit_code = 0;
  if (!ParseFlags(&app, arguments, &exit_code)) return exit_code;
  const std::string problem = FindChoiceOfNoJob("watch", job, chosen);
  if (!problem.empty()) return RefuseUsage(app, problem);
  // Prints an error on the ordinary screen, where it stays visible.
  exit_code = FindWhatToWatch(daemon, job, chosen);
  if (exit_code != 0) return exit_code;
  Watch watch(daemon, job, chosen);
  if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO)) return watch.AsLines();
  watch.OnScreen();
  return 0;
}

}  // namespace rollcall
