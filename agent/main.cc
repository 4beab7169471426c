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

namespace {

std::string DefaultDirectory() { return "/dev/shm/rollcall-" + std::to_string(geteuid()); }

// Keepalive: a daemon's host that vanishes leaves the connection open for hours.
std::shared_ptr<grpc::Channel> ConnectTo(const std::string& daemon) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 20'000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 10'000);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 5'000);
  return grpc::CreateCustomChannel(daemon, grpc::InsecureChannelCredentials(), arguments);
}

}  // namespace

int main(int argc, char** argv) {
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
  CLI::App app("Watches this host's training processes and tells rollcalld.", "rollcall-agent");
  app.set_version_flag("--version", ROLLCALL_VERSION);
  app.add_option("--daemon", daemon, "rollcalld's address, HOST:PORT")
      ->envname("ROLLCALL_DAEMON")
      ->capture_default_str();
  app.add_option("--dir", options.collector.directory, "where the library puts its segments")
      ->envname("ROLLCALL_DIR")
      ->capture_default_str();
  app.add_option("--host", options.host, "this host's name in verdicts (default: its host name)")
      ->envname("ROLLCALL_HOST");
  app.add_option("--keep-ended", keep_ended_seconds,
                 "seconds for which segments of ended processes are kept")
      ->envname("ROLLCALL_KEEP_ENDED")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  CLI11_PARSE(app, argc, argv);
  options.collector.keep_ended_ns = static_cast<int64_t>(keep_ended_seconds * 1e9);

  // The library makes it too; whoever comes first sets the mode.
  mkdir(options.collector.directory.c_str(), 0700);
  spdlog::info("watching {}, daemon at {}", options.collector.directory, daemon);
  rollcall::Agent agent(options, ConnectTo(daemon));
  agent.Start();
  int signal = 0;
  sigwait(&signals, &signal);
  spdlog::info("stopping");
  agent.Stop();
  return 0;
}
