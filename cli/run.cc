// SPDX-License-Identifier: Apache-2.0
// rollcall run: runs a job under the library, with agent and daemon inside this
// process, and reports the rank at fault when the job hangs.
//
// The job runs even if Rollcall fails: `rollcall run` prints the failure, and the job
// runs with fewer functions of Rollcall or without them.
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
#include <functional>
#include <iostream>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "agent/agent.h"
#include "agent/agent_info.h"
#include "agent/daemon_channel.h"
#include "agent/processes/monotonic_clock.h"
#include "agent/redact_flag.h"
#include "cli/child.h"
#include "cli/commands.h"
#include "cli/incident_watch.h"
#include "cli/job_directory.h"
#include "cli/local_progress.h"
#include "cli/stderr_queue.h"
#include "daemon/report/writer.h"
#include "daemon/server/daemon.h"
#include "daemon/server/daemon_security.h"
#include "daemon/server/duration_flag.h"
#include "daemon/server/listen_policy.h"
#include "daemon/server/loose_thread.h"
#include "interpose/environment.h"
#include "proto/durations.h"

extern char** environ;

namespace rollcall {
namespace {

constexpr int64_t kGrace = 5 * kSecond;  // from SIGTERM to SIGKILL
// Segments of ended ranks take memory from a restarted job. After this time the daemon has their
// contents.
constexpr int64_t kKeepEndedNs = 5 * kSecond;

// For a folder whose file server may be gone, and for a stderr that nobody reads.
constexpr std::chrono::seconds kPatienceWithFolder{2};
constexpr std::chrono::seconds kPatienceWithReader{5};

// After the end of a command that failed.
constexpr int64_t kRanksEndWithinNs = 2 * kSecond;
constexpr int64_t kVerdictWithinNs = kSecond;

struct RunFlags {
  std::string hang_after = "60s";
  std::string on_hang = "observe";
  std::string report_dir = "./rollcall-reports";
  std::string http = "127.0.0.1:0";
  DaemonAddress daemon = {"", "", "", "", "", ""};  // no address: the embedded one
  bool sim = false;
  bool insecure = false;
  std::vector<std::string> redact;
  std::shared_ptr<const Redactor> redactor;  // made from `redact`
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
  app->add_option("--daemon", flags->daemon.address,
                  "address of a rollcalld to use instead of the embedded one, HOST:PORT")
      ->envname("ROLLCALL_DAEMON");
  AddDaemonSecurityFlags(app, &flags->daemon);
  app->add_flag("--insecure", flags->insecure,
                "open --http to other hosts without TLS; they need the token in its address")
      ->envname("ROLLCALL_INSECURE");
  app->add_flag("--sim", flags->sim, "run the job with the simulated NCCL, without a GPU")
      ->envname("ROLLCALL_SIM");
  AddRedactFlag(app, &flags->redact);
}

// This process's environment with `changes`.
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

// The job's name. If the launcher names the job, all hosts get the same name. Otherwise the name
// holds for this host only.
std::string NameOfJob(const std::vector<std::string>& command) {
  const std::string named = FindJob(&getenv);
  if (!named.empty()) return CanonicalJob(named);
  return CanonicalJob(absl::StrCat(std::filesystem::path(command.front()).filename().string(), "-",
                                   getpid()));
}

// Uses a folder, with a time limit. kDeadlineExceeded: `work` has not ended, so it must own all
// that it uses.
absl::Status UseInTime(const std::string& folder, std::function<absl::Status()> work) {
  const auto status = std::make_shared<absl::Status>();
  LooseThread thread;
  thread.Start([status, work = std::move(work)] { *status = work(); });
  if (thread.Join(std::chrono::steady_clock::now() + kPatienceWithFolder)) return *status;
  return absl::DeadlineExceededError(absl::StrCat(folder, " does not answer"));
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
  void UseDaemonElsewhere();
  void StartAgent(ChannelSource channels);
  int StartJob();
  void WaitForJob();
  void TakeSignals();
  void PassOn(const signalfd_siginfo& info);
  void Reap();
  void Print(const IncidentWatch::News& news);
  void LookForIncidents();
  std::string WhyNotActOn(const ConfirmedIncident& incident) const;
  void ActIfDue(const ConfirmedIncident& incident);
  bool IsLeftToLauncher(const ConfirmedIncident& incident);
  int64_t HangAfterNs() const;
  int64_t PatienceWithLauncherNs() const;
  void Abort();
  void EndJob(int signal);
  void EndLingering();
  void AwaitRanks();
  void AwaitVerdict();
  void PrintNews(bool last);
  void Finish();
  void ExplainNoCommunicator();

  const RunFlags flags_;
  const std::vector<std::string> command_;
  const std::string job_;
  // Shared with threads that a dead file server blocks.
  std::shared_ptr<JobDirectory> directory_ = std::make_shared<JobDirectory>();
  std::shared_ptr<StderrQueue> stderr_;
  std::string library_;
  std::unique_ptr<DaemonSecurity> security_;  // of the embedded daemon
  std::unique_ptr<Daemon> daemon_;
  std::shared_ptr<DaemonChannels> channels_;  // to a daemon elsewhere
  std::unique_ptr<Agent> agent_;
  std::unique_ptr<IncidentWatch> incidents_;
  InheritedSignals inherited_ = {};
  int signals_ = -1;
  pid_t child_ = -1;
  bool ended_ = false;
  int exit_code_ = 0;
  bool aborted_ = false;
  bool reported_ = false;                            // at least one incident
  std::unique_ptr<LocalProgress> local_;             // of this host's ranks; null: not needed
  std::set<std::string> acted_on_, held_back_;       // ids of incidents
  std::map<std::string, int64_t> left_to_launcher_;  // id of the incident -> end of the wait
  int64_t kill_at_ns_ = 0;  // the time to kill a job that got a signal to end; 0: it got none
};

int Run::Go() {
  PrepareSignals();
  const std::shared_ptr<spdlog::logger> logger = spdlog::default_logger();
  stderr_ = std::make_shared<StderrQueue>();
  LogTo(stderr_);
  StartRollcall();
  const int failed = StartJob();
  if (failed == 0) WaitForJob();
  Finish();
  spdlog::set_default_logger(logger);
  if (failed != 0) return failed;
  return aborted_ ? kExitHangAborted : exit_code_;
}

// Runs before this process starts a thread, so that all threads have the signals blocked.
void Run::PrepareSignals() {
  inherited_ = ReadInheritedSignals();
  sigset_t wanted;
  sigemptyset(&wanted);
  for (const int signal : {SIGCHLD, SIGINT, SIGTERM, SIGHUP, SIGQUIT}) sigaddset(&wanted, signal);
  pthread_sigmask(SIG_BLOCK, &wanted, nullptr);
  signal(SIGPIPE, SIG_IGN);
  signal(SIGCHLD, SIG_DFL);  // while SIGCHLD is ignored, the kernel gives no exit code
  signals_ = signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK);
  // This process adopts orphans of the job, so that it can end them.
  prctl(PR_SET_CHILD_SUBREAPER, 1);
}

void Run::StartRollcall() {
  library_ = FindLibrary();
  if (library_.empty()) {
    spdlog::error(
        "cannot find librollcall.so in ../lib of this program's folder; the job runs without "
        "Rollcall\n  build or install it:  cmake --build --preset release");
    return;
  }
  const auto directory = std::make_shared<JobDirectory>();
  const absl::Status made = UseInTime("the folder of the segments (ROLLCALL_DIR)",
                                      [directory] { return directory->Make(); });
  if (!made.ok()) {
    spdlog::error("the job runs without Rollcall: {}", std::string(made.message()));
    library_.clear();
    return;
  }
  directory_ = directory;
  if (!StartDaemon()) return;
  if (daemon_ != nullptr) {
    return StartAgent([channel = daemon_->InProcessChannel()] { return channel; });
  }
  UseDaemonElsewhere();
}

void Run::UseDaemonElsewhere() {
  const auto channels = DaemonChannels::Open(flags_.daemon);
  if (!channels.ok()) {
    spdlog::error("{}; the job runs without Rollcall", std::string(channels.status().message()));
    return;
  }
  channels_ = *channels;
  const std::string& address = flags_.daemon.address;
  incidents_ = IncidentWatch::OfDaemonAt(address, channels_->Connect(), job_, flags_.report_dir);
  local_ = std::make_unique<LocalProgress>(directory_->path());
  // The host's agent already reports this job to that daemon.
  if (FindHostAgent(address, {kHostAgentDirectory, directory_->base()})) return;
  StartAgent([channels = channels_] { return channels->Connect(); });
}

void Run::StartAgent(ChannelSource channels) {
  const absl::Status alone = directory_->ServeAlone();
  if (!alone.ok()) spdlog::warn("{}", std::string(alone.message()));
  AgentOptions options;
  options.collector.directory = directory_->path();
  options.collector.discover_directory = directory_->path();
  options.collector.keep_ended_ns = kKeepEndedNs;
  options.collector.redactor = flags_.redactor;
  if (daemon_ != nullptr) options.max_stacks_per_minute = 0;  // it asks only for this job's
  if (channels_ != nullptr) {
    options.explain = [channels = channels_](const grpc::Status& status) {
      return channels->Explain(status);
    };
  }
  agent_ = std::make_unique<Agent>(options, std::move(channels));
  agent_->Start();
}

// The folder for reports, or "" if Rollcall cannot write there. A folder that does not answer now
// may answer when there is a report to write.
std::string Run::UsableReportDir() const {
  const absl::Status writable =
      UseInTime(absl::StrCat("the report folder ", flags_.report_dir),
                [folder = flags_.report_dir] { return CheckReportDir(folder); });
  if (writable.ok()) return flags_.report_dir;
  if (absl::IsDeadlineExceeded(writable)) {
    spdlog::error("{}; the job still runs", std::string(writable.message()));
    return flags_.report_dir;
  }
  spdlog::error("{}; the report will be printed here instead", std::string(writable.message()));
  return "";
}

// Returns false if there is no daemon.
bool Run::StartDaemon() {
  DaemonOptions options;
  options.limits = LimitsFor(HangAfterNs());
  options.default_job = job_;
  options.log_incidents = false;
  options.http = flags_.http == "none" ? "" : flags_.http;
  options.report_dir = UsableReportDir();
  if (!flags_.daemon.address.empty()) return true;
  const absl::Status open = CheckListen("--http", options.http, {false, true, flags_.insecure});
  if (!open.ok()) {
    spdlog::error("{}\n  the job runs without the page", std::string(open.message()));
    options.http.clear();
  }
  security_ = DaemonSecurity::ForOwner(options.http);
  options.authenticator = &security_->authenticator();
  options.http_token = MakePageToken();
  options.http_token_is_optional = true;
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
    spdlog::info("live page: http://{}/?token={}", daemon_->http_address(), options.http_token);
  }
  return true;
}

