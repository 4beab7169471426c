// SPDX-License-Identifier: Apache-2.0
// rollcall diagnose: finds out what is wrong with jobs that hang now and that no user prepared. It
// looks at their processes on this host three times, from outside, and applies the daemon's rules.
//
// Exit codes: 0 if nothing stands still, 3 if a job hangs, 2 if it is unknown, or bad usage.
#include <pwd.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <functional>
#include <iostream>
#include <optional>
#include <thread>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "agent/processes/spare_threads.h"
#include "agent/redact_flag.h"
#include "base/clean_text.h"
#include "base/duration_flag.h"
#include "base/durations.h"
#include "cli/commands.h"
#include "cli/diagnose/ask_for_dump.h"
#include "cli/diagnose/by_daemon.h"
#include "cli/diagnose/elsewhere.h"
#include "cli/diagnose/gather.h"
#include "cli/diagnose/say.h"
#include "cli/diagnose/say_json.h"
#include "cli/diagnose/say_logs.h"
#include "cli/remote/remote_script.h"
#include "cli/usage.h"
#include "daemon/looks/ask_ras.h"
#include "daemon/looks/judge.h"
#include "daemon/looks/unanswered.h"
#include "daemon/report/report_files.h"
#include "daemon/report/writer.h"

namespace rollcall {
namespace {

constexpr int64_t kShortestApartNs = 2 * kSecond;
constexpr int64_t kMillisecond = 1'000'000;
// The time to find the processes and take their stacks.
constexpr int64_t kBesidesNs = 33 * kSecond / 10;

struct Flags {
  std::string format = "text";
  std::string user;
  std::string report_dir;
  std::string samples_apart = "6s";
  bool dump_flight_recorder = false;
  std::vector<std::string> names;
  RedactFlags redact;
  ElsewhereFlags elsewhere;
  DaemonLookFlags by_daemon;
};

void AddFlags(CLI::App* app, Flags* flags) {
  app->add_option("--format", flags->format, "output format: text or json (as incident.json)")
      ->envname("ROLLCALL_FORMAT")
      ->capture_default_str()
      ->check(CLI::IsMember({"text", "json"}));
  app->add_option("--user", flags->user,
                  "jobs of this user, by name or number, instead of your own: needs the rights");
  app->add_option("--report-dir", flags->report_dir,
                  "write a report of each job that hangs into a folder below this one");
  app->add_option("--samples-apart", flags->samples_apart,
                  "time from the first to the last look at each process")
      ->capture_default_str()
      ->check(CLI::Validator(CheckDuration, "TIME"));
  app->add_flag("--dump-flight-recorder", flags->dump_flight_recorder,
                "ask PyTorch's Flight Recorder of each rank to write its dump, where the job has "
                "named a pipe for that: it writes files");
  app->add_option("JOB|PID", flags->names,
                  "name or script of one job, or process numbers; without: all jobs of the user");
  AddRedactFlags(app, &flags->redact);
  AddElsewhereFlags(app, &flags->elsewhere);
  AddDaemonFlags(app, &flags->by_daemon.daemon);
  app->add_option("--tenant", flags->by_daemon.tenant, "--daemon: only the job of this tenant");
}

// nullopt if there is no such user.
std::optional<uid_t> FindUser(const std::string& name) {
  uid_t number = 0;
  if (absl::SimpleAtoi(name, &number)) return number;
  const passwd* entry = getpwnam(name.c_str());
  if (entry == nullptr) return std::nullopt;
  return entry->pw_uid;
}

// Shows one line of progress on a terminal, and nothing elsewhere.
class ProgressLine {
 public:
  ~ProgressLine() { Clear(); }
  void Show(const std::string& text) {
    if (!is_terminal_) return;
    Clear();
    std::cerr << "rollcall: " << text << " ..." << std::flush;
    is_shown_ = true;
  }
  void Clear() {
    if (is_shown_) std::cerr << "\r\033[K" << std::flush;
    is_shown_ = false;
  }

