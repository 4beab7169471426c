// SPDX-License-Identifier: Apache-2.0
// rollcall-agent: flags, wiring, signals.
#include <grpcpp/grpcpp.h>
#include <signal.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>

#include "agent/agent.h"
#include "agent/agent_info.h"
#include "agent/daemon_channel.h"
#include "agent/processes/capabilities.h"
#include "proto/loose_threads.h"

namespace {

std::string DefaultDirectory() { return "/dev/shm/rollcall-" + std::to_string(geteuid()); }

// Says that it is there, so that a `rollcall run --daemon` starts no agent of its own.
std::vector<std::unique_ptr<rollcall::AgentInfo>> Publish(const rollcall::AgentOptions& options,
                                                          const std::string& daemon) {
  using rollcall::ServedProcesses;
  std::vector<std::unique_ptr<rollcall::AgentInfo>> published;
  if (!options.collector.whole_host) return published;
  const auto served =
      rollcall::MaySeeAllProcesses() ? ServedProcesses::kHost : ServedProcesses::kUser;
  std::vector<std::string> directories = {options.collector.directory};
  if (served == ServedProcesses::kHost) directories.push_back(rollcall::kHostAgentDirectory);
  for (const std::string& directory : directories) {
    auto info = rollcall::AgentInfo::Publish(directory, daemon, served);
    if (info.ok()) {
      published.push_back(*std::move(info));
    } else if (absl::IsAlreadyExists(info.status())) {
      spdlog::warn("{}", std::string(info.status().message()));
    }
  }
  return published;
}

void SayWhomItServes(const rollcall::AgentOptions& options, const std::string& daemon) {
  spdlog::info("watching {}, daemon at {}", options.collector.directory, daemon);
  if (!options.collector.whole_host || rollcall::MaySeeAllProcesses()) return;
  spdlog::warn(
      "serving only the processes of uid {}: other users' need the capabilities CAP_SYS_PTRACE and "
      "CAP_DAC_READ_SEARCH",
      geteuid());
}

int Main(int argc, char** argv) {
  // Blocked before any thread is made, so that sigwait alone gets them.
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  spdlog::set_default_logger(spdlog::stderr_logger_mt("rollcall-agent"));

  rollcall::AgentOptions options;
  std::string daemon = "127.0.0.1:9400";
  options.collector.directory = DefaultDirectory();
  double keep_ended_seconds = 3600;
  CLI::App app("Watches the training processes of this host and reports to rollcalld.",
               "rollcall-agent");
  app.set_version_flag("--version", ROLLCALL_VERSION);
  app.add_option("--daemon", daemon, "address of rollcalld, HOST:PORT")
      ->envname("ROLLCALL_DAEMON")
      ->capture_default_str();
  app.add_option("--dir", options.collector.directory,
                 "folder in which the library creates its segments")
      ->envname("ROLLCALL_DIR")
      ->capture_default_str();
  std::string scope = "host";
  app.add_option("--scope", scope,
                 "host: watch the training processes of all users and containers of this host; "
                 "directory: watch only processes with segments in --dir")
      ->envname("ROLLCALL_SCOPE")
      ->capture_default_str()
      ->check(CLI::IsMember({"host", "directory"}));
  app.add_option("--host", options.host, "name of this host in verdicts (default: the host name)")
      ->envname("ROLLCALL_HOST");
  app.add_option("--keep-ended", keep_ended_seconds,
                 "seconds to keep the segments of ended processes")
      ->envname("ROLLCALL_KEEP_ENDED")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  CLI11_PARSE(app, argc, argv);
  options.collector.whole_host = scope == "host";
  // Those who use the default directory need not say so in their environment.
  if (!options.collector.whole_host && options.collector.directory != DefaultDirectory()) {
    options.collector.discover_directory = options.collector.directory;
  }
  options.collector.keep_ended_ns = static_cast<int64_t>(keep_ended_seconds * 1e9);

  // The library creates this folder too. The first to create it sets the mode.
  mkdir(options.collector.directory.c_str(), 0700);
  SayWhomItServes(options, daemon);
  const auto published = Publish(options, daemon);
  rollcall::Agent agent(options, rollcall::ConnectToDaemon(daemon));
  agent.Start();
  int signal = 0;
  sigwait(&signals, &signal);
  spdlog::info("stopping");
  agent.Stop();
  return 0;
}

}  // namespace

int main(int argc, char** argv) { return rollcall::LeaveProcess(Main(argc, argv)); }
