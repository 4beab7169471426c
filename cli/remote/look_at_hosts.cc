// SPDX-License-Identifier: Apache-2.0
#include "cli/remote/look_at_hosts.h"

#include <fcntl.h>
#include <netdb.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <optional>
#include <thread>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/clean_text.h"
#include "base/digest/digest.h"
#include "base/durations.h"
#include "base/monotonic_clock.h"
#include "base/mutex.h"
#include "base/read_file.h"
#include "base/result_in_time.h"
#include "base/threads.h"
#include "base/unique_fd.h"
#include "cli/remote/remote_child.h"
#include "cli/remote/remote_hosts.h"
#include "cli/remote/remote_script.h"
#include "cli/remote/slurm_nodes.h"
#include "service/version.h"

namespace rollcall {
namespace {

constexpr size_t kTokenBytes = 16;
constexpr size_t kMostHostFile = 4 << 20;
constexpr int64_t kProgressNs = kSecond;
constexpr int64_t kToFindAddressNs = 3 * kSecond;

// The program that runs now, whatever lies at its path.
class OwnProgram {
 public:
  OwnProgram() {
    const UniqueFd fd(open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
    struct stat status = {};
    if (!fd.valid() || fstat(fd.get(), &status) != 0 || status.st_size <= 0) return;
    const auto size = static_cast<size_t>(status.st_size);
    void* const memory = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd.get(), 0);
    if (memory != MAP_FAILED) bytes_ = {static_cast<const char*>(memory), size};
  }
  ~OwnProgram() {
    if (!bytes_.empty()) munmap(const_cast<char*>(bytes_.data()), bytes_.size());
  }
  OwnProgram(const OwnProgram&) = delete;
  OwnProgram& operator=(const OwnProgram&) = delete;

  absl::string_view bytes() const { return bytes_; }

 private:
  absl::string_view bytes_;
};

v1::HostLook Unanswered(const std::string& name, const std::string& error) {
  v1::HostLook look;
  look.set_host(name);
  look.set_error(error);
  return look;
}

// Hands out the targets to its threads. The looks belong to who has taken their number.
class Looks {
 public:
  Looks(const std::vector<RemoteTarget>& targets, const RemoteWork& work)
      : targets_(targets),
        work_(work),
        until_ns_(MonotonicNs() + work.limits.total_ns),
        token_(absl::BytesToHexString(RandomBytes(kTokenBytes).value_or(""))),
        looks_(targets.size()),
        arrived_ns_(targets.size()) {}

  std::vector<v1::HostLook> Take() {
    const size_t threads = std::min(work_.limits.at_once, targets_.size());
    std::vector<std::thread> running;
    for (size_t i = 0; i < threads; ++i) {
      std::optional<std::thread> thread = TryThread([this] { Work(); });
      if (thread.has_value()) running.push_back(*std::move(thread));
    }
    if (running.empty()) Work();
    TellProgress();
    for (std::thread& thread : running) thread.join();
    EndTogether();
    return std::move(looks_);
  }

 private:
  void Work() {
    for (size_t at = next_++; at < targets_.size(); at = next_++) {
      looks_[at] = LookAt(at, &arrived_ns_[at]);
      const MutexLock lock(mutex_);
      ++done_;
      changed_.NotifyAll();
    }
  }

  // Lets all looks end now, each by the clock of its host, so that their times can be compared.
  void EndTogether() {
    const int64_t now_ns = MonotonicNs();
    for (size_t i = 0; i < looks_.size(); ++i) {
      if (arrived_ns_[i] == 0) continue;
      looks_[i].set_ended_ns(looks_[i].ended_ns() + now_ns - arrived_ns_[i]);
    }
  }

  v1::HostLook LookAt(size_t at, int64_t* arrived_ns) {
    const RemoteTarget& target = targets_[at];
    if (!target.error.empty()) return Unanswered(target.name, target.error);
    if (token_.empty()) return Unanswered(target.name, "the system gives no random bytes");
    const int64_t now_ns = MonotonicNs();
    if (now_ns >= until_ns_) {
      return Unanswered(target.name, "it was not asked, because the time for all hosts was over");
    }
    // Hosts may share the folder: each has a name of its own.
    const std::string token = absl::StrCat(token_, absl::Hex(at, absl::kZeroPad4));
    RemoteScript script;
    script.token = token;
    script.version = VersionLine("rollcall");
    script.program_bytes = program_.bytes().size();
    script.arguments = work_.arguments;
    // What follows a "--" is not a flag.
    script.arguments.insert(script.arguments.begin() + 1, absl::StrCat("--look=", token));
    RemoteLook answer =
        TakeRemoteLook(target.command(ScriptLine(script)), token, program_.bytes(),
                       std::min(until_ns_, now_ns + work_.limits.host_ns), work_.budget);
    if (!answer.error.empty()) return Unanswered(target.name, answer.error);
    *arrived_ns = answer.arrived_ns;
    if (target.names_look || answer.look.host().empty()) answer.look.set_host(target.name);
    return std::move(answer.look);
  }

  void TellProgress() {
    const MutexLock lock(mutex_);
    size_t told = 0;
    while (done_ < targets_.size()) {
      changed_.WaitUntil(mutex_,
                         std::chrono::steady_clock::now() + std::chrono::nanoseconds(kProgressNs));
      if (!work_.tell || done_ == told || done_ == targets_.size()) continue;
      told = done_;
      if (MonotonicNs() < told_ns_ + kProgressNs) continue;
      told_ns_ = MonotonicNs();
      work_.tell(absl::StrCat(told, " of ", targets_.size(), " hosts have answered"));
    }
  }

