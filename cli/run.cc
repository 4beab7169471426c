// SPDX-License-Identifier: Apache-2.0
// rollcall run: runs a job under the library, with agent and daemon inside this
// process, and reports the rank at fault when it hangs.
//
// No failure of Rollcall itself keeps the job from running: `rollcall run` prints the
// failure, and the job runs with less of Rollcall or without it.
#include <errno.h>
#include <fcntl.h>
#include <grpcpp/grpcpp.h>
#include <poll.h>
#include <signal.h>
#include <spdlog/spdlog.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <filesystem>
#include <iostream>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "agent/agent.h"
#include "agent/agent_info.h"
#include "agent/daemon_channel.h"
#include "agent/processes/monotonic_clock.h"
#include "cli/child.h"
#include "cli/commands.h"
#include "cli/incident_watch.h"
#include "cli/job_directory.h"
#include "cli/local_progress.h"
#include "daemon/report/writer.h"
#include "daemon/server/daemon.h"
#include "daemon/server/duration_flag.h"
#include "daemon/server/loose_thread.h"
#include "interpose/environment.h"
#include "proto/durations.h"

extern char** environ;

namespace rollcall {
namespace {

constexpr int64_t kGrace = 5 * kSecond;  // from SIGTERM to SIGKILL
// Segments of ended ranks take memory from a restarted job. By then the daemon has their contents.
constexpr int64_t kKeepEndedNs = 5 * kSecond;

constexpr std::chrono::seconds kPatienceWithFolder{2};  // before the job starts

struct RunFlags {
  std::string hang_after = "60s";
  std::string on_hang = "observe";
  std::string report_dir = "./rollcall-reports";
  std::string http = "127.0.0.1:0";
  std::string daemon;
  bool sim = false;
};

std::string CheckOnHang(const std::string& text) {
  if (text == "observe" || text == "abort" ||
      (absl::StartsWith(text, "exec:") && text.size() > 5)) {
    return "";
  }
  return text + " is not one of observe, abort, exec:CMD";
}

void DefineFlags(CLI::App* app, RunFlags* flags) {
  app->add_option("--hang-after", flags->hang_after, "a wait of this length is a hang")
      ->envname("ROLLCALL_HANG_AFTER")
      ->capture_default_str()
      ->check(CLI::Validator(CheckDuration, "TIME"));
  app->add_option("--on-hang", flags->on_hang,
                  "observe: only report; abort: end the job with exit code 75; exec:CMD: run CMD")
      ->envname("ROLLCALL_ON_HANG")
      ->capture_default_str()
      ->check(CLI::Validator(CheckOnHang, "observe|abort|exec:CMD"));
  app->add_option("--report-dir", flags->report_dir, "folder for the reports")
      ->envname("ROLLCALL_REPORT_DIR")
      ->capture_default_str();
  app->add_option("--http", flags->http,
                  "address of the live page, HOST:PORT (port 0: any free port), or none")
      ->envname("ROLLCALL_HTTP")
      ->capture_default_str();
  app->add_option("--daemon", flags->daemon,
                  "address of a rollcalld to use instead of the embedded one, HOST:PORT")
      ->envname("ROLLCALL_DAEMON");
  app->add_flag("--sim", flags->sim, "run the job with the simulated NCCL, without a GPU")
      ->envname("ROLLCALL_SIM");
}

// The environment with some variables set anew.
std::vector<std::string> EnvironmentWith(const std::map<std::string, std::string>& changes) {
  std::vector<std::string> out;
  for (char** at = environ; *at != nullptr; ++at) {
    const std::string name = std::string(*at).substr(0, std::string(*at).find('='));
    if (changes.count(name) == 0) out.emplace_back(*at);
  }
  for (const auto& [name, value] : changes) out.push_back(absl::StrCat(name, "=", value));
  return out;
}

std::string Appended(const char* variable, const std::string& last, char separator) {
  const char* value = getenv(variable);
  if (value == nullptr || *value == '\0') return last;
  return absl::StrCat(value, std::string(1, separator), last);
}

std::string Prepended(const char* variable, const std::string& first, char separator) {
  const char* value = getenv(variable);
  if (value == nullptr || *value == '\0') return first;
  return absl::StrCat(first, std::string(1, separator), value);
}

// The same on all hosts where the launcher names the job; else only here.
std::string NameOfJob(const std::vector<std::string>& command) {
  const std::string named = FindJob(&getenv);
  if (!named.empty()) return CanonicalJob(named);
  return CanonicalJob(absl::StrCat(std::filesystem::path(command.front()).filename().string(), "-",
                                   getpid()));
}

// As CheckReportDir(). kDeadlineExceeded: a file server is gone, maybe.
absl::Status CheckReportDirInTime(const std::string& report_dir) {
  const auto status = std::make_shared<absl::Status>();
  LooseThread thread;
  thread.Start([status, report_dir] { *status = CheckReportDir(report_dir); });
  if (thread.Join(std::chrono::steady_clock::now() + kPatienceWithFolder)) return *status;
  return absl::DeadlineExceededError(
      absl::StrCat("the report folder ", report_dir, " does not answer"));
}

// One job from start to end.
class Run {
 public:
  Run(RunFlags flags, std::vector<std::string> command)
      : flags_(std::move(flags)), command_(std::move(command)), job_(NameOfJob(command_)) {}

