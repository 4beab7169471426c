// SPDX-License-Identifier: Apache-2.0
#include "agent/ras/ras_listener.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <system_error>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "agent/processes/proc_files.h"
#include "agent/processes/process_namespaces.h"
#include "base/clean_text.h"
#include "base/read_file.h"

namespace rollcall {
namespace {

constexpr uint16_t kNcclsPort = 28028;
constexpr size_t kTableLimit = 16 << 20;
constexpr size_t kMostDescriptors = 1 << 16;  // of one process

std::vector<TcpSocket> ListenersAt(const std::string& proc_root, pid_t pid, uint16_t port) {
  std::vector<TcpSocket> listeners;
  for (const char* file : {"net/tcp", "net/tcp6"}) {
    const absl::StatusOr<std::string> text =
        ReadProcFile(ProcPath(proc_root, pid, file), kTableLimit);
    if (!text.ok()) continue;
    for (const TcpSocket& socket : ParseTcpTable(*text)) {
      if (socket.listens && socket.local.port == port) listeners.push_back(socket);
    }
  }
  return listeners;
}

// Which of these sockets the process holds. False if its descriptors cannot be read.
bool AddHeld(const std::string& proc_root, pid_t pid, const std::set<uint64_t>& inodes,
             std::map<uint64_t, std::vector<pid_t>>* holders) {
  std::error_code failed;
  std::filesystem::directory_iterator entries(ProcPath(proc_root, pid, "fd"), failed);
  if (failed) return false;
  size_t seen = 0;
  while (entries != std::filesystem::directory_iterator() && seen++ < kMostDescriptors) {
    const std::string target = ReadLink(entries->path().string());
    absl::string_view end = target;
    uint64_t inode = 0;
    if (absl::ConsumePrefix(&end, "socket:[") && absl::ConsumeSuffix(&end, "]") &&
        absl::SimpleAtoi(end, &inode) && inodes.count(inode) > 0) {
      (*holders)[inode].push_back(pid);
    }
    entries.increment(failed);
    if (failed) break;
  }
  return true;
}

// The processes that share this process's network; the others cannot be reached.
std::vector<pid_t> Reachable(const std::string& proc_root, const std::vector<pid_t>& pids) {
  const std::string own = ReadNetworkNamespace(proc_root, "self");
  std::vector<pid_t> out;
  for (const pid_t pid : pids) {
    const std::string theirs = ReadNetworkNamespace(proc_root, std::to_string(pid));
    if (!own.empty() && theirs == own) out.push_back(pid);
  }
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace

std::optional<uint16_t> RasPort(const std::string& address) {
  if (address.empty()) return kNcclsPort;
  const size_t colon = address.rfind(':');
  uint32_t port = 0;
  if (colon == std::string::npos || !absl::SimpleAtoi(address.substr(colon + 1), &port) ||
      port == 0 || port > UINT16_MAX) {
    return std::nullopt;
  }
  return static_cast<uint16_t>(port);
}

absl::StatusOr<RasListener> FindRasListener(const std::string& proc_root,
                                            const std::string& address,
                                            const std::vector<pid_t>& pids) {
  const std::optional<uint16_t> port = RasPort(address);
  if (!port)
    return absl::InvalidArgumentError(
        absl::StrCat("NCCL_RAS_ADDR has no port: ", CleanText(address)));
  const std::vector<pid_t> near = Reachable(proc_root, pids);
  if (near.empty()) {
    return absl::FailedPreconditionError(
        "the network namespace of its processes is another one, or cannot be read: run the command "
        "inside their container, as their user");
  }
  const std::vector<TcpSocket> listeners = ListenersAt(proc_root, near.front(), *port);
  if (listeners.empty()) {
    return absl::NotFoundError(
        absl::StrCat("no program listens at port ", *port,
                     ": RAS is off, or the job's NCCL is older than 2.24 or not in use yet"));
  }
  std::set<uint64_t> inodes;
  for (const TcpSocket& listener : listeners) inodes.insert(listener.inode);
  std::map<uint64_t, std::vector<pid_t>> holders;
  size_t unread = 0;
  for (const pid_t pid : near) unread += AddHeld(proc_root, pid, inodes, &holders) ? 0 : 1;
  if (unread == near.size()) {
    return absl::PermissionDeniedError(
        "the sockets of its processes cannot be read: run the command as their user");
  }
  RasListener found;
  for (const TcpSocket& listener : listeners) {
    const auto held = holders.find(listener.inode);
    if (held == holders.end()) continue;
    if (found.pids.empty()) found.at = listener.local;
    if (!(found.at == listener.local)) continue;
    found.pids.insert(found.pids.end(), held->second.begin(), held->second.end());
  }
  if (found.pids.empty())
    return absl::NotFoundError(
        absl::StrCat("none of its processes listens at port ", *port, ", but another program"));
  const bool is_shared =
      std::any_of(listeners.begin(), listeners.end(), [&](const TcpSocket& listener) {
        return listener.local == found.at && holders.count(listener.inode) == 0;
      });
  if (is_shared) {
    return absl::FailedPreconditionError(absl::StrCat(
        "other processes listen at port ", *port,
        " as well, and the kernel chooses which of them is asked: give each job its own "
        "NCCL_RAS_ADDR"));
  }
  std::sort(found.pids.begin(), found.pids.end());
  found.pids.erase(std::unique(found.pids.begin(), found.pids.end()), found.pids.end());
  return found;
}

}  // namespace rollcall
