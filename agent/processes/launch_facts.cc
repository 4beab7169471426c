// SPDX-License-Identifier: Apache-2.0
#include "agent/processes/launch_facts.h"

#include <dirent.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "agent/processes/container_id.h"
#include "agent/processes/known_settings.h"
#include "agent/processes/payer.h"
#include "agent/processes/pod_environment.h"
#include "agent/processes/proc_files.h"
#include "agent/processes/process_namespaces.h"
#include "agent/processes/rank_environment.h"
#include "agent/processes/stacks_switch.h"
#include "base/read_file.h"

namespace rollcall {
namespace {

constexpr size_t kLongestText = 255;
constexpr size_t kMostGpus = 64;
constexpr size_t kMostSettings = 32;

// Returns the beginning of `text`, in printable ASCII.
std::string Clean(absl::string_view text) {
  std::string clean(text.substr(0, kLongestText));
  for (char& c : clean) {
    if (c < ' ' || c > '~') c = '?';
  }
  return clean;
}

class Environment {
 public:
  explicit Environment(absl::string_view block) : block_(block) {}

  absl::string_view Get(absl::string_view name) const { return FindInEnviron(block_, name); }
  bool Has(absl::string_view name) const { return Get(name).data() != nullptr; }
  int Number(absl::string_view name) const {
    return ParsePlaceNumber(std::string(Get(name)).c_str());
  }
  int LocalRank() const { return FindRankInEnviron(block_).coordinates.local_rank; }