// Returns 0, or the exit code if the job did not start.
int Run::StartJob() {
  std::map<std::string, std::string> changes;
  if (!library_.empty()) {
    // The library comes after the libraries that the job preloads itself. Sanitizers must come
    // first. NCCL wrappers of another tool would get no calls if Rollcall's came before them.
    changes["LD_PRELOAD"] = Appended("LD_PRELOAD", library_, ':');
    changes["ROLLCALL_DIR"] = directory_->path();
    changes["ROLLCALL_LOADED"] = directory_->loaded_file();
    changes["ROLLCALL_JOB"] = job_;
    if (getenv("ROLLCALL_TENSOR_SHAPES") == nullptr) changes["ROLLCALL_TENSOR_SHAPES"] = "1";
  }
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
  if (kill_at_ns_ != 0) {
    EndLingering();
  } else if (exit_code_ != 0) {
    AwaitRanks();
  }
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
  if (signal == SIGQUIT) return;  // programs may answer SIGQUIT and go on
  if (inherited_.MayGoOnAfter(signal)) return;
  // A second signal ends the job.
  kill_at_ns_ = kill_at_ns_ == 0 ? MonotonicNs() + 2 * kGrace : MonotonicNs();
}

void Run::Reap() {
  int status = 0;
  pid_t pid;
  while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
    // The agent stops threads for a moment to take stacks. waitpid() reports these stops, too.
    if (pid != child_ || !(WIFEXITED(status) || WIFSIGNALED(status))) continue;
    ended_ = true;
    exit_code_ = ToExitCode(status);
  }
}