  const std::vector<RemoteTarget>& targets_;
  const RemoteWork& work_;
  const int64_t until_ns_;
  const std::string token_;
  const OwnProgram program_;
  std::vector<v1::HostLook> looks_;
  std::vector<int64_t> arrived_ns_;  // of each look; 0 if not arrived
  std::atomic<size_t> next_{0};
  int64_t told_ns_ = 0;  // of the caller's thread
  Mutex mutex_;
  Condition changed_;
  size_t done_ ABSL_GUARDED_BY(mutex_) = 0;
};

// Two hosts that call themselves alike have the names by which they were reached.
void TellApart(const std::vector<RemoteTarget>& targets, std::vector<v1::HostLook>* looks) {
  std::map<std::string, size_t> with_name;
  for (const v1::HostLook& look : *looks) ++with_name[look.host()];
  for (size_t i = 0; i < looks->size(); ++i) {
    if (with_name[(*looks)[i].host()] > 1) (*looks)[i].set_host(targets[i].name);
  }
}

// nullopt if there is no such file. A folder or a pipe does not count.
std::optional<std::string> ReadHostFile(const std::string& path) {
  struct stat status = {};
  if (stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return std::nullopt;
  return ReadFile(path, kMostHostFile);
}

absl::Status Failed(const char* what, const std::string& why) {
  return absl::FailedPreconditionError(absl::StrCat(what, ": ", why));
}

}  // namespace

absl::StatusOr<std::vector<RemoteTarget>> HostTargets(const std::string& hosts,
                                                      const IsHost& is_host) {
  const bool is_path = absl::StrContains(hosts, '/');
  std::optional<std::string> file = ReadHostFile(hosts);
  if (is_path && !file)
    return Failed("--hosts", absl::StrCat("cannot read the file ", CleanText(hosts)));
  if (!is_path && file && IsHostName(hosts) && is_host(hosts)) file.reset();
  const absl::StatusOr<std::vector<std::string>> names = ParseHosts(file.value_or(hosts));
  if (!names.ok()) {
    return Failed(file ? "the file of --hosts" : "--hosts", std::string(names.status().message()));
  }
  std::vector<RemoteTarget> targets;
  for (const std::string& name : *names) {
    RemoteTarget target;
    target.name = name;
    target.command = [name](const std::string& line) { return SshCommand(name, line); };
    targets.push_back(std::move(target));
  }
  return targets;
}

bool HasAddress(const std::string& host) {
  ResultInTime<bool> asked([name = host.substr(host.find('@') + 1)] {
    addrinfo* found = nullptr;
    const bool has = getaddrinfo(name.c_str(), nullptr, nullptr, &found) == 0;
    if (has) freeaddrinfo(found);
    return has;
  });
  return asked.Take(After(kToFindAddressNs)).value_or(false);
}

absl::StatusOr<SlurmTargetList> SlurmTargets(const std::string& job, int64_t deadline_ns) {
  if (!IsSlurmJob(job)) return Failed("--slurm", "give the number of a job");
  const CommandOutput shown = RunToEnd(ShowJobCommand(job), deadline_ns);
  if (!shown.error.empty()) return Failed("scontrol show job", shown.error);
  const absl::StatusOr<SlurmJob> running = ParseSlurmJob(shown.out);
  if (!running.ok()) return Failed("--slurm", std::string(running.status().message()));
  const CommandOutput listed = RunToEnd(ShowHostnamesCommand(running->nodes), deadline_ns);
  if (!listed.error.empty()) return Failed("scontrol show hostnames", listed.error);
  const absl::StatusOr<std::vector<std::string>> nodes = ParseHosts(listed.out);
  if (!nodes.ok()) return Failed("scontrol show hostnames", std::string(nodes.status().message()));
  SlurmTargetList list = {running->id, {}};
  for (const std::string& node : *nodes) {
    RemoteTarget target;
    target.name = node;
    target.command = [id = list.job, node](const std::string& line) {
      return SrunCommand(id, node, line);
    };
    target.names_look = true;
    list.targets.push_back(std::move(target));
  }
  return list;
}

absl::StatusOr<std::vector<RemoteTarget>> KubernetesTargets(const std::string& wanted,
                                                            const std::string& container,
                                                            int64_t deadline_ns) {
  const absl::StatusOr<PodsWanted> pods_wanted = ParsePodsWanted(wanted);
  if (!pods_wanted.ok()) return Failed("--kubernetes", std::string(pods_wanted.status().message()));
  const CommandOutput listed = RunToEnd(GetPodsCommand(*pods_wanted), deadline_ns);
  if (!listed.error.empty()) return Failed("kubectl get pods", listed.error);
  const absl::StatusOr<std::vector<FoundPod>> pods = ParsePods(listed.out, container);
  if (!pods.ok()) return Failed("--kubernetes", std::string(pods.status().message()));
  std::vector<RemoteTarget> targets;
  for (const FoundPod& pod : *pods) {
    RemoteTarget target;
    target.name = pod.place.pod;
    target.error = pod.error;
    target.names_look = true;
    target.command = [place = pod.place](const std::string& line) {
      return KubectlCommand(place, line);
    };
    targets.push_back(std::move(target));
  }
  return targets;
}

std::vector<v1::HostLook> LookAtHosts(const std::vector<RemoteTarget>& targets,
                                      const RemoteWork& work) {
  ByteBudget own(kMostMemoryOfLooks);
  RemoteWork limited = work;
  if (limited.budget == nullptr) limited.budget = &own;
  std::vector<v1::HostLook> looks = Looks(targets, limited).Take();
  TellApart(targets, &looks);
  return looks;
}

}  // namespace rollcall
