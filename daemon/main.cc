// rollcalld: flags, wiring, signals.
#include <signal.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <CLI/CLI.hpp>
#include <iostream>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "daemon/address.h"
#include "daemon/daemon.h"
#include "daemon/report/writer.h"

namespace {

// "90", "90s", "1m30s"; also what the environment gives.
std::string CheckDuration(const std::string& text) {
  absl::Duration duration;
  if (absl::ParseDuration(text, &duration) && duration >= absl::Milliseconds(100)) return "";
  return "not a time of at least 100ms, for example 60s or 1m30s: " + text;
}

}  // namespace

int main(int argc, char** argv) {
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
  CLI::App app("Finds out why training jobs hang: takes in what agents see, and names the rank.",
               "rollcalld");
  app.set_version_flag("--version", ROLLCALL_VERSION);
  app.add_option("--listen", options.listen, "for agents and the CLI, HOST:PORT")
      ->envname("ROLLCALL_LISTEN")
      ->capture_default_str();
  app.add_option("--http", options.http, "for browsers and scripts, HOST:PORT, or none")
      ->envname("ROLLCALL_HTTP")
      ->capture_default_str();
  app.add_option("--report-dir", options.report_dir, "where reports are written")
      ->envname("ROLLCALL_REPORT_DIR")
      ->capture_default_str();
  app.add_option("--hang-after", hang_after, "a wait of this length is a hang")
      ->envname("ROLLCALL_HANG_AFTER")
      ->capture_default_str()
      ->check(CLI::Validator(CheckDuration, "TIME"));
  CLI11_PARSE(app, argc, argv);
  absl::Duration limit;
  absl::ParseDuration(hang_after, &limit);
  options.limits = rollcall::LimitsFor(absl::ToInt64Nanoseconds(limit));

  if (options.http == "none") options.http.clear();
  const absl::StatusOr<rollcall::Address> listen =
      rollcall::ParseAddress("--listen", options.listen);
  absl::Status status = listen.status();
  if (status.ok()) status = rollcall::CheckReportDir(options.report_dir);
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