// On a terminal, a progress bar may occupy the line. Clears that line first. The job then draws the
// bar below.
void Run::Print(const IncidentWatch::News& news) {
  stderr_->Write(absl::StrCat(isatty(STDERR_FILENO) ? "\r\033[K" : "", news.text));
}

void Run::LookForIncidents() {
  if (incidents_ == nullptr || aborted_) return;
  for (const IncidentWatch::News& news : incidents_->Look()) {
    Print(news);
    reported_ = true;
    // --on-hang=abort cannot end an ended job. --on-hang=exec may still run its command.
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
  // An ended job has no ranks to check.
  local.is_needed = local_ != nullptr && !incident.is_over;
  if (local.is_needed) {
    local.ns = local_->StandsStillFor(incident.ranks, incident.communicator, MonotonicNs());
  }
  const std::string why_not = WhyNotAct(incident.finding, local, HangAfterNs());
  if (!why_not.empty() || local_ == nullptr) return why_not;
  local.is_of_other_job = !incidents_->HasOneOf(local_->communicators(), incident);
  return WhyNotAct(incident.finding, local, HangAfterNs());
}

// Does what --on-hang says, once for each incident.
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
  if (spawned.pid < 0) {
    spdlog::error("--on-hang=exec: cannot run /bin/sh: {}", strerror(spawned.error));
  }
}

