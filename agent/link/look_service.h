// SPDX-License-Identifier: Apache-2.0
// What the agent adds to the stacks of a look that an operator has asked for: where the logs of
// ranks end, which of them use NCCL, and what NCCL's RAS counts.
//
// The daemon names processes, and no file, address or command. The agent looks at those that it has
// listed as not recorded on the stream that asks, and whose stacks may be taken; so many times a
// minute. RAS is asked only where no defect of NCCL is known by which a question could end the job.
//
// Look() blocks for some seconds and belongs to one thread. Cancel() is thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "agent/processes/process_id.h"
#include "agent/processes/spare_threads.h"
#include "agent/ras/ask_job.h"
#include "agent/stacks/stack_allowance.h"
#include "base/throttle.h"
#include "rollcall/v1/agent.pb.h"
#include "security/redact.h"

namespace rollcall {

struct LookServiceOptions {
  std::string proc_root = "/proc";
  bool is_on = true;    // false: the answers are empty
  bool logs_on = true;  // false: without logs
  std::shared_ptr<const Redactor> redactor = DefaultRedactor();
  // Shared by the agents of one process; nullptr means its own.
  std::shared_ptr<StackAllowance> allowance;
  int64_t least_read_ns = 0;  // as SpareThreads, for tests
};

class LookService {
 public:
  static constexpr size_t kMostProcesses = 64;   // of a request; the others are left out
  static constexpr int64_t kMostPerMinute = 18;  // requests: six looks, and two to RAS for each

  using IsListed = std::function<bool(ProcessId)>;

  // `is_listed`: thread-safe; whether the agent has listed this process to the daemon that asks.
  LookService(LookServiceOptions options, IsListed is_listed);

  // `processes`: of the request.
  v1::LookAtRanksReply Look(const v1::LookAtRanks& asked, const std::vector<ProcessId>& processes);
  // Ends a Look() that waits.
  void Cancel() { threads_.Cancel(); }

 private:
  struct Rank {
    ProcessId process;
    int64_t payer = SpareThreads::kNobody;
  };

  std::vector<Rank> Listed(const std::vector<ProcessId>& processes) const;
  std::string Objection(const std::vector<Rank>& ranks);
  void AddLogs(const std::vector<Rank>& ranks, v1::LookAtRanksReply* reply);
  void AddThoseOfNccl(const std::vector<Rank>& ranks, v1::LookAtRanksReply* reply);
  v1::RasAnswer AskRas(const std::vector<Rank>& ranks, bool changes_communicators);

  const LookServiceOptions options_;
  const IsListed is_listed_;
  const std::shared_ptr<StackAllowance> allowance_;
  SpareThreads threads_;
  Throttle refusals_;
};

}  // namespace rollcall
