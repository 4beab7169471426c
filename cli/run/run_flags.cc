// SPDX-License-Identifier: Apache-2.0
#include "cli/run/run_flags.h"

#include <spdlog/spdlog.h>

#include <CLI/CLI.hpp>
#include <cstdlib>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "agent/redact_flag.h"
#include "base/clean_text.h"

namespace rollcall {
namespace {

std::string CheckOnHang(const std::string& text) {
  if (text == "observe" || text == "abort" ||
      (absl::StartsWith(text, "exec:") && text.size() > 5)) {
    return "";
  }
  return text + " is not one of observe, abort, exec:CMD";
}

}  // namespace

void DefineRunFlags(CLI::App* app, RunFlags* flags) {
  AddJudgingFlags(app, &flags->judging);
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
  app->add_option("--junit", flags->junit,
                  "write the run to this file as one test case, in JUnit's XML: a hang is its "
                  "failure")
      ->envname("ROLLCALL_JUNIT");
  app->add_option("--daemon", flags->daemon.address,
                  "address of a rollcalld to use instead of the embedded one, HOST:PORT; of "
                  "several that share a database: HOST:PORT,HOST:PORT")
      ->group(kDaemonFlagGroup)
      ->envname("ROLLCALL_DAEMON");
  AddDaemonSecurityFlags(app, &flags->daemon);
  app->add_flag("--insecure", flags->insecure,
                "open --http to other hosts without TLS; they need the token in its address")
      ->envname("ROLLCALL_INSECURE");
  app->add_flag("--sim", flags->sim, "run the job with the simulated NCCL, without a GPU")
      ->envname("ROLLCALL_SIM");
  app->add_option("--host-facts", flags->host_facts,
                  "on: when the job may hang, look once at this host's kernel log, GPUs, network, "
                  "file systems and limits; off: never")
      ->envname("ROLLCALL_HOST_FACTS")
      ->capture_default_str()
      ->check(CLI::IsMember({"on", "off"}, CLI::ignore_case));
  app->add_option(
         "--flight-recorder", flags->flight_recorder,
         "on: name a pipe and dumps for PyTorch's Flight Recorder, and ask it once when the "
         "job stands still; off: do neither")
      ->envname("ROLLCALL_FLIGHT_RECORDER")
      ->capture_default_str()
      ->check(CLI::IsMember({"on", "off"}, CLI::ignore_case));
  app->add_flag(
         "--gpu-dump", flags->gpu_dump,
         "when a hang is confirmed, ask CUDA once for core dumps of the GPUs of a culprit and "
         "of a rank that waits, and say where their kernels stand; not tried on real "
         "hardware yet")
      ->envname("ROLLCALL_GPU_DUMP");
  AddRedactFlags(app, &flags->redact);
}

void SayWhatTheEnvironmentSets(const CLI::App& app) {
  std::vector<std::string> changes;
  for (const char* name : {"--hang-after", "--watch", "--on-hang", "--report-dir", "--http",
                           "--host-facts", "--flight-recorder"}) {
    const CLI::Option* option = app.get_option(name);
    const char* value = std::getenv(option->get_envname().c_str());
    // CLI11 prefers the command line.
    if (value == nullptr || option->empty() || option->results().front() != value) continue;
    if (option->get_default_str() == value) continue;
    changes.push_back(absl::StrCat(option->get_envname(), "=", CleanText(value)));
  }
  if (!changes.empty()) spdlog::info("the environment sets {}", absl::StrJoin(changes, ", "));
}

}  // namespace rollcall