  int Go();

 private:
  void PrepareSignals();
  void StartRollcall();
  bool StartDaemon();
  std::string UsableReportDir() const;
  void StartAgent(std::shared_ptr<grpc::ChannelInterface> channel);
  int StartJob();
  void WaitForJob();
  void TakeSignals();
  void PassOn(const signalfd_siginfo& info);
  void Reap();
  void LookForIncidents();
  std::string WhyNotActOn(const ConfirmedIncident& incident) const;
  void ActIfDue(const ConfirmedIncident& incident);
  bool IsLeftToLauncher(const ConfirmedIncident& incident);
  int64_t HangAfterNs() const;
  int64_t PatienceWithLauncherNs() const;
  void Abort();
  void EndJob(int signal);
  void EndLingering();
  void Finish();
  void SayWhatWasSeen();

  const RunFlags flags_;
  const std::vector<std::string> command_;
  const std::string job_;
  JobDirectory directory_;
  std::string library_;
  std::unique_ptr<Daemon> daemon_;
  std::unique_ptr<Agent> agent_;
  std::unique_ptr<IncidentWatch> incidents_;
  InheritedSignals inherited_ = {};
  int signals_ = -1;
  pid_t child_ = -1;
  bool ended_ = false;
  int exit_code_ = 0;
  bool aborted_ = false;
  bool told_ = false;                                // of an incident
  std::unique_ptr<LocalProgress> local_;             // of the ranks here; null: not needed
  std::set<std::string> acted_on_, held_back_;       // incidents
  std::map<std::string, int64_t> left_to_launcher_;  // incidents, and until when
  int64_t kill_at_ns_ = 0;  // when patience with a job that was told to end is over; 0: it was not
};

int Run::Go() {
  PrepareSignals();
  StartRollcall();
  const int failed = StartJob();
  if (failed == 0) WaitForJob();
  Finish();
  if (failed != 0) return failed;
  return aborted_ ? kExitHangAborted : exit_code_;
}

// Before any thread is made, so that all of them have the signals blocked.
void Run::PrepareSignals() {
  inherited_ = ReadInheritedSignals();
  sigset_t wanted;
  sigemptyset(&wanted);
  for (const int signal : {SIGCHLD, SIGINT, SIGTERM, SIGHUP, SIGQUIT}) sigaddset(&wanted, signal);
  pthread_sigmask(SIG_BLOCK, &wanted, nullptr);
  signal(SIGPIPE, SIG_IGN);
  signal(SIGCHLD, SIG_DFL);  // while it is ignored, no exit code can be had
  signals_ = signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK);
  // This process adopts orphans of the job, so that it can end them.
  prctl(PR_SET_CHILD_SUBREAPER, 1);
}

void Run::StartRollcall() {
  library_ = FindLibrary();
  if (library_.empty()) {
    spdlog::error("cannot find librollcall.so beside this program; the job runs without Rollcall");
    return;
  }
  const absl::Status made = directory_.Make();
  if (!made.ok()) {
    spdlog::error("not recording, the job runs without Rollcall: {}", std::string(made.message()));
    library_.clear();
    return;
  }
  if (!StartDaemon()) return;
  std::shared_ptr<grpc::ChannelInterface> channel =
      daemon_ != nullptr ? daemon_->InProcessChannel()
                         : std::shared_ptr<grpc::ChannelInterface>(ConnectToDaemon(flags_.daemon));
  if (daemon_ == nullptr) {
    incidents_ = IncidentWatch::OfDaemonAt(flags_.daemon, channel, job_, flags_.report_dir);
    local_ = std::make_unique<LocalProgress>(directory_.path());
    // The agent of the host reports this job to that daemon.
    if (FindHostAgent(flags_.daemon, {kHostAgentDirectory, directory_.base()})) return;
  }
  StartAgent(std::move(channel));
}

void Run::StartAgent(std::shared_ptr<grpc::ChannelInterface> channel) {
  const absl::Status alone = directory_.ServeAlone();
  if (!alone.ok()) spdlog::warn("{}", std::string(alone.message()));
  AgentOptions options;
  options.collector.directory = directory_.path();
  options.collector.discover_directory = directory_.path();
  options.collector.keep_ended_ns = kKeepEndedNs;
  agent_ = std::make_unique<Agent>(options, std::move(channel));
  agent_->Start();
}

// "": reports cannot be written. A folder that does not answer may do so by then.
std::string Run::UsableReportDir() const {
  const absl::Status writable = CheckReportDirInTime(flags_.report_dir);
  if (writable.ok()) return flags_.report_dir;
  if (absl::IsDeadlineExceeded(writable)) {
    spdlog::error("{}; the job still runs", std::string(writable.message()));
    return flags_.report_dir;
  }
  spdlog::error("{}; the report will be printed here instead", std::string(writable.message()));
  return "";
}

// False: there is no daemon to report to.
bool Run::StartDaemon() {
  DaemonOptions options;
  options.limits = LimitsFor(HangAfterNs());
  options.default_job = job_;
  options.log_incidents = false;
  options.http = flags_.http == "none" ? "" : flags_.http;
  options.report_dir = UsableReportDir();
  if (!flags_.daemon.empty()) return true;
  daemon_ = std::make_unique<Daemon>(options);
  absl::Status started = daemon_->Start();
  if (!started.ok() && !options.http.empty()) {
    spdlog::error("{}\n  the job runs without the page", std::string(started.message()));
    options.http.clear();
    daemon_ = std::make_unique<Daemon>(options);
    started = daemon_->Start();
  }
  if (!started.ok()) {
    spdlog::error("{}; the job runs without Rollcall", std::string(started.message()));
    daemon_.reset();
    return false;
  }
  incidents_ = IncidentWatch::OfDaemon(daemon_.get(), job_, !options.report_dir.empty());
  if (!daemon_->http_address().empty() && isatty(STDERR_FILENO)) {
    spdlog::info("live page: http://{}/", daemon_->http_address());
  }
  return true;
}

// 0, or the exit code for a job that could not be started.
int Run::StartJob() {
  std::map<std::string, std::string> changes;
  if (!library_.empty()) {
    // Behind what the job preloads itself: sanitizers insist on being first, and
    // another tool's NCCL wrappers would not be called if ours came before them.
    changes["LD_PRELOAD"] = Appended("LD_PRELOAD", library_, ':');
    changes["ROLLCALL_DIR"] = directory_.path();
    changes["ROLLCALL_LOADED"] = directory_.loaded_file();
    changes["ROLLCALL_JOB"] = job_;
    if (getenv("ROLLCALL_TENSOR_SHAPES") == nullptr) changes["ROLLCALL_TENSOR_SHAPES"] = "1";
  }
  if (flags_.sim) {
    const std::string simulation = FindSimulation();
    if (simulation.empty()) {
      spdlog::error("--sim: cannot find the simulated libraries beside this program");
      return kExitBadUsage;
    }
    changes["LD_LIBRARY_PATH"] = Prepended("LD_LIBRARY_PATH", simulation, ':');
  }
  const Spawned spawned = Spawn(command_, EnvironmentWith(changes), inherited_);
  if (spawned.pid < 0) {
    spdlog::error("cannot run {}: {}", command_.front(), strerror(spawned.error));
    return ExitCodeOfSpawnError(spawned.error);
  }
  child_ = spawned.pid;
  return 0;
}

void Run::WaitForJob() {
  while (!ended_) {
    pollfd wait = {signals_, POLLIN, 0};
    poll(&wait, 1, 100);
    TakeSignals();
    LookForIncidents();
    if (kill_at_ns_ != 0 && MonotonicNs() > kill_at_ns_) {
      SignalAll(Descendants(), SIGKILL);
      kill_at_ns_ += kGrace;
    }
  }
  if (kill_at_ns_ != 0) EndLingering();
}

void Run::TakeSignals() {
  signalfd_siginfo info;
  while (read(signals_, &info, sizeof(info)) == sizeof(info)) {
    if (info.ssi_signo != SIGCHLD) PassOn(info);
  }
  Reap();
}

void Run::PassOn(const signalfd_siginfo& info) {
  const int signal = static_cast<int>(info.ssi_signo);
  // A key at the terminal reaches the whole foreground group, the job included.
  const bool from_terminal = info.ssi_code == SI_KERNEL;
  if (!from_terminal) kill(child_, signal);
  if (signal == SIGQUIT) return;  // programs may answer it and go on
  if (inherited_.MayGoOnAfter(signal)) return;
  // A second signal ends the job.
  kill_at_ns_ = kill_at_ns_ == 0 ? MonotonicNs() + 2 * kGrace : MonotonicNs();
}

void Run::Reap() {
  int status = 0;
  pid_t pid;
  while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
    // Taking stacks stops threads for a moment, which shows here too.
    if (pid != child_ || !(WIFEXITED(status) || WIFSIGNALED(status))) continue;
    ended_ = true;
    exit_code_ = ToExitCode(status);
  }
}

