// SPDX-License-Identifier: Apache-2.0
#include "cli/run/run_services.h"

#include <grpcpp/grpcpp.h>
#include <spdlog/spdlog.h>
#include <stdlib.h>
#include <unistd.h>

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "agent/link/fleet_channels.h"
#include "agent/processes/stacks_switch.h"
#include "agent/processes/this_host.h"
#include "base/durations.h"
#include "base/monotonic_clock.h"
#include "base/read_file.h"
#include "base/server_address.h"
#include "cli/commands.h"
#include "cli/gpu_dump/dump_variables.h"
#include "cli/in_time.h"
#include "cli/run/job_environment.h"
#include "cli/run/page_tunnel.h"
#include "cli/run/recorder_files.h"
#include "daemon/report/writer.h"
#include "net/listen_policy.h"

namespace rollcall {
namespace {

// Segments of ended ranks take memory from a restarted job. After this time the daemon has their
// contents.
constexpr int64_t kKeepEndedNs = 5 * kSecond;
constexpr char kUsualPage[] = "127.0.0.1:0", kPageOnIpv6[] = "[::1]:0";
constexpr char kNvidiaDriver[] = "/proc/driver/nvidia/version";
constexpr size_t kMostOfDriver = 4096;  // bytes
constexpr char kMpsPipes[] = "/tmp/nvidia-mps";
constexpr char kFolder[] = "the folder of the segments (ROLLCALL_DIR)";

}  // namespace

RunServices::RunServices(const RunFlags& flags, std::string job,
                         const std::vector<std::string>& command)
    : flags_(flags), job_(std::move(job)), is_job_elsewhere_(MayStartElsewhere(command)) {}

void RunServices::Start() {
  library_ = FindLibrary();
  if (library_.empty()) {
    spdlog::error(
        "cannot find librollcall.so in ../lib of this program's folder; the job runs without "
        "Rollcall\n  build or install it:  cmake --build --preset release");
    return;
  }
  if (!MakeFolder()) {
    library_.clear();
    return;
  }
  if (!flags_.has_own_daemon()) return UseDaemonElsewhere();
  PrepareGpuDumps();
  if (!StartDaemon()) return;
  if (UsesRecorders() && !is_job_elsewhere_) recorder_prefix_ = MakeRecorderPrefix();
  StartAgent();
}

bool RunServices::MakeFolder() {
  const auto directory = std::make_shared<JobDirectory>();
  const absl::Status made = UseInTime(kFolder, [directory] { return directory->Make(); });
  if (made.ok()) {
    directory_ = directory;
    if (directory->taken()) {
      spdlog::warn(
          "/dev/shm/rollcall-{} belongs to another user; this job's segments are in {}\n  see who:  ls "
          "-ld /dev/shm/rollcall-{}",
          geteuid(), directory->base(), geteuid());
    }
  } else {
    spdlog::error("the job runs without Rollcall: {}", std::string(made.message()));
  }
  return made.ok();
}

void RunServices::UseDaemonElsewhere() {
  static_cast<void>(UsableReportDir());  // reports what is wrong with it
  if (flags_.gpu_dump) spdlog::warn("--gpu-dump does nothing with --daemon");
  const auto channels = DaemonChannels::Open(flags_.daemon);
  if (!channels.ok()) {
    spdlog::error("{}; the job runs without Rollcall", std::string(channels.status().message()));
    return;
  }
  channels_ = *channels;
  const std::optional<HostAgent> agent = FindAgentOfHost();
  const bool is_named = agent.has_value() && !agent->host.empty();
  const auto connect = [channels = channels_, is_first = true]() mutable {
    if (!std::exchange(is_first, false)) channels->TryAnother();
    return channels->Connect();
  };
  incidents_ = IncidentWatch::OfDaemonAt(flags_.daemon.address, connect, job_, directory_->path(),
                                         is_named ? agent->host : HostName(), flags_.report_dir);
  if (!agent.has_value()) StartAgent();
}

// The host's agent that already reports this job to that daemon.
std::optional<HostAgent> RunServices::FindAgentOfHost() const {
  using Answer = absl::StatusOr<std::optional<HostAgent>>;
  const Answer agent = GetInTime<std::optional<HostAgent>>(
      kFolder, [address = flags_.daemon.address, base = directory_->base()]() -> Answer {
        return FindHostAgent(address, {kHostAgentDirectory, base});
      });
  return agent.value_or(std::nullopt);
}

void RunServices::StartAgent() {
  absl::StatusOr<UniqueFd> served =
      GetInTime<UniqueFd>(kFolder, [folder = directory_] { return folder->LockAsServed(); });
  if (served.ok()) {
    served_ = *std::move(served);
  } else {
    spdlog::warn("{}", std::string(served.status().message()));
  }
  if (channels_ == nullptr) {
    agent_ = std::make_unique<Agent>(MakeAgentOptions(), daemon_->InProcessChannel());
    agent_->Start();
  } else {
    fleet_agent_ =
        std::make_unique<FleetAgent>(MakeFleetAgentOptions(MakeAgentOptions(), channels_));
    fleet_agent_->Start();
  }
}

AgentOptions RunServices::MakeAgentOptions() const {
  AgentOptions options;
  options.collector.directory = directory_->path();
  options.collector.discover_directory = directory_->path();
  options.collector.keep_ended_ns = kKeepEndedNs;
  options.collector.redactor = flags_.redactor;
  options.collector.send_arguments = flags_.redact.send_arguments();
  options.host_facts.is_on = !IsStacksOff(flags_.host_facts);
  if (daemon_ != nullptr) options.max_stacks_per_minute = 0;  // it asks only for this job's
  return options;
}

// The folder for reports, or "" if Rollcall cannot write there. A folder that does not answer now
// may answer when there is a report to write.
std::string RunServices::UsableReportDir() const {
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
bool RunServices::StartDaemon() {
  DaemonOptions options;
  options.limits = flags_.judging.limits();
  options.default_job = job_;
  options.log_incidents = false;
  options.http = flags_.http == "none" ? "" : flags_.http;
  options.report_dir = UsableReportDir();
  const ListenGuards guards = {false, true, flags_.insecure, /*offers_tls=*/false};
  const absl::Status open = CheckListen("--http", options.http, guards);
  if (!open.ok()) {
    spdlog::error("{}\n  the job runs without the page", std::string(open.message()));
    options.http.clear();
  }
  security_ = DaemonSecurity::ForOwner();
  options.authenticator = &security_->authenticator();
  options.http_token = MakePageToken();
  options.http_token_is_optional = true;
  if (UsesRecorders()) recorders_ = std::make_unique<FlightRecorders>();
  options.recorders = recorders_.get();
  options.gpu_dumps = gpu_dumps_.get();
  if (!StartDaemonWith(options)) return false;
  WarnOfOpenPage();
  incidents_ = IncidentWatch::OfDaemon(daemon_.get(), job_, !options.report_dir.empty());
  if (!daemon_->http_address().empty() && isatty(STDERR_FILENO)) {
    SayWhereThePageIs(options.http_token);
  }
  return true;
}

void RunServices::SayWhereThePageIs(const std::string& token) const {
  const std::string address = daemon_->http_address();
  spdlog::info("live page: http://{}/?token={}", address, token);
  const std::string tunnel = TunnelToPage(address, HostName(), &getenv);
  if (!tunnel.empty()) spdlog::info("  from your own computer, first:  {}", tunnel);
}

void RunServices::WarnOfOpenPage() const {
  const std::string page = daemon_->http_address();
  if (!flags_.insecure || page.empty() || IsOnThisHost(page)) return;
  spdlog::warn(
      "--insecure: the page on {} has no TLS; everyone who can read this network's traffic "
      "gets its token, and may then read this job and take its stacks",
      page);
}

bool RunServices::StartDaemonWith(const DaemonOptions& options) {
  daemon_ = std::make_unique<Daemon>(options);
  absl::Status started = daemon_->Start();
  if (!started.ok() && options.http == kUsualPage) {  // a host without IPv4
    DaemonOptions on_ipv6 = options;
    on_ipv6.http = kPageOnIpv6;
    daemon_ = std::make_unique<Daemon>(on_ipv6);
    started = daemon_->Start();
  }
  if (!started.ok() && !options.http.empty()) {
    spdlog::error("{}\n  the job runs without the page", std::string(started.message()));
    DaemonOptions without_page = options;
    without_page.http.clear();
    daemon_ = std::make_unique<Daemon>(without_page);
    started = daemon_->Start();
  }
  if (started.ok()) return true;
  spdlog::error("{}; the job runs without Rollcall", std::string(started.message()));
  daemon_.reset();
  return false;
}

std::map<std::string, std::string> RunServices::EnvironmentOfJob() const {
  if (!has_library()) return {};
  // The library comes after the libraries that the job preloads itself. Sanitizers must come
  // first. NCCL wrappers of another tool would get no calls if Rollcall's came before them.
  std::map<std::string, std::string> changes = {
      {"LD_PRELOAD", Appended("LD_PRELOAD", library_, ':')},
      {"ROLLCALL_DIR", directory_->path()},
      {"ROLLCALL_LOADED", directory_->loaded_file()},
      {"ROLLCALL_JOB", job_}};
  if (getenv("ROLLCALL_TENSOR_SHAPES") == nullptr) changes["ROLLCALL_TENSOR_SHAPES"] = "1";
  changes.merge(RecorderVariables(&getenv, recorder_prefix_));
  changes.merge(GpuDumpVariables(gpu_dump_folder_));
  return changes;
}

std::unique_ptr<LocalProgress> RunServices::WatchLocalProgress() const {
  return channels_ == nullptr ? nullptr : std::make_unique<LocalProgress>(directory_->path());
}

bool RunServices::MayGetLateVerdict() const {
  return daemon_ == nullptr && (fleet_agent_ == nullptr || AgentSawCommunicators());
}

bool RunServices::AgentSawCommunicators() const {
  return (agent_ != nullptr && agent_->seen_communicators()) ||
         (fleet_agent_ != nullptr && fleet_agent_->seen_communicators());
}

void RunServices::Stop() {
  if (gpu_dumps_ != nullptr) gpu_dumps_->Stop();  // it adds to the daemon's incidents
  if (agent_ != nullptr) agent_->Stop();
  if (fleet_agent_ != nullptr) fleet_agent_->Stop();
  if (daemon_ != nullptr) daemon_->Stop();
}

bool RunServices::UsesRecorders() const {
  return absl::EqualsIgnoreCase(flags_.flight_recorder, "on") &&
         !flags_.judging.limits().watches_calls_only;
}

// A communicator that a program aborts writes a dump, too: to the name that Rollcall has set.
void RunServices::RemoveRecorderFiles(bool with_dumps) const {
  const std::string dump = rollcall::RemoveRecorderFiles(recorder_prefix_, with_dumps);
  if (dump.empty()) return;
  spdlog::info("dumps of PyTorch's Flight Recorder are there:  rollcall analyze {}*",
               recorder_prefix_);
}

void RunServices::PrepareGpuDumps() {
  if (!flags_.gpu_dump) return;
  std::string why_not =
      is_job_elsewhere_
          ? "the command may start its ranks on other hosts or in a container"
          : WhyNoGpuDumps(&getenv, ReadFile(kNvidiaDriver, kMostOfDriver).value_or(""),
                          access(kMpsPipes, F_OK) == 0);
  if (why_not.empty()) {
    absl::StatusOr<std::string> folder = MakeGpuDumpFolder();
    if (folder.ok()) {
      gpu_dump_folder_ = *std::move(folder);
    } else {
      why_not = std::string(folder.status().message());
    }
  }
  if (!why_not.empty()) {
    spdlog::warn("--gpu-dump: no GPU will be dumped: {}", why_not);
    return;
  }
  gpu_dumps_ = std::make_unique<GpuDumps>(
      gpu_dump_folder_, flags_.redactor,
      [this](const JobKey& job, const std::string& incident, const v1::GpuDump& dump) {
        daemon_->AddGpuDump(job, incident, dump);
      });
  spdlog::warn(
      "--gpu-dump: a confirmed hang dumps two GPUs; that their processes go on was not tried on real "
      "hardware yet");
}

bool RunServices::AwaitsGpuDumps(const std::string& incident) const {
  return gpu_dumps_ != nullptr && gpu_dumps_->Awaits(incident, MonotonicNs());
}

void RunServices::RemoveGpuDumpFiles() const {
  const std::string dump = RemoveGpuDumpFolder(gpu_dump_folder_);
  if (dump.empty()) return;
  spdlog::info("a core dump of a GPU is there:  cuda-gdb -ex 'target cudacore {}'", dump);
}

void RunServices::RemoveFolder(bool ended_well) {
  RemoveRecorderFiles(ended_well);
  RemoveGpuDumpFiles();
  const std::string path = directory_->path();
  const auto served = std::make_shared<UniqueFd>(std::move(served_));
  const absl::Status removed =
      UseInTime("the folder of the segments", [directory = directory_, served] {
        *served = UniqueFd();
        directory->Remove();
        return absl::OkStatus();
      });
  if (!removed.ok()) {
    spdlog::warn("{}: {} stays; the next run removes it", std::string(removed.message()), path);
  }
}

void RunServices::ExplainNoCommunicator() const {
  if (!has_library() || AgentSawCommunicators()) return;
  struct Found {
    bool communicators = false, library = false;
  };
  const auto found =
      GetInTime<Found>(directory_->path(), [directory = directory_]() -> absl::StatusOr<Found> {
        // An agent that never reached its daemon has not read the segments.
        CollectorOptions options;
        options.directory = directory->path();
        options.live = false;
        Collector collector(options);
        collector.Collect(0, true);
        return Found{collector.seen_communicators(), directory->loaded()};
      });
  if (!found.ok() || found->communicators) return;
  if (found->library) {
    spdlog::info(
        "the job loaded the library but created no communicator of NCCL, MPI or gloo: nothing to "
        "watch");
  } else {
    spdlog::info(
        "the job did not load the library (static or setuid program, or cleared LD_PRELOAD): "
        "Rollcall recorded nothing");
  }
}

}  // namespace rollcall
