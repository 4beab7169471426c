// SPDX-License-Identifier: Apache-2.0
// What files of the system show: limits, containers, systemd, Slurm, the driver of the GPUs.
#include <fcntl.h>
#include <pwd.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/unique_fd.h"
#include "cli/doctor/elf_facts.h"
#include "cli/doctor/probes.h"

namespace rollcall::doctor {
namespace {

constexpr uint64_t kFirstPidNamespace = 0xeffffffc;  // PROC_PID_INIT_INO of the kernel

int64_t LimitOf(int resource) {
  rlimit limit;
  if (getrlimit(static_cast<__rlimit_resource>(resource), &limit) != 0 ||
      limit.rlim_cur == RLIM_INFINITY) {
    return -1;
  }
  return static_cast<int64_t>(limit.rlim_cur);
}

// "Key = Value" lines, keys in lower case, the last one of a key. Comments begin with # or ;.
std::map<std::string, std::string> ReadSettings(const std::string& text) {
  std::map<std::string, std::string> settings;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    line = absl::StripAsciiWhitespace(line);
    if (line.empty() || line.front() == '#' || line.front() == ';') continue;
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(line, absl::MaxSplits('=', 1));
    const absl::string_view value = absl::StripAsciiWhitespace(parts.second);
    settings[absl::AsciiStrToLower(absl::StripAsciiWhitespace(parts.first))] =
        std::string(value.substr(0, value.find(" #")));
  }
  return settings;
}

// The files of logind's settings, the one that counts last. A file of /etc replaces one of the same
// name.
std::vector<std::string> LogindFiles(const HostFiles& files) {
  std::map<std::string, std::string> by_name;
  for (const char* folder : {"/usr/lib/systemd/logind.conf.d", "/run/systemd/logind.conf.d",
                             "/etc/systemd/logind.conf.d"}) {
    for (const std::string& name : files.List(folder)) {
      if (absl::EndsWith(name, ".conf")) by_name[name] = absl::StrCat(folder, "/", name);
    }
  }
  std::vector<std::string> paths = {"/usr/lib/systemd/logind.conf", "/etc/systemd/logind.conf"};
  for (const auto& [name, path] : by_name) paths.push_back(path);
  return paths;
}

// RHEL and its family build systemd with RemoveIPC=no.
bool RemovesByDefault(const HostFiles& files) {
  const std::map<std::string, std::string> release =
      ReadSettings(files.Read("/etc/os-release").value_or(""));
  const auto has = [&](const char* key) {
    const auto at = release.find(key);
    return at != release.end() &&
           (absl::StrContains(at->second, "rhel") || absl::StrContains(at->second, "fedora"));
  };
  return !has("id") && !has("id_like");
}

bool IsYes(const std::string& value) {
  const std::string word = absl::AsciiStrToLower(value);
  return word == "yes" || word == "true" || word == "on" || word == "1";
}

// The word of plugstack.conf, or of a file that it usually includes, that contains `name`: the path
// of a plugin. "" without a plugin.
std::string FindPlugin(const HostFiles& files, const std::string& folder, const std::string& name) {
  std::vector<std::string> paths = {absl::StrCat(folder, "/plugstack.conf")};
  const std::string more = absl::StrCat(folder, "/plugstack.conf.d");
  for (const std::string& file : files.List(more)) paths.push_back(absl::StrCat(more, "/", file));
  for (const std::string& path : paths) {
    const std::string text = files.Read(path).value_or("");
    for (const absl::string_view line : absl::StrSplit(text, '\n')) {
      if (absl::StartsWith(absl::StripAsciiWhitespace(line), "#")) continue;
      for (const absl::string_view word : absl::StrSplit(line, absl::ByAnyChar(" \t"))) {
        if (absl::StrContains(word, name)) return std::string(word);
      }
    }
  }
  return "";
}

bool IsGpuDevice(const std::string& name) {
  absl::string_view number = name;
  return absl::ConsumePrefix(&number, "nvidia") && !number.empty() &&
         std::all_of(number.begin(), number.end(), absl::ascii_isdigit);
}

// "550.54.14" in "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.14  Thu Feb 22 ...".
std::string DriverVersion(const std::string& text) {
  for (const absl::string_view word :
       absl::StrSplit(text, absl::ByAnyChar(" \n"), absl::SkipEmpty())) {
    if (absl::ascii_isdigit(word.front()) && absl::StrContains(word, '.')) return std::string(word);
  }
  return text.empty() ? "" : "of an unknown release";
}

std::string FindDriverLibrary(const Environment& environment, const HostFiles& files) {
  std::vector<std::string> folders;
  const auto at = environment.find("LD_LIBRARY_PATH");
  if (at != environment.end()) folders = absl::StrSplit(at->second, ':', absl::SkipEmpty());
  for (std::string& folder : SystemFolders(files)) folders.push_back(std::move(folder));
  for (const std::string& folder : folders) {
    std::string path = absl::StrCat(folder, "/libcuda.so.1");
    if (access(path.c_str(), R_OK) == 0) return path;
  }
  return "";
}

}  // namespace

