// SPDX-License-Identifier: Apache-2.0
// Finds out where the RAS of a job's processes listens on this host: by the sockets that these
// processes hold, and not by the address alone. All jobs of a user on a host may share one address
// (SO_REUSEPORT), and then the kernel chooses whose process is asked.
//
// Reads /proc, and may block: see agent/processes/spare_threads.h.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "agent/outside/tcp_table.h"

namespace rollcall {

// Returns the port of NCCL_RAS_ADDR: "host:28028", "[::1]:28028". "" is NCCL's own. nullopt if
// there is none.
std::optional<uint16_t> RasPort(const std::string& address);

struct RasListener {
  TcpEnd at;
  std::vector<pid_t> pids;  // of the job, that listen there; ascending
};

// `pids`: processes of one job on this host, which give their RAS this address. An error, in one
// sentence for people: no process of the job listens, another job listens there as well, they are
// in another network namespace, or their descriptors cannot be read.
absl::StatusOr<RasListener> FindRasListener(const std::string& proc_root,
                                            const std::string& address,
                                            const std::vector<pid_t>& pids);

}  // namespace rollcall
