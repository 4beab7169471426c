// SPDX-License-Identifier: Apache-2.0
#include "agent/program.h"

#include <grpcpp/grpcpp.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <iostream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/synchronization/mutex.h"
#include "agent/agent_flags.h"
#include "agent/link/agent.h"
#include "agent/link/agent_info.h"
#include "agent/link/daemon_channel.h"
#include "agent/link/fleet_channels.h"
#include "agent/link/nvsentinel.h"
#include "agent/processes/capabilities.h"
#include "agent/processes/this_host.h"
#include "base/clean_stream.h"
#include "base/log/limited_log.h"
#include "base/own_folder.h"
#include "security/grpc/quiet_log.h"
#include "service/exhaustion.h"
#include "service/journal_sink.h"
#include "service/service_flags.h"
#include "service/service_loop.h"
#include "service/service_manager.h"

namespace rollcall {
namespace {

// Measured with a daemon and jobs, and a margin (docs/measured_history.md).
constexpr ResourceNeeds kNeeds = {uint64_t{192} << 20, 20, 48};

int Fail(const absl::Status& status, int code) {
  std::cerr << "rollcall-agent: " << status.message() << "\n";
  return code;
}

// Publishes this agent, so that a `rollcall run --daemon` starts no agent of its own.
std::vector<std::unique_ptr<AgentInfo>> Publish(const AgentOptions& options,
                                                const std::string& daemon) {
  std::vector<std::unique_ptr<AgentInfo>> published;
  if (!options.collector.whole_host) return published;
  const auto served = MaySeeAllProcesses() ? ServedProcesses::kHost : ServedProcesses::kUser;
  std::vector<std::string> directories = {options.collector.directory};
  if (served == ServedProcesses::kHost) directories.emplace_back(kHostAgentDirectory);
  for (const std::string& directory : directories) {
    auto info = AgentInfo::Publish(directory, daemon, served,
                                   options.host.empty() ? HostName() : options.host);
    if (info.ok()) {
      published.push_back(*std::move(info));
    } else if (absl::IsAlreadyExists(info.status())) {
      spdlog::warn("{}", std::string(info.status().message()));
    }
  }
  return published;
}

void LogScope(const AgentOptions& options, const std::string& daemon) {
  spdlog::info("watching {}, daemon at {}", options.collector.directory, daemon);
  if (!options.collector.whole_host || MaySeeAllProcesses()) return;
  spdlog::warn(
      "serving only the processes of uid {}: to serve other users, the agent needs the "
      "capabilities CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH",
      geteuid());
}

// Certificates, token and revocations are read again when they change, without a reload. No flag
// counts before a restart: the agent would lose the segments that only it still holds open.
void Reload(int argc, char** argv, const FlagValues& values) {
  AgentFlags flags;
  const auto app = MakeAgentApp(&flags);
  absl::Status status = ParseServiceFlagsAgain(argc, argv, app.get(), flags.service);
  if (status.ok()) status = MakeAgentOptions(flags).status();
  if (status.ok()) {
    LogReloaded(ChangedFlags(values, ValuesOf(*app)), {});
  } else {
    spdlog::error("keeping the flags as they were: {}", std::string(status.message()));
  }
}

// nullptr if it is not wanted.
std::shared_ptr<NvSentinel> StartNvSentinel(const AgentFlags& flags) {
  if (flags.nvsentinel.empty()) return nullptr;
  NvSentinelOptions options;
  options.socket = flags.nvsentinel;
  options.host = flags.options.host.empty() ? HostName() : flags.options.host;
  options.may_remediate = flags.nvsentinel_may == "remediate";
  return std::make_shared<NvSentinel>(options);
}

int Serve(const sigset_t& signals, const AgentOptions& options,
          const std::shared_ptr<DaemonChannels>& channels, const std::function<void()>& reload,
          ServiceManager* manager) {
  const std::string& daemon = channels->address();
  // The library makes this folder, too. Its mode comes from the program that makes it first.
  const auto folder = OpenOwnFolder(options.collector.directory, 0700);
  if (absl::IsPermissionDenied(folder.status())) {
    spdlog::warn("{}: this agent only reads there", std::string(folder.status().message()));
  }
  LogScope(options, daemon);
  const auto published = Publish(options, daemon);
  FleetAgent agent(MakeFleetAgentOptions(options, channels));
  agent.Start();
  ServiceLoop loop;
  loop.reload = reload;
  loop.is_alive = [&agent] { return agent.IsAlive(); };
  loop.status = [&] {
    const std::vector<std::string> connected = agent.Connected();
    return connected.empty() ? absl::StrCat("cannot reach ", daemon)
                             : absl::StrCat("reports to ", absl::StrJoin(connected, ", "));
  };
  RunUntilStopped(signals, loop, manager);
  spdlog::info("stopping");
  agent.Stop();
  spdlog::default_logger()->flush();
  return ExitCodeOfService();
}

}  // namespace

int RunAgent(int argc, char** argv) {
  CleanErrors();
  EndInOrderWhenExhausted("rollcall-agent");
  const sigset_t signals = BlockServiceSignals();
  ServiceManager manager = ServiceManager::FromEnvironment();
  LogWithLimits("rollcall-agent", MakeServiceSink());
  const absl::Status less = KeepOnlyReadingCapabilities();
  if (!less.ok()) spdlog::warn("{}", std::string(less.message()));
  // The detector costs each lock of gRPC a pass through one mutex of the whole process.
  SilenceGrpc();
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);

  AgentFlags flags;
  const auto app = MakeAgentApp(&flags);
  if (const auto end = ParseServiceFlags(argc, argv, app.get(), flags.service)) {
    return *end;
  }
  if (!flags.service.check_config) {
    const absl::Status enough = CheckLimits("rollcall-agent", kNeeds, LimitsOfThisProcess());
    if (!enough.ok()) return Fail(enough, kOutOfResources);
  }
  const int code = flags.service.check_config ? kWrongSettings : 1;
  auto options = MakeAgentOptions(flags);
  if (!options.ok()) return Fail(options.status(), code);
  const auto channels = DaemonChannels::Open(flags.daemon);
  if (!channels.ok()) return Fail(channels.status(), code);
  if (flags.service.check_config) {
    std::cout << SayUsable("rollcall-agent", flags.service) << "\n";
    return 0;
  }
  const auto reload = [argc, argv, values = ValuesOf(*app)] { Reload(argc, argv, values); };
  options->host_hangs = StartNvSentinel(flags);
  return Serve(signals, *options, *channels, reload, &manager);
}

}  // namespace rollcall