 private:
  const bool is_terminal_ = isatty(STDERR_FILENO) != 0;
  bool is_shown_ = false;
};

// False after an error, which this function has printed.
bool ParseNames(const CLI::App& app, const Flags& flags, LookOptions* options) {
  if (flags.by_daemon.is_typed) return true;  // all names are the daemon's
  for (const std::string& name : flags.names) {
    pid_t pid = 0;
    if (absl::SimpleAtoi(name, &pid) && pid > 0) {
      if (access(absl::StrCat("/proc/", pid).c_str(), F_OK) != 0) {
        RefuseUsage(app, absl::StrCat("process ", pid, " does not exist on this host"));
        return false;
      }
      options->pids.push_back(pid);
    } else if (flags.names.size() == 1) {
      options->job = name;
    } else {
      RefuseUsage(app, absl::StrCat(CleanText(name), ": name one job, or process numbers"));
      return false;
    }
  }
  return true;
}

// False after an error, which this function has printed.
bool MakeOptions(const CLI::App& app, const Flags& flags, LookOptions* options) {
  options->uid = geteuid();
  if (!flags.user.empty()) {
    options->uid = FindUser(flags.user);
    if (!options->uid.has_value()) {
      RefuseUsage(app, absl::StrCat("--user=", CleanText(flags.user), ": no such user"));
      return false;
    }
  }
  options->apart_ns = DurationNs(flags.samples_apart);
  if (options->apart_ns < kShortestApartNs && flags.elsewhere.look.empty()) {
    RefuseUsage(app, "--samples-apart: at least 2s");
    return false;
  }
  options->patience_ns = options->apart_ns + kBesidesNs;
  options->redactor = MakeRedactor(flags.redact);
  options->arguments = flags.redact.send_arguments();
  return options->redactor != nullptr && ParseNames(app, flags, options);
}

void DumpFlightRecorder(const v1::HostLook& look) {
  SpareThreads threads;
  size_t asked = 0, named = 0;
  for (const v1::ProcessLook& process : look.processes()) {
    if (process.dump_pipe().empty()) continue;
    ++named;
    const auto done = threads.Get<bool>(
        absl::StrCat("pipe ", process.process().pid()),
        [process] {
          return AskForDump(absl::StrCat("/proc/", process.process().pid(), "/root"),
                            process.dump_pipe(), process.process().identity().uid());
        },
        kSecond);
    asked += done.value_or(false);
  }
  if (named == 0) {
    std::cerr << "rollcall: no rank has a pipe for its Flight Recorder: "
                 "TORCH_NCCL_DEBUG_INFO_PIPE_FILE is not set in the job\n";
    return;
  }
  if (asked == 0) {
    std::cerr
        << "rollcall: the job does not read the pipes of its Flight Recorder yet: PyTorch reads "
           "them from its first NCCL group on\n";
    return;
  }
  std::cerr << "rollcall: asked the Flight Recorder of " << asked
            << " ranks for dumps; then:  rollcall analyze FOLDER\n";
}

// False after an error, which it has printed.
bool WriteReports(const std::string& folder, std::vector<LookedAtJob>* jobs) {
  for (LookedAtJob& job : *jobs) {
    if (job.incident.verdicts().empty()) continue;
    const auto path = CreateReport(folder, job.incident);
    if (!path.ok()) {
      std::cerr << "rollcall diagnose: " << path.status().message() << "\n";
      return false;
    }
    job.incident.set_report_path(*path);
    if (const std::string logs = LogsInFull(job); !logs.empty()) {
      const absl::Status written = WriteFile(absl::StrCat(*path, "/", kLogsFile), logs);
      if (!written.ok()) std::cerr << "rollcall diagnose: " << written.message() << "\n";
    }
  }
  return true;
}

using Looks = std::vector<v1::HostLook>;
using Tell = std::function<void(const std::string&)>;

bool IsPlainWord(const std::string& word) {
  return !word.empty() && std::all_of(word.begin(), word.end(), [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || absl::StrContains("-_=./,:@%+", c);
  });
}

// Returns the same flags for another host, with the name of the job instead of processes.
std::vector<std::string> ArgumentsThere(const Flags& flags, int64_t apart_ns) {
  std::vector<std::string> arguments = {
      "diagnose", absl::StrCat("--samples-apart=", apart_ns / kMillisecond, "ms")};
  if (!flags.user.empty()) arguments.push_back(absl::StrCat("--user=", flags.user));
  for (const std::string& pattern : flags.redact.patterns)
    arguments.push_back(absl::StrCat("--redact=", pattern));
  arguments.push_back(absl::StrCat("--send-arguments=", flags.redact.arguments));
  if (!flags.names.empty()) {
    arguments.emplace_back("--");
    arguments.push_back(flags.names.front());
  }
  return arguments;
}

void PauseBetweenCounts() { std::this_thread::sleep_for(std::chrono::seconds(3)); }

Looks LookHere(LookOptions options, const Flags& flags, const Tell& tell,
               std::vector<LookedAtJob>* jobs) {
  options.tell = tell;
  Looks looks = {GatherLook(options)};
  *jobs = JudgeLooks(looks);
  AskRasOfJobs(
      looks, jobs,
      [&](const RasPlace& place) {
        tell("asking NCCL's RAS");
        RasQuestion question;
        question.pids = place.pids;
        question.changes_communicators = place.changes_communicators;
        question.use = RasUseOf(flags.elsewhere);
        return AskRasInTime(question);
      },
      &PauseBetweenCounts);
  return looks;
}

// An error is for people.
absl::StatusOr<Looks> LookAndJudge(const Flags& flags, const LookOptions& options, const Tell& tell,
                                   std::vector<LookedAtJob>* jobs) {
  if (flags.by_daemon.is_typed) {
    absl::StatusOr<Looks> looks =
        LookByDaemon(flags.by_daemon, flags.names.front(), options.apart_ns,
                     RasUseOf(flags.elsewhere) != RasUse::kNever, tell);
    if (looks.ok()) *jobs = JudgeWithRas(*looks);
    return looks;
  }
  if (!flags.elsewhere.is_elsewhere()) return LookHere(options, flags, tell, jobs);
  const absl::StatusOr<Elsewhere> elsewhere = Elsewhere::Find(flags.elsewhere, options.apart_ns);
  if (!elsewhere.ok()) return elsewhere.status();
  Looks looks =
      elsewhere->Look([&flags](int64_t apart_ns) { return ArgumentsThere(flags, apart_ns); }, tell);
  *jobs = JudgeLooks(looks);
  AskRasOfJobs(
      looks, jobs,
      [&](const RasPlace& place) {
        tell("asking NCCL's RAS");
        return elsewhere->AskRas(place);
      },
      &PauseBetweenCounts);
  return looks;
}

// The command again, without the flags that it is to get.
std::string AsTyped(const std::vector<std::string>& arguments) {
  std::string text = "rollcall diagnose";
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& word = arguments[i];
    const bool has_value = word == "--samples-apart" || word == "--format";
    if (has_value) ++i;
    if (has_value || absl::StartsWith(word, "--samples-apart=") ||
        absl::StartsWith(word, "--format=")) {
      continue;
    }
    absl::StrAppend(&text, " ", IsPlainWord(word) ? word : ShellQuoted(word));
  }
  return text;
}

// What makes no sense for other hosts, or empty.
std::string WrongElsewhere(const Flags& flags, const LookOptions& options) {
  if (!flags.elsewhere.is_elsewhere()) return "";
  if (!options.pids.empty())
    return "process numbers are of one host: name the job, or leave them out";
  if (flags.dump_flight_recorder) return "--dump-flight-recorder is for this host";
  return "";
}

// What makes no sense with --daemon, or empty.
std::string WrongByDaemon(const Flags& flags) {
  if (!flags.by_daemon.is_typed) {
    return flags.by_daemon.tenant.empty() ? "" : "--tenant is for --daemon=HOST:PORT";
  }
  if (flags.names.size() != 1) {
    return absl::StrCat("--daemon: name one job; those that it knows:  rollcall status --daemon=",
                        CleanText(flags.by_daemon.daemon.address));
  }
  if (flags.elsewhere.is_elsewhere()) {
    return "--daemon looks through the agents: leave out --hosts, --slurm and --kubernetes";
  }
  if (!flags.user.empty()) return "--user is for this host: with --daemon, name the job";
  if (RasUseOf(flags.elsewhere) == RasUse::kAlways) {
    return "--daemon asks NCCL's RAS only where that is safe: --ras=always is for this host, "
           "--hosts, --slurm and --kubernetes";
  }
  return flags.dump_flight_recorder ? "--dump-flight-recorder is for this host" : "";
}

}  // namespace

