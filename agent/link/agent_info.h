// SPDX-License-Identifier: Apache-2.0
// The file `agent.info` publishes the agent of a host. The agent holds a lock on the file while it
// runs. A `rollcall run --daemon` that finds such a file for its daemon starts no agent of its own.
//
// The agent writes the file under a temporary name, locks it, and renames it. So a reader always
// sees a complete file with its lock held.
//
// The file has three lines: the daemons' addresses as given to the agent, with commas between them;
// the scope of the agent, "host" (all processes of the host) or "user" (the processes of one user);
// and the name under which the agent reports this host, which an older agent leaves out.
#pragma once

#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/unique_fd.h"

namespace rollcall {

inline constexpr char kAgentInfo[] = "agent.info";
inline constexpr char kHostAgentDirectory[] = "/run/rollcall";

enum class ServedProcesses { kHost, kUser };

class AgentInfo {
 public:
  // Creates `directory` if it is missing. Errors: kAlreadyExists (another agent holds the lock),
  // kPermissionDenied (the directory is another user's), kUnavailable (the file cannot be written).
  static absl::StatusOr<std::unique_ptr<AgentInfo>> Publish(const std::string& directory,
                                                            const std::string& daemon_address,
                                                            ServedProcesses served,
                                                            const std::string& host = "");
  ~AgentInfo();  // removes the file
  AgentInfo(const AgentInfo&) = delete;
  AgentInfo& operator=(const AgentInfo&) = delete;

 private:
  AgentInfo(UniqueFd folder, UniqueFd fd) : folder_(std::move(folder)), fd_(std::move(fd)) {}

  const UniqueFd folder_;
  const UniqueFd fd_;
};

struct HostAgent {
  std::string directory;
  std::string host;  // the name under which it reports this host; empty if unknown
};

// Returns the first of `directories` with a running agent that serves this user's processes and
// reports to that daemon, by whatever name, or to one of those if `daemon_address` names several.
// May wait for DNS. Trusts only files that belong to root, to this user, or to the only user with
// write permission for a directory that root gave to that user.
std::optional<HostAgent> FindHostAgent(const std::string& daemon_address,
                                       const std::vector<std::string>& directories);

}  // namespace rollcall
