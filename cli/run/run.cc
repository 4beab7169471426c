// SPDX-License-Identifier: Apache-2.0
// rollcall run: runs a job under the library, with agent and daemon inside this
// process, and reports the rank at fault when the job hangs.
//
// The job runs even if Rollcall fails: `rollcall run` prints the failure, and the job
// runs with fewer functions of Rollcall or without them.
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "agent/redact_flag.h"
#include "base/durations.h"
#include "base/monotonic_clock.h"
#include "cli/commands.h"
#include "cli/output_file.h"
#include "cli/run/hang_action.h"
#include "cli/run/incident_file.h"
#include "cli/run/incident_watch.h"
#include "cli/run/job_environment.h"
#include "cli/run/junit_file.h"
#include "cli/run/run_flags.h"
#include "cli/run/run_services.h"
#include "cli/run/running_job.h"
#include "cli/run/stderr_queue.h"
#include "cli/run/verdict_look.h"
#include "cli/run/verdict_repeat.h"
#include "cli/terminal.h"
#include "cli/usage.h"

namespace rollcall {
namespace {

constexpr int kLookEveryMs = 100;
constexpr std::chrono::seconds kPatienceWithReader{5};  // a stderr without a reader
constexpr int64_t kVerdictWithinNs = kSecond;           // after the end of a command that failed
constexpr useconds_t kLookAgainUs = 20'000;

// One job from start to end.
class Run {
 public:
  Run(RunFlags flags, std::vector<std::string> command)
      : flags_(std::move(flags)),
        command_(std::move(command)),
        job_name_(NameOfJob(command_)),
        services_(flags_, job_name_, command_) {}

  int Go();

 private:
  int StartJob();
  void WaitForJob();
  void LookForIncidents();
  void TellOfEnd();
  void Abort();
  std::vector<IncidentWatch::News> PrintNews(bool last);
  void AwaitVerdict();
  void RefreshFirst();
  void RepeatVerdict(int64_t ended_ns);
  void Finish();
  void WriteJUnit(const std::string& text) const;
  JUnitRun ForJUnit(int exit_code) const;

