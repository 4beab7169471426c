// SPDX-License-Identifier: Apache-2.0
// rollcalld: flags, wiring, signals.
#include <signal.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <CLI/CLI.hpp>
#include <fstream>
#include <iostream>
#include <sstream>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "daemon/report/writer.h"
#include "daemon/server/address.h"
#include "daemon/server/daemon.h"
#include "daemon/server/descriptors.h"
#include "daemon/server/duration_flag.h"
#include "proto/durations.h"
#include "proto/loose_threads.h"

namespace {

constexpr size_t kShortestToken = 16;

struct Flags {
  std::string token_file;
  std::string history;
  int history_days = 180;
  int history_mib = 1024;
  std::vector<std::string> alerts;
  std::string alert_template;
};

absl::StatusOr<std::string> ReadText(const char* flag, const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  if (!file || !(text << file.rdbuf())) {
    return absl::NotFoundError(absl::StrCat(flag, ": cannot read ", path));
  }
  return text.str();
}

absl::Status FillOptions(const Flags& flags, rollcall::DaemonOptions* options) {
  if (!flags.token_file.empty()) {
    const auto text = ReadText("--http-token-file", flags.token_file);
    if (!text.ok()) return text.status();
    options->http_token = std::string(absl::StripAsciiWhitespace(*text));
    if (options->http_token.size() < kShortestToken ||
        options->http_token.find_first_of("; ,\"\n") != std::string::npos) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--http-token-file: ", flags.token_file, " holds no token of at least ", kShortestToken,
          " letters and digits\n  create one:  openssl rand -hex 32 > ", flags.token_file));
    }
  }
  const std::string beside(absl::StripSuffix(options->report_dir, "/"));
  options->history = flags.history.empty() ? beside + ".db" : flags.history;
  if (flags.history == "none") options->history.clear();
  // Only what somebody asked for is worth not starting for.
  options->history_is_optional = flags.history.empty();
  options->history_limits.keep_ns = int64_t{flags.history_days} * 86400 * rollcall::kSecond;
  options->history_limits.keep_bytes = int64_t{flags.history_mib} << 20;
  for (const std::string& alert : flags.alerts) {
    const auto target = rollcall::ParseAlertTarget(alert);
    if (!target.ok()) return target.status();
    options->alerts.targets.push_back(*target);
  }
  if (flags.alert_template.empty()) return absl::OkStatus();
  const auto text = ReadText("--alert-template", flags.alert_template);
  if (text.ok()) options->alerts.template_text = *text;
  return text.status();
}

bool IsLoopback(const std::string& host) {
  return host == "localhost" || host == "::1" || host.compare(0, 4, "127.") == 0;
}

int Main(int argc, char** argv) {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  signal(SIGPIPE, SIG_IGN);
  spdlog::set_default_logger(spdlog::stderr_logger_mt("rollcalld"));

  rollcall::DaemonOptions options;
  options.listen = "127.0.0.1:9400";
  options.http = "127.0.0.1:9401";
  options.report_dir = "./rollcall-reports";
  std::string hang_after = "60s";
  Flags flags;
  CLI::App app("Finds out why training jobs hang. Compares reports of agents and names the rank.",
               "rollcalld");
  app.set_version_flag("--version", ROLLCALL_VERSION);
  app.add_option("--listen", options.listen, "address for agents and the command line, HOST:PORT")
      ->envname("ROLLCALL_LISTEN")
      ->capture_default_str();
  app.add_option("--http", options.http, "address for browsers and scripts, HOST:PORT, or none")
      ->envname("ROLLCALL_HTTP")
      ->capture_default_str();
  app.add_option("--report-dir", options.report_dir, "folder for the reports")
      ->envname("ROLLCALL_REPORT_DIR")
      ->capture_default_str();
  app.add_option("--http-token-file", flags.token_file,
                 "file with the token that every HTTP request must carry")
      ->envname("ROLLCALL_HTTP_TOKEN_FILE");
  app.add_option("--http-max-connections", options.http_connections,
                 "limit of simultaneous connections to the page; a new one replaces the slowest")
      ->envname("ROLLCALL_HTTP_MAX_CONNECTIONS")
      ->capture_default_str()
      ->check(CLI::Range(8, 100000));
  app.add_option("--history", flags.history,
                 "database file of all incidents, or none (default: --report-dir with .db added)")
      ->envname("ROLLCALL_HISTORY");
  app.add_option("--history-days", flags.history_days, "days to keep incidents in the history")
      ->envname("ROLLCALL_HISTORY_DAYS")
      ->capture_default_str()
      ->check(CLI::Range(1, 36500));
  app.add_option("--history-size", flags.history_mib,
                 "limit of the history in MiB; the daemon deletes the oldest incidents")
      ->envname("ROLLCALL_HISTORY_SIZE")
      ->capture_default_str()
      ->check(CLI::Range(1, 1 << 20));
  app.add_option("--alert", flags.alerts,
                 "send confirmed hangs to KIND=TARGET: json, slack or alertmanager with a URL, "
                 "pagerduty with a key, exec with a command; @FILE reads a secret target")
      ->envname("ROLLCALL_ALERT");
  app.add_option("--alert-template", flags.alert_template,
                 "file with the body of json alerts; the daemon fills in {{summary}}, {{job}}, ...")
      ->envname("ROLLCALL_ALERT_TEMPLATE");
  app.add_option("--page-url", options.alerts.page, "URL of the page for links in alerts")
      ->envname("ROLLCALL_PAGE_URL");
  app.add_option("--hang-after", hang_after, "a wait of this length is a hang")
      ->envname("ROLLCALL_HANG_AFTER")
      ->capture_default_str()
      ->check(CLI::Validator(rollcall::CheckDuration, "TIME"));
  CLI11_PARSE(app, argc, argv);
  options.limits = rollcall::LimitsFor(rollcall::DurationNs(hang_after));

  if (options.http == "none") options.http.clear();
  const absl::StatusOr<rollcall::Address> listen =
      rollcall::ParseAddress("--listen", options.listen);
  absl::Status status = listen.status();
  if (status.ok()) status = rollcall::CheckReportDir(options.report_dir);
  if (status.ok()) status = FillOptions(flags, &options);
  if (status.ok() && !options.http.empty()) {
    const auto http = rollcall::ParseAddress("--http", options.http);
    if (http.ok() && options.http_token.empty() && !IsLoopback(http->host)) {
      spdlog::warn(
          "pages on {} without a token: everyone who reaches this address can read them and take "
          "stacks\n  safer:  openssl rand -hex 32 > FILE; rollcalld --http-token-file=FILE ...",
          options.http);
    }
  }
  options.alerts.open_files = rollcall::RaiseDescriptorLimit();
  rollcall::Daemon daemon(options);
  if (status.ok()) status = daemon.Start();
  if (!status.ok()) {
    std::cerr << "rollcalld: " << status.message() << "\n";
    return 1;
  }
  spdlog::info("agents on {}:{}, pages on {}, reports in {}", listen->host, daemon.grpc_port(),
               options.http.empty() ? "none" : "http://" + daemon.http_address() + "/",
               options.report_dir);
  int signal = 0;
  sigwait(&signals, &signal);
  spdlog::info("stopping");
  daemon.Stop();
  return 0;
}

}  // namespace

int main(int argc, char** argv) { return rollcall::LeaveProcess(Main(argc, argv)); }