 private:
  const absl::string_view block_;
};

void FindRestarts(const Environment& environment, LaunchFacts* facts) {
  std::vector<std::string> counters;
  for (const char* name : kAttemptVariables) {
    // Each replica group has a torchrun of its own, which counts only its own restarts.
    if (facts->may_rejoin && absl::string_view(name) == kTorchrunRestarts) continue;
    const int number = environment.Number(name);
    if (number < 0) continue;
    if (facts->attempt < 0) facts->attempt = number;
    counters.push_back(absl::StrCat(name, "=", number));
  }
  facts->restarts = absl::StrJoin(counters, " ");
}

bool IsLoopback(absl::string_view address) {
  return address == "localhost" || address == "::1" || address == "[::1]" ||
         absl::StartsWith(address, "127.");
}

// Returns the inode of the network namespace of the process; empty if unknown.
std::string ReadNetwork(const std::string& proc_root, pid_t pid) {
  struct stat about;
  const std::string path = ProcPath(proc_root, pid, "ns/net");
  return stat(path.c_str(), &about) == 0 ? absl::StrCat("-", about.st_ino) : "";
}

// Returns the user id of the process; empty if unknown.
std::string ReadUser(const std::string& proc_root, pid_t pid) {
  const auto status = ReadProcFile(ProcPath(proc_root, pid, "status"));
  if (!status.ok()) return "";
  for (absl::string_view line : absl::StrSplit(*status, '\n')) {
    if (!absl::ConsumePrefix(&line, "Uid:\t")) continue;
    return std::string(line.substr(0, line.find_first_not_of("0123456789")));
  }
  return "";
}

std::string FindLaunch(const Environment& environment, const std::string& proc_root, pid_t pid,
                       const std::string& host) {
  std::vector<std::string> parts;
  if (environment.Has("MASTER_ADDR") && environment.Has("MASTER_PORT")) {
    const absl::string_view address = environment.Get("MASTER_ADDR");
    // Each host, and each network namespace on it, has a loopback address of its own.
    const std::string where =
        IsLoopback(address) ? absl::StrCat("@", host, ReadNetwork(proc_root, pid)) : "";
    parts.push_back(
        absl::StrCat(Clean(address), ":", Clean(environment.Get("MASTER_PORT")), where));
  }
  if (environment.Has("SLURM_JOB_ID")) {
    parts.push_back(absl::StrCat("slurm ", Clean(environment.Get("SLURM_JOB_ID")), ".",
                                 Clean(environment.Get("SLURM_STEP_ID"))));
  }
  if (environment.Has("PMIX_NAMESPACE")) {
    parts.push_back(absl::StrCat("pmix ", Clean(environment.Get("PMIX_NAMESPACE"))));
  }
  if (parts.empty()) return "";
  return absl::StrCat(ReadUser(proc_root, pid), " ", absl::StrJoin(parts, " "));
}

// Whether the text has the form of a UUID, with this character in place of "-".
bool IsUuidWith(char dash, absl::string_view text) {
  constexpr size_t kUuid = 36;
  const auto is_dash = [](size_t i) { return i == 8 || i == 13 || i == 18 || i == 23; };
  if (text.size() != kUuid) return false;
  for (size_t i = 0; i < kUuid; ++i) {
    const char c = text[i];
    const bool is_digit = absl::ascii_isdigit(c) || (c >= 'a' && c <= 'f');
    if (is_dash(i) ? c != dash : !is_digit) return false;
  }
  return true;
}

// Finds the pod in "0::/kubepods/burstable/pod<uid>/<id>", or with "_" for "-" from
// "0::/kubepods.slice/kubepods-burstable-pod<uid>.slice/cri-containerd-<id>.scope". The first: a
// pod can make control groups of any name below its own. Static pods have a hash there, which the
// API server does not have.
std::string PodUidInGroups(absl::string_view groups) {
  for (absl::string_view name : absl::StrSplit(groups, absl::ByAnyChar("/\n"))) {
    const bool is_slice = absl::ConsumeSuffix(&name, ".slice");
    const size_t at = name.rfind("pod");
    if (at == absl::string_view::npos || (at > 0 && name[at - 1] != '-')) continue;
    const absl::string_view uid = name.substr(at + 3);
    if (!IsUuidWith(is_slice ? '_' : '-', uid)) continue;
    return absl::StrReplaceAll(uid, {{"_", "-"}});
  }
  return "";
}

// Finds the container by the files that Docker and Podman mount into each container. A host has
// these folders too, so only the mounts over /etc count.
std::string ContainerInMounts(absl::string_view mounts) {
  for (const absl::string_view line : absl::StrSplit(mounts, '\n')) {
    const std::vector<absl::string_view> fields = absl::StrSplit(line, absl::MaxSplits(' ', 5));
    if (fields.size() < 6 || !absl::StartsWith(fields[4], "/etc/")) continue;
    constexpr absl::string_view kFolder = "containers/";
    const size_t at = fields[3].find(kFolder);
    if (at == absl::string_view::npos) continue;
    const std::string id = ContainerIdAt(fields[3].substr(at + kFolder.size()));
    if (!id.empty()) return id;
  }
  return "";
}

void FindContainer(const Environment& environment, const std::string& proc_root, pid_t pid,
                   LaunchFacts* facts) {
  const std::string groups = ReadProcFile(ProcPath(proc_root, pid, "cgroup")).value_or("");
  facts->container = ContainerInGroups(groups);
  if (facts->container.empty()) {
    facts->container =
        ContainerInMounts(ReadProcFile(ProcPath(proc_root, pid, "mountinfo")).value_or(""));
  }
  facts->pod = Clean(environment.Get("POD_NAME"));
  const std::string space = Clean(environment.Get("POD_NAMESPACE"));
  if (!facts->pod.empty() && !space.empty()) facts->pod = absl::StrCat(space, "/", facts->pod);
  const bool is_pod = absl::StrContains(groups, "kubepods") ||
                      (!facts->container.empty() && environment.Has("KUBERNETES_SERVICE_HOST"));
  if (facts->pod.empty() && is_pod) facts->pod = Clean(environment.Get("HOSTNAME"));
  facts->pod_uid = PodUidInGroups(groups);
  // A sidecar sees the control groups of its own pod only, without the pod's name.
  const absl::string_view told = environment.Get("POD_UID");
  if (facts->pod_uid.empty() && IsUuidWith('-', told)) facts->pod_uid = std::string(told);
}

bool IsUuid(absl::string_view text) {
  return absl::StartsWith(text, "GPU-") || absl::StartsWith(text, "MIG-");
}

// Returns the device of a process with this local rank: by convention the device with this number,
// or the only device.
absl::string_view Pick(const std::vector<absl::string_view>& devices, int local_rank) {
  if (devices.size() == 1) return absl::StripAsciiWhitespace(devices[0]);
  if (local_rank < 0 || static_cast<size_t>(local_rank) >= devices.size()) return {};
  return absl::StripAsciiWhitespace(devices[static_cast<size_t>(local_rank)]);
}

struct Gpu {
  std::string bus, model, uuid;
  bool operator<(const Gpu& other) const { return bus < other.bus; }
};

// The GPUs that the driver lists, in the order of the bus.
std::vector<Gpu> ListGpus(const std::string& proc_root) {
  std::vector<Gpu> gpus;
  const std::string folder = absl::StrCat(proc_root, "/driver/nvidia/gpus");
  DIR* dir = opendir(folder.c_str());
  if (dir == nullptr) return gpus;
  while (const dirent* entry = readdir(dir)) {
    if (entry->d_name[0] == '.' || gpus.size() == kMostGpus) continue;
    const auto text = ReadProcFile(absl::StrCat(folder, "/", entry->d_name, "/information"));
    if (!text.ok()) continue;
    Gpu gpu;
    gpu.bus = entry->d_name;
    for (absl::string_view line : absl::StrSplit(*text, '\n')) {
      if (absl::ConsumePrefix(&line, "Model:")) {
        gpu.model = Clean(absl::StripAsciiWhitespace(line));
      } else if (absl::ConsumePrefix(&line, "GPU UUID:")) {
        gpu.uuid = Clean(absl::StripAsciiWhitespace(line));
        if (absl::StrContains(gpu.uuid, '?')) gpu.uuid.clear();  // the driver has not read it yet
      }
    }
    gpus.push_back(std::move(gpu));
  }
  closedir(dir);
  std::sort(gpus.begin(), gpus.end());
  return gpus;
}

// CUDA numbers GPUs of one model in the order of the bus. If the environment asks for that order,
// CUDA numbers all GPUs so.
bool AreInBusOrder(const std::vector<Gpu>& gpus, const Environment& environment) {
  return environment.Get("CUDA_DEVICE_ORDER") == "PCI_BUS_ID" ||
         std::all_of(gpus.begin(), gpus.end(),
                     [&gpus](const Gpu& gpu) { return gpu.model == gpus.front().model; });
}

// Finds the GPU by its number. A container numbers only its own devices, so the numbers of its
// processes are not those of the host.
std::string FindGpuByNumber(const Environment& environment, const std::string& proc_root,
                            const std::string& container) {
  const absl::string_view container_devices = environment.Get("NVIDIA_VISIBLE_DEVICES");
  if (!container.empty() || (!container_devices.empty() && container_devices != "all")) return "";
  int number = environment.LocalRank();
  if (environment.Has("CUDA_VISIBLE_DEVICES")) {
    const std::vector<absl::string_view> devices =
        absl::StrSplit(environment.Get("CUDA_VISIBLE_DEVICES"), ',');
    number = ParsePlaceNumber(std::string(Pick(devices, number)).c_str());
  }
  if (number < 0) return "";
  const std::vector<Gpu> gpus = ListGpus(proc_root);
  const auto index = static_cast<size_t>(number);
  return index < gpus.size() && AreInBusOrder(gpus, environment) ? gpus[index].uuid : "";
}

std::string FindGpu(const Environment& environment, const std::string& proc_root,
                    const std::string& container) {
  const absl::string_view visible = environment.Get("CUDA_VISIBLE_DEVICES");
  if (IsUuid(visible)) {
    const std::vector<absl::string_view> devices = absl::StrSplit(visible, ',');
    const absl::string_view picked = Pick(devices, environment.LocalRank());
    return IsUuid(picked) ? Clean(picked) : "";
  }
  // The container's runtime does not keep the order of its list.
  const absl::string_view of_container = environment.Get("NVIDIA_VISIBLE_DEVICES");
  if (IsUuid(of_container) && !absl::StrContains(of_container, ',')) return Clean(of_container);
  return FindGpuByNumber(environment, proc_root, container);
}

bool IsKnownSetting(absl::string_view name) {
  return std::find(std::begin(kKnownSettings), std::end(kKnownSettings), name) !=
         std::end(kKnownSettings);
}

bool IsOfNccl(absl::string_view name) {
  constexpr const char* kBeginnings[] = {"NCCL_", "TORCH_NCCL_", "RCCL_"};
  return std::any_of(std::begin(kBeginnings), std::end(kBeginnings),
                     [name](const char* begin) { return absl::StartsWith(name, begin); });
}

std::string FindSettings(absl::string_view block) {
  std::vector<std::string> settings;
  for (const absl::string_view entry : absl::StrSplit(block, '\0')) {
    const size_t end = entry.find('=');
    if (end == absl::string_view::npos) continue;
    const absl::string_view name = entry.substr(0, end);
    if (IsKnownSetting(name)) {
      settings.push_back(Clean(entry));
    } else if (IsOfNccl(name)) {
      const size_t length = entry.size() - end - 1;
      settings.push_back(
          absl::StrCat(Clean(name), "=[", length, length == 1 ? " character]" : " characters]"));
    }
  }
  std::sort(settings.begin(), settings.end());
  if (settings.size() > kMostSettings) settings.resize(kMostSettings);
  return absl::StrJoin(settings, " ");
}

// Returns where a descriptor of the process leads.
std::string ReadTarget(const std::string& proc_root, pid_t pid, int descriptor) {
  const std::string text = ReadLink(ProcPath(proc_root, pid, absl::StrCat("fd/", descriptor)));
  if (absl::StartsWith(text, "pipe:")) return "a pipe";
  if (absl::StartsWith(text, "socket:")) return "a socket";
  return Clean(text.substr(0, kLongestText + 1));
}

constexpr const char* kNodeVariables[] = {"NODE_NAME", "SLURMD_NODENAME"};

// The scheduler's name of this host. The agent's own environment takes precedence. Another user's
// process may claim anything, and others act on the node's name, so it is not asked.
std::string FindNode(const Environment& environment, int64_t uid) {
  for (const char* name : kNodeVariables) {
    const char* own = getenv(name);
    if (own != nullptr && *own != '\0') return Clean(own);
  }
  if (uid >= 0 && static_cast<uid_t>(uid) != geteuid()) return "";
  for (const char* name : kNodeVariables) {
    if (environment.Has(name)) return Clean(environment.Get(name));
  }
  return "";
}

}  // namespace

std::optional<LaunchFacts> ReadLaunchFacts(const std::string& proc_root, pid_t pid,
                                           const std::string& host) {
  const auto own_block = ReadProcFile(ProcPath(proc_root, pid, "environ"), kMaxEnvironBytes);
  if (!own_block.ok()) return std::nullopt;
  const std::string block = WithPodVariables(*own_block, proc_root, pid);
  const Environment environment(block);
  LaunchFacts facts;
  facts.may_rejoin = environment.Number(kReplicaVariable) >= 0 &&
                     environment.Number(kReplicasVariable) > environment.Number(kReplicaVariable);
  FindRestarts(environment, &facts);
  if (!facts.may_rejoin) facts.launch = FindLaunch(environment, proc_root, pid, host);
  facts.tenant = Clean(environment.Get("ROLLCALL_TENANT"));
  if (IsStacksOff(environment.Get(kStacksVariable))) {
    facts.stacks_off = absl::StrCat(kStacksVariable, "=off");
  }
  const std::string user = ReadUser(proc_root, pid);
  uint32_t uid = 0;
  if (absl::SimpleAtoi(user, &uid)) facts.uid = uid;
  const auto maker = MakerOfUserNamespace(proc_root, pid);
  if (maker.has_value() && maker->user != 0) facts.uid = maker->user;
  facts.node = FindNode(environment, facts.uid);
  FindContainer(environment, proc_root, pid, &facts);
  const pid_t own = ReadOwnPid(proc_root, pid);
  facts.inner_pid = own == pid ? 0 : own;
  facts.gpu_uuid = FindGpu(environment, proc_root, facts.container);
  facts.environment = FindSettings(block);
  facts.stdout_to = ReadTarget(proc_root, pid, 1);
  facts.stderr_to = ReadTarget(proc_root, pid, 2);
  return facts;
}

}  // namespace rollcall