  const RunFlags flags_;
  const std::vector<std::string> command_;
  const std::string job_name_;
  const int64_t started_ns_ = MonotonicNs();
  RunningJob job_;  // before all that starts threads
  RunServices services_;
  std::shared_ptr<StderrQueue> stderr_;
  std::unique_ptr<IncidentFile> told_;  // nullptr before the job starts
  std::unique_ptr<HangAction> action_;  // nullptr means --on-hang=observe
  bool is_to_end_ = false;              // the job, as soon as its own trackers know
  bool aborted_ = false;
  bool reported_ = false;  // at least one incident
  std::string verdicts_;   // all that was printed about incidents
  Finding finding_;        // of the first of them, with its sentence
  std::string summary_;
  std::optional<ConfirmedIncident>
      first_;                     // of those reported while the job ran, in its newest state
  int64_t first_printed_ns_ = 0;  // monotonic
  bool is_hung_ = false;          // until somebody asked the job to end
};

int Run::Go() {
  const std::shared_ptr<spdlog::logger> logger = spdlog::default_logger();
  stderr_ = std::make_shared<StderrQueue>();
  LogTo(stderr_);
  services_.Start();
  const int failed = StartJob();
  if (failed == 0) WaitForJob();
  const int exit_code = failed != 0 ? failed : aborted_ ? kExitHangAborted : job_.exit_code();
  Finish();
  WriteJUnit(JUnitText(ForJUnit(exit_code)));
  stderr_->Flush(std::chrono::steady_clock::now() + kPatienceWithReader);
  spdlog::set_default_logger(logger);
  return exit_code;
}

void Run::WriteJUnit(const std::string& text) const {
  if (flags_.junit.empty()) return;
  const absl::Status written = WriteOutputFile(flags_.junit, text);
  if (!written.ok()) spdlog::error("--junit: {}", std::string(written.message()));
}

JUnitRun Run::ForJUnit(int exit_code) const {
  JUnitRun run;
  run.job = job_name_;
  run.seconds = static_cast<double>(MonotonicNs() - started_ns_) / kSecond;
  run.exit_code = exit_code;
  run.cause = finding_.cause;
  run.summary = summary_;
  run.verdicts = verdicts_;
  return run;
}

// Returns 0, or the exit code if the job did not start.
int Run::StartJob() {
  std::map<std::string, std::string> changes = services_.EnvironmentOfJob();
  if (flags_.sim) {
    const std::string simulation = FindSimulation();
    if (simulation.empty()) {
      spdlog::error(
          "--sim: cannot find the simulated libraries in ../sim of this program's folder\n"
          "  build them:  cmake --build --preset release");
      return kExitBadUsage;
    }
    changes["LD_LIBRARY_PATH"] = Prepended("LD_LIBRARY_PATH", simulation, ':');
  }
  return job_.Start(command_, EnvironmentWith(changes));
}

void Run::WaitForJob() {
  told_ = std::make_unique<IncidentFile>(services_.folder());
  if (services_.incidents() != nullptr && flags_.on_hang != "observe") {
    action_ = std::make_unique<HangAction>(flags_, job_.inherited(), services_.WatchLocalProgress(),
                                           [this] { TellOfEnd(); });
  }
  while (!job_.has_ended()) {
    job_.Poll(kLookEveryMs);
    LookForIncidents();
    if (is_to_end_ && !aborted_ && !told_->HasReader(MonotonicNs())) Abort();
  }
  job_.AwaitRest();
}

void Run::LookForIncidents() {
  if (services_.incidents() == nullptr || is_to_end_) return;
  const std::vector<IncidentWatch::News> all = PrintNews(/*last=*/false);
  RefreshFirst();
  if (!job_.was_asked_to_end()) is_hung_ = !services_.incidents()->open().empty();
  if (action_ == nullptr) return;
  // --on-hang=abort cannot end an ended job. --on-hang=exec may still run its command.
  for (const IncidentWatch::News& news : all) {
    if (news.incident.is_over) action_->ActIfDue(news.incident);
  }
  for (const ConfirmedIncident& incident : services_.incidents()->open()) {
    if (services_.AwaitsGpuDumps(incident.id)) continue;
    action_->ActIfDue(incident);
    if (is_to_end_) return;
  }
}

void Run::TellOfEnd() {
  told_->AddEnd();
  is_to_end_ = true;
}

void Run::Abort() {
  spdlog::info("ending the job (--on-hang=abort)");
  aborted_ = true;
  job_.End();
}

std::vector<IncidentWatch::News> Run::PrintNews(bool last) {
  std::vector<IncidentWatch::News> all = services_.incidents()->Look(last);
  // On a terminal, a progress bar may occupy the line. Clears that line first. The job then draws
  // the bar below.
  const TerminalLook look = LookOf(STDERR_FILENO);
  const char* const clear = look.columns > 0 ? "\r\033[K" : "";
  const std::string progress = services_.incidents()->ConsumeProgress();
  if (!progress.empty()) stderr_->Write(absl::StrCat(clear, progress));
  for (const IncidentWatch::News& news : all) {
    stderr_->Write(absl::StrCat(clear, VerdictForTerminal(news.text, look)));
    verdicts_ += news.text;
    if (!last && told_ != nullptr) told_->Add(news.incident);
    if (!reported_) {
      finding_ = news.incident.finding;
      summary_ = news.incident.summary;
    }
    reported_ = true;
    if (last || first_.has_value()) continue;
    first_ = news.incident;
    first_printed_ns_ = MonotonicNs();
  }
  return all;
}

void Run::AwaitVerdict() {
  if (!job_.has_failed() || !services_.MayGetLateVerdict()) return;
  const int64_t until_ns = MonotonicNs() + kVerdictWithinNs;
  while (!reported_ && MonotonicNs() < until_ns) {
    PrintNews(/*last=*/false);
    usleep(kLookAgainUs);
  }
}

// The time that the ranks have waited grows after the verdict was printed.
void Run::RefreshFirst() {
  if (!first_.has_value()) return;
  for (const ConfirmedIncident& incident : services_.incidents()->open()) {
    if (incident.id == first_->id) first_ = incident;
  }
}

// The ranks that a launcher ends write their tracebacks below the verdict.
void Run::RepeatVerdict(int64_t ended_ns) {
  if (!first_.has_value()) return;
  const bool is_ended_while_hung = is_hung_ && job_.was_asked_to_end();
  if (!RepeatsVerdict(
          {aborted_, job_.has_failed(), is_ended_while_hung, ended_ns - first_printed_ns_})) {
    return;
  }
  std::string text =
      absl::StrCat("rollcall: the job ended. Verdict again: ", first_->summary, "\n");
  if (!first_->report_path.empty()) {
    absl::StrAppend(&text, "rollcall:   report: ", first_->report_path, "/report.txt\n");
  }
  stderr_->Write(VerdictForTerminal(text, LookOf(STDERR_FILENO)));
}

void Run::Finish() {
  const int64_t ended_ns = MonotonicNs();
  services_.Stop();
  if (services_.incidents() != nullptr && !aborted_) {
    AwaitVerdict();
    if (!PrintNews(/*last=*/true).empty()) first_.reset();
  }
  RepeatVerdict(ended_ns);
  if (job_.has_started() && !reported_) services_.ExplainNoCommunicator();
  action_ = nullptr;  // it reads the folder
  services_.RemoveFolder(/*ended_well=*/!reported_ && !job_.has_failed());
}

}  // namespace

int RunCommand(const std::vector<std::string>& arguments) {
  RunFlags flags;
  CLI::App app(
      "Runs COMMAND and reports the rank at fault when COMMAND hangs. Its output and exit code\n"
      "pass through unchanged.",
      "rollcall run");
  DefineRunFlags(&app, &flags);
  const auto& [words, command] = SplitCommand(app, arguments);
  AddCommandForHelp(&app, "the job's program and its arguments")->required(command.empty());
  int exit_code = 0;
  if (!ParseFlags(&app, words, &exit_code)) return exit_code;
  const std::string of_daemon =
      FirstTyped(words, {"--tls-ca", "--tls-cert", "--tls-key", "--tls-crl", "--tls-server-name",
                         "--token-file", "--daemon-user"});
  if (flags.has_own_daemon() && !of_daemon.empty()) {
    return RefuseUsage(app, of_daemon + " is for a daemon elsewhere: give --daemon=HOST:PORT, too");
  }
  SayWhatTheEnvironmentSets(app);
  flags.redactor = MakeRedactor(flags.redact);
  if (flags.redactor == nullptr) return kExitBadUsage;
  // The file is there from the start: a CI server that never gets it would count no test at all.
  const absl::Status begun =
      flags.junit.empty() ? absl::OkStatus()
                          : WriteOutputFile(flags.junit, JUnitTextOfUnended(NameOfJob(command)));
  if (!begun.ok()) {
    return RefuseUsage(
        app, absl::StrCat("--junit: ", std::string(begun.message()), "; the job was not started"));
  }
  return Run(flags, command).Go();
}

}  // namespace rollcall