KernelFacts ProbeKernel(const HostFiles& files) {
  KernelFacts facts;
  facts.address_space_bytes = LimitOf(RLIMIT_AS);
  facts.file_bytes = LimitOf(RLIMIT_FSIZE);
  // The kernel refuses the open, or the first read.
  const UniqueFd log(open(files.Path("/dev/kmsg").c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  char line[8192];
  const bool is_readable = log.valid() && (read(log.get(), line, sizeof(line)) >= 0 ||
                                           errno == EAGAIN || errno == EPIPE);
  facts.kernel_log = is_readable ? Attempt::kWorked : Attempt::kFailed;
  return facts;
}

ContainerFacts ProbeContainer(const Environment& environment, const HostFiles& files) {
  ContainerFacts facts;
  if (environment.count("KUBERNETES_SERVICE_HOST") != 0) {
    facts.kind = "kubernetes";
  } else if (files.Exists("/.dockerenv")) {
    facts.kind = "docker";
  } else if (files.Exists("/run/.containerenv")) {
    facts.kind = "podman";
  } else if (environment.count("container") != 0) {
    facts.kind = environment.at("container");
  }
  const std::string self = files.LinkName("/proc/self");
  facts.has_proc = files.Exists("/proc/stat");
  facts.is_foreign_proc = facts.has_proc && self != std::to_string(getpid());
  struct stat about;
  facts.has_own_pids = stat(files.Path("/proc/self/ns/pid").c_str(), &about) == 0 &&
                       about.st_ino != kFirstPidNamespace;
  return facts;
}

SystemdFacts ReadSystemd(const std::string& user, const HostFiles& files) {
  SystemdFacts facts;
  facts.is_running = files.Exists("/run/systemd/system");
  facts.removes_ipc = RemovesByDefault(files);
  for (const std::string& path : LogindFiles(files)) {
    const std::map<std::string, std::string> settings = ReadSettings(files.Read(path).value_or(""));
    const auto at = settings.find("removeipc");
    if (at == settings.end()) continue;
    facts.removes_ipc = IsYes(at->second);
    facts.source = path;
  }
  facts.lingers = !user.empty() && files.Exists(absl::StrCat("/var/lib/systemd/linger/", user));
  return facts;
}

SlurmFacts ReadSlurm(const Environment& environment, const HostFiles& files) {
  SlurmFacts facts;
  std::vector<std::string> paths = {"/etc/slurm/slurm.conf", "/run/slurm/conf/slurm.conf",
                                    "/var/spool/slurmd/conf-cache/slurm.conf",
                                    "/etc/slurm-llnl/slurm.conf"};
  const auto named = environment.find("SLURM_CONF");
  if (named != environment.end()) paths.insert(paths.begin(), named->second);
  const auto at = std::find_if(paths.begin(), paths.end(),
                               [&](const std::string& path) { return files.Exists(path); });
  if (at == paths.end()) return facts;
  facts.config = *at;
  std::map<std::string, std::string> settings = ReadSettings(files.Read(*at).value_or(""));
  facts.job_container = settings["jobcontainertype"].empty() ? settings["namespacetype"]
                                                             : settings["jobcontainertype"];
  facts.task_prolog = settings["taskprolog"];
  const std::string folder = at->substr(0, at->rfind('/'));
  facts.has_pyxis = !FindPlugin(files, folder, "pyxis").empty();
  facts.plugin = FindPlugin(files, folder, "spank_rollcall");
  // Slurm looks for a name without a folder in its PluginDir.
  facts.has_plugin_file = !absl::StartsWith(facts.plugin, "/") || files.Exists(facts.plugin);
  return facts;
}

GpuFacts ProbeGpu(const Environment& environment, const HostFiles& files) {
  GpuFacts facts;
  facts.driver = DriverVersion(files.Read("/proc/driver/nvidia/version").value_or(""));
  facts.is_amd = files.Exists("/dev/kfd");
  const std::vector<std::string> devices = files.List("/dev");
  facts.devices = static_cast<int>(std::count_if(devices.begin(), devices.end(), IsGpuDevice));
  // Not opened: a driver that hangs would hold this process.
  const std::string control = files.Path("/dev/nvidiactl");
  if (!facts.driver.empty() && access(control.c_str(), R_OK | W_OK) != 0) {
    facts.device_error = strerror(errno);
  }
  facts.library = FindDriverLibrary(environment, files);
  if (!facts.library.empty()) facts.elf = ReadElf(facts.library);
  return facts;
}

std::string NameOfUser() {
  passwd entry;
  passwd* found = nullptr;
  char buffer[4096];
  const bool is_known =
      getpwuid_r(geteuid(), &entry, buffer, sizeof(buffer), &found) == 0 && found != nullptr;
  return is_known ? found->pw_name : "";
}

}  // namespace rollcall::doctor
