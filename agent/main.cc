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

#include "absl/synchronization/mutex.h"
#include "agent/agent.h"
#include "agent/agent_info.h"
#include "agent/daemon_channel.h"
#include "agent/processes/capabilities.h"
#include "agent/processes/stacks_switch.h"
#include "agent/processes/this_host.h"
#include "agent/redact_flag.h"
#include "proto/limited_log.h"
#include "proto/loose_threads.h"
#include "proto/name_service.h"
#include "security/grpc/quiet_log.h"
#include "security/names.h"

namespace {

constexpr size_t kMaxHostName = 255;  // the daemon cuts a longer one
// Twice that of `rollcall run`: most of a tick's cost does not depend on the number of calls in it
// (tests/bench/agent_cost.py), and on a cluster the agent costs every host.
constexpr int64_t kTickNs = 200'000'000;

std::string DefaultDirectory() { return "/dev/shm/rollcall-" + std::to_string(geteuid()); }

std::string CheckHostName(const std::string& name) {
  if (name.size() <= kMaxHostName) return "";
  return "the name of this host has " + std::to_string(name.size()) + " bytes; give it at most " +
         std::to_string(kMaxHostName);
}

std::string CheckTenant(const std::string& name) {
  if (rollcall::IsTenantName(name)) return "";
  return "\"" + name + "\" is no name of a tenant: give 1 to 255 letters, digits, \".\", \"_\" and "
         "\"-\"";
}

// Publishes this agent, so that a `rollcall run --daemon` starts no agent of its own.
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
    auto info = rollcall::AgentInfo::Publish(
        directory, daemon, served, options.host.empty() ? rollcall::HostName() : options.host);
    if (info.ok()) {
      published.push_back(*std::move(info));
    } else if (absl::IsAlreadyExists(info.status())) {
      spdlog::warn("{}", std::string(info.status().message()));
    }
  }
  return published;
}

void LogScope(const rollcall::AgentOptions& options, const std::string& daemon) {
  spdlog::info("watching {}, daemon at {}", options.collector.directory, daemon);
  if (!options.collector.whole_host || rollcall::MaySeeAllProcesses()) return;
  spdlog::warn(
      "serving only the processes of uid {}: to serve other users, the agent needs the "
      "capabilities CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH",
      geteuid());
}

int Main(int argc, char** argv) {
  // Block the signals before any thread starts, so that only sigwait receives them.
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  rollcall::LogWithLimits("rollcall-agent", std::make_shared<spdlog::sinks::stderr_sink_mt>());
  // The detector costs each lock of gRPC a pass through one mutex of the whole process.
  rollcall::SilenceGrpc();
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);

  rollcall::AgentOptions options;
  options.tick_ns = kTickNs;
  rollcall::DaemonAddress daemon;
  options.collector.directory = DefaultDirectory();
  double keep_ended_seconds = 3600;
  CLI::App app("Watches the training processes of this host and reports to rollcalld.",
               "rollcall-agent");
  app.set_version_flag("--version", ROLLCALL_VERSION);
  rollcall::AddDaemonFlags(&app, &daemon);
  app.add_option("--dir", options.collector.directory,
                 "folder in which the library creates its segments")
      ->envname("ROLLCALL_DIR")
      ->capture_default_str();
  std::string scope = "host", stacks = "on", host_facts = "on";
  std::vector<std::string> redact;
  app.add_option("--scope", scope,
                 "host: watch the training processes of all users and containers of this host; "
                 "directory: watch only processes with segments in --dir")
      ->envname("ROLLCALL_SCOPE")
      ->capture_default_str()
      ->check(CLI::IsMember({"host", "directory"}));
  app.add_option("--host", options.host, "name of this host in verdicts (default: the host name)")
      ->envname("ROLLCALL_HOST")
      ->check(CLI::Validator(CheckHostName, "NAME"));
  app.add_option("--keep-ended", keep_ended_seconds,
                 "seconds to keep the segments of ended processes")
      ->envname("ROLLCALL_KEEP_ENDED")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  app.add_option("--max-stacks-per-minute", options.max_stacks_per_minute,
                 "processes of this host whose stacks the daemon may ask for in a minute; "
                 "0: no limit")
      ->envname("ROLLCALL_MAX_STACKS_PER_MINUTE")
      ->capture_default_str()
      ->check(CLI::Range(0, 1'000'000));
  app.add_option("--stacks", stacks,
                 "on: take stacks when the daemon asks; off: never stop or signal a process")
      ->envname(rollcall::kStacksVariable)
      ->capture_default_str()
      ->check(CLI::IsMember({"on", "off"}, CLI::ignore_case));
  app.add_option("--host-facts", host_facts,
                 "on: when a job may hang, look once at the host's kernel log, GPUs, network, file "
                 "systems and limits, if the daemon asks; off: never")
      ->envname("ROLLCALL_HOST_FACTS")
      ->capture_default_str()
      ->check(CLI::IsMember({"on", "off"}, CLI::ignore_case));
  app.add_option(
         "--host-root", options.host_facts.gather.root,
         "folder below which the host's /sys, /proc and /dev are mounted, for facts about the "
         "host from inside a container")
      ->envname("ROLLCALL_HOST_ROOT");
  app.add_option("--tenant", options.collector.tenant,
                 "tenant of the processes that have no ROLLCALL_TENANT")
      ->envname("ROLLCALL_TENANT")
      ->check(CLI::Validator(CheckTenant, "NAME"));
  rollcall::AddRedactFlag(&app, &redact);
  CLI11_PARSE(app, argc, argv);
  options.collector.redactor = rollcall::MakeRedactor(redact);
  if (options.collector.redactor == nullptr) return 1;
  options.stacks_on = !rollcall::IsStacksOff(stacks);
  if (!options.stacks_on) options.collector.stacks_off = "--stacks=off of the agent";
  options.host_facts.is_on = !rollcall::IsStacksOff(host_facts);
  options.collector.whole_host = scope == "host";
  // With the default directory, processes without ROLLCALL_DIR in their environment count too.
  if (!options.collector.whole_host && options.collector.directory != DefaultDirectory()) {
    options.collector.discover_directory = options.collector.directory;
  }
  options.collector.keep_ended_ns = static_cast<int64_t>(keep_ended_seconds * 1e9);

  const auto channels = rollcall::DaemonChannels::Open(daemon);
  if (!channels.ok()) {
    spdlog::error("{}", std::string(channels.status().message()));
    return 1;
  }
  options.explain = [&channels](const grpc::Status& status) {
    return (*channels)->Explain(status);
  };
  options.still_trusts = [&channels](const grpc::ClientContext& stream) {
    rollcall::LogWarnings(channels->get());
    return (*channels)->StillTrusts(stream);
  };

  // The library creates this folder too. Its mode comes from the program that creates it first.
  mkdir(options.collector.directory.c_str(), 0700);
  LogScope(options, daemon.address);
  const auto published = Publish(options, daemon.address);
  rollcall::Agent agent(options, [&channels] {
    rollcall::LogWarnings(channels->get());
    return (*channels)->Connect();
  });
  agent.Start();
  int signal = 0;
  sigwait(&signals, &signal);
  spdlog::info("stopping");
  agent.Stop();
  spdlog::default_logger()->flush();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  rollcall::UseBuiltInNameServices();
  return rollcall::LeaveProcess(Main(argc, argv));
}
