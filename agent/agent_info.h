// SPDX-License-Identifier: Apache-2.0
// How a host's agent says that it is there: the file `agent.info`, whose lock it holds while it
// lives. A `rollcall run --daemon` that finds one for its daemon starts no agent of its own.
//
// It is written under another name, locked, and renamed: whoever reads it reads all of it, and
// finds the lock held.
//
// Two lines: the daemon's address as the agent was given it, and "host" or "user", which of the
// host's processes it serves.
#pragma once

#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "agent/processes/unique_fd.h"

namespace rollcall {

inline constexpr char kAgentInfo[] = "agent.info";
inline constexpr char kHostAgentDirectory[] = "/run/rollcall";

enum class ServedProcesses { kHost, kUser };

class AgentInfo {
 public:
  // Makes `directory` where it is missing. Errors: kAlreadyExists (another agent holds the lock),
  // kUnavailable (cannot be written).
  static absl::StatusOr<std::unique_ptr<AgentInfo>> Publish(const std::string& directory,
                                                            const std::string& daemon_address,
                                                            ServedProcesses served);
  ~AgentInfo();  // removes the file
  AgentInfo(const AgentInfo&) = delete;
  AgentInfo& operator=(const AgentInfo&) = delete;

 private:
  AgentInfo(std::string path, UniqueFd fd) : path_(std::move(path)), fd_(std::move(fd)) {}

  const std::string path_;
  const UniqueFd fd_;
};

// The first of `directories` where a living agent says that it serves this user's processes and
// reports them to that daemon. Believes only files of root, of this user, or of the one user who
// may write to the directory.
std::optional<std::string> FindHostAgent(const std::string& daemon_address,
                                         const std::vector<std::string>& directories);

}  // namespace rollcall