// When a rank has failed, its launcher gets some time to end the other ranks.
bool Run::IsLeftToLauncher(const ConfirmedIncident& incident) {
  const int64_t now_ns = MonotonicNs();
  const int64_t until_ns = now_ns + PatienceWithLauncherNs() - incident.waited_ns;
  return now_ns < left_to_launcher_.emplace(incident.id, until_ns).first->second;
}

int64_t Run::HangAfterNs() const { return DurationNs(flags_.hang_after); }

// When a rank has failed, torchrun ends or restarts the others.
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

// Ends the processes that the ended command left behind. They get the same time as the command.
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

// A launcher whose rank has failed kills the other ranks. Open MPI's then exits although some of
// them have not ended yet. The agent's last tick has to have the end of each rank, because there is
// no verdict on the end of a job with a living rank.
void Run::AwaitRanks() {
  const int64_t until_ns = MonotonicNs() + kRanksEndWithinNs;
  while (!Descendants().empty() && MonotonicNs() < until_ns) {
    usleep(20'000);
    Reap();
  }
}

// A daemon on the network judges the agent's last tick a moment after the agent has sent it.
void Run::AwaitVerdict() {
  const bool has_failed = exit_code_ != 0 && kill_at_ns_ == 0;
  const bool has_communicators = agent_ == nullptr || agent_->seen_communicators();
  if (daemon_ != nullptr || !has_failed || !has_communicators) return;
  const int64_t until_ns = MonotonicNs() + kVerdictWithinNs;
  while (!reported_ && MonotonicNs() < until_ns) {
    PrintNews(/*last=*/false);
    usleep(20'000);
  }
}

void Run::PrintNews(bool last) {
  for (const IncidentWatch::News& news : incidents_->Look(last)) {
    Print(news);
    reported_ = true;
  }
}

void Run::Finish() {
  if (agent_ != nullptr) agent_->Stop();
  if (daemon_ != nullptr) daemon_->Stop();
  if (incidents_ != nullptr && !aborted_) {
    AwaitVerdict();
    PrintNews(/*last=*/true);
  }
  if (child_ > 0 && !library_.empty() && !reported_) ExplainNoCommunicator();
  const std::string path = directory_->path();
  const absl::Status removed = UseInTime("the folder of the segments", [directory = directory_] {
    directory->Remove();
    return absl::OkStatus();
  });
  if (!removed.ok()) {
    spdlog::warn("{}: {} stays; the next run removes it", std::string(removed.message()), path);
  }
  stderr_->Flush(std::chrono::steady_clock::now() + kPatienceWithReader);
}

void Run::ExplainNoCommunicator() {
  if (agent_ != nullptr && agent_->seen_communicators()) return;
  struct Found {
    bool communicators = false, library = false;
  };
  const auto found = std::make_shared<Found>();
  const absl::Status read = UseInTime(directory_->path(), [found, directory = directory_] {
    // An agent that never reached its daemon has not read the segments.
    CollectorOptions options;
    options.directory = directory->path();
    options.live = false;
    Collector collector(options);
    collector.Collect(0, true);
    found->communicators = collector.seen_communicators();
    found->library = directory->loaded();
    return absl::OkStatus();
  });
  if (!read.ok() || found->communicators) return;
  if (found->library) {
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
    std::cerr << "rollcall run: no command to run after --\n"
                 "  usage:  rollcall run [flags] -- CMD...\n";
    return kExitBadUsage;
  }
  flags.redactor = MakeRedactor(flags.redact);
  if (flags.redactor == nullptr) return kExitBadUsage;
  return Run(flags, {separator + 1, arguments.end()}).Go();
}

}  // namespace rollcall