// On a terminal a progress bar may occupy the line. This clears the line, and the job draws the bar
// below.
void Tell(const IncidentWatch::News& news) {
  std::cerr << (isatty(STDERR_FILENO) ? "\r\033[K" : "") << news.text << std::flush;
}

void Run::LookForIncidents() {
  if (incidents_ == nullptr || aborted_) return;
  for (const IncidentWatch::News& news : incidents_->Look()) {
    Tell(news);
    told_ = true;
    // Abort cannot end an ended job. A command may still run.
    if (news.incident.is_over) ActIfDue(news.incident);
  }
  if (flags_.on_hang == "observe") return;
  if (local_ != nullptr) local_->Look(MonotonicNs());
  for (const ConfirmedIncident& incident : incidents_->open()) {
    ActIfDue(incident);
    if (aborted_) return;
  }
}

std::string Run::WhyNotActOn(const ConfirmedIncident& incident) const {
  LocalStandstill local;
  // An ended job has no ranks to check and nothing to end.
  local.is_needed = local_ != nullptr && !incident.is_over;
  if (local.is_needed) {
    local.ns = local_->StandsStillFor(incident.ranks, incident.communicator, MonotonicNs());
  }
  return WhyNotAct(incident.finding, local, HangAfterNs());
}

// --on-hang, once for each incident.
void Run::ActIfDue(const ConfirmedIncident& incident) {
  if (flags_.on_hang == "observe" || acted_on_.count(incident.id) != 0) return;
  const bool abort = flags_.on_hang == "abort";
  if (abort && incident.is_over) return;
  const std::string why_not = WhyNotActOn(incident);
  if (!why_not.empty()) {
    if (held_back_.insert(incident.id).second) {
      spdlog::info("--on-hang={} does not act yet: {}", abort ? "abort" : "exec", why_not);
    }
    return;
  }
  if (abort && incident.has_failed && IsLeftToLauncher(incident)) return;
  acted_on_.insert(incident.id);
  if (abort) return Abort();
  const Spawned spawned = Spawn({"/bin/sh", "-c", flags_.on_hang.substr(5)},
                                EnvironmentWith({{"ROLLCALL_INCIDENT", incident.id},
                                                 {"ROLLCALL_REPORT", incident.report_path},
                                                 {"ROLLCALL_SUMMARY", incident.summary}}),
                                inherited_);
  if (spawned.pid < 0) spdlog::error("--on-hang: {}", strerror(spawned.error));
}