int DiagnoseCommand(const std::vector<std::string>& arguments) {
  Flags flags;
  CLI::App app(
      "Finds out what is wrong with jobs that hang now, also those that were not prepared for it: "
      "looks at the processes of this host three times, from outside. Nothing in the job changes.",
      "rollcall diagnose");
  AddFlags(&app, &flags);
  int exit_code = 0;
  if (!ParseFlags(&app, arguments, &exit_code)) return exit_code;
  flags.by_daemon.is_typed = !FirstTyped(arguments, {"--daemon"}).empty();
  if (const std::string wrong = WrongByDaemon(flags); !wrong.empty())
    return RefuseUsage(app, wrong);
  LookOptions options;
  if (!MakeOptions(app, flags, &options)) return kExitBadUsage;
  if (!flags.report_dir.empty()) {
    const absl::Status writable = CheckReportDir(flags.report_dir);
    if (!writable.ok()) return RefuseUsage(app, std::string(writable.message()));
  }
  if (!flags.elsewhere.look.empty())
    return PrintLook(flags.elsewhere, [&options] { return GatherLook(options); });
  if (const std::string wrong = WrongElsewhere(flags, options); !wrong.empty())
    return RefuseUsage(app, wrong);
  ProgressLine progress;
  const auto tell = [&progress](const std::string& text) { progress.Show(text); };
  std::vector<LookedAtJob> jobs;
  const absl::StatusOr<std::vector<v1::HostLook>> looks = LookAndJudge(flags, options, tell, &jobs);
  progress.Clear();
  for (LookedAtJob& job : jobs) KeepUnseen(&job);
  if (!looks.ok()) {
    std::cerr << "rollcall diagnose: " << looks.status().message() << "\n";
    return kExitBadUsage;
  }
  if (jobs.empty()) {
    for (const std::string& line : UnansweredHosts(*looks))
      std::cerr << "rollcall: " << line << "\n";
  }
  if (!flags.report_dir.empty() && !WriteReports(flags.report_dir, &jobs)) return kExitBadUsage;
  if (flags.format == "json") {
    std::cout << JobsAsJson(jobs, *looks);
  } else {
    SayOptions say;
    say.reports_kept = !flags.report_dir.empty();
    say.again = AsTyped(arguments);
    std::cout << SayJobs(jobs, *looks, say);
  }
  if (flags.dump_flight_recorder) DumpFlightRecorder(looks->front());
  // A name that fits no job may be mistyped: that is not all-clear.
  if (jobs.empty() && !flags.names.empty()) return kExitBadUsage;
  return ExitCodeOf(jobs, *looks);
}

}  // namespace rollcall