// The launcher has some time to end the other ranks of one that has failed.
bool Run::IsLeftToLauncher(const ConfirmedIncident& incident) {
  const int64_t now_ns = MonotonicNs();
  const int64_t until_ns = now_ns + PatienceWithLauncherNs() - incident.waited_ns;
  return now_ns < left_to_launcher_.emplace(incident.id, until_ns).first->second;
}

int64_t Run::HangAfterNs() const {
  return DurationNs(flags_.hang_after);
}

// A rank has failed: torchrun ends the others by itself, or starts them anew.
int64_t Run::PatienceWithLauncherNs() const {
  const Limits limits = LimitsFor(HangAfterNs());
  return std::min(limits.hang_after_ns, limits.absent_for_good_ns);
}

void Run::Abort() {
  spdlog::info("ending the job (--on-hang=abort)");
  aborted_ = true;
  EndJob(SIGTERM);
}

void Run::EndJob(int signal) {
  SignalAll(Descendants(), signal);
  SignalAll(Descendants(), SIGCONT);  // so that stopped ranks receive the signal too
  kill_at_ns_ = MonotonicNs() + kGrace;
}

// The command has ended. Processes that it left behind get the same time to end.
void Run::EndLingering() {
  SignalAll(Descendants(), SIGTERM);
  const int64_t until = MonotonicNs() + kGrace;
  while (!Descendants().empty() && MonotonicNs() < until) {
    usleep(20'000);
    Reap();
  }
  SignalAll(Descendants(), SIGKILL);
  usleep(20'000);
  Reap();
}

void Run::Finish() {
  if (agent_ != nullptr) agent_->Stop();
  if (daemon_ != nullptr) daemon_->Stop();
  if (incidents_ != nullptr && !aborted_) {
    for (const IncidentWatch::News& news : incidents_->Look(/*last=*/true)) {
      Tell(news);
      told_ = true;
    }
  }
  if (child_ > 0 && !library_.empty() && !told_) SayWhatWasSeen();
  directory_.Remove();
}

void Run::SayWhatWasSeen() {
  if (agent_ != nullptr && agent_->seen_communicators()) return;
  // From the files: an agent whose daemon was never there has not looked.
  CollectorOptions options;
  options.directory = directory_.path();
  options.live = false;
  Collector collector(options);
  collector.Collect(0, true);
  if (collector.seen_communicators()) return;
  if (directory_.loaded()) {
    spdlog::info("the job loaded the library but created no NCCL communicator: nothing to watch");
  } else {
    spdlog::info(
        "the job did not load the library (static or setuid program, or cleared LD_PRELOAD): "
        "Rollcall recorded nothing");
  }
}

}  // namespace

int RunCommand(const std::vector<std::string>& arguments) {
  const auto separator = std::find(arguments.begin(), arguments.end(), "--");
  RunFlags flags;
  CLI::App app(
      "Runs CMD and reports the rank at fault when CMD hangs. CMD's output and exit code\n"
      "pass through unchanged:  rollcall run [flags] -- CMD...",
      "rollcall run");
  DefineFlags(&app, &flags);
  int exit_code = 0;
  if (!ParseFlags(&app, {arguments.begin(), separator}, &exit_code)) return exit_code;
  if (separator == arguments.end() || separator + 1 == arguments.end()) {
    std::cerr << "rollcall run: no command to run\n  rollcall run [flags] -- CMD...\n";
    return kExitBadUsage;
  }
  return Run(flags, {separator + 1, arguments.end()}).Go();
}

}  // namespace rollcall
