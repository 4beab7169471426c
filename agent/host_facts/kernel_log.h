// SPDX-License-Identifier: Apache-2.0
// The kernel's log: records of /dev/kmsg (Documentation/ABI/testing/dev-kmsg), and the messages in
// it that may explain a hang. Pure.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "agent/host_facts/device_names.h"
#include "agent/host_facts/fact.h"

namespace rollcall {

struct KernelRecord {
  int64_t age_ns = 0;
  std::string text;
};

// Records of the last hour, oldest first. `now_us`: the time by the clock of the log.
std::vector<KernelRecord> ParseKernelLog(std::string_view log, int64_t now_us);

// The fact that a record reports; kUnknown if the record reports no fact. `came_back`: it ends an
// earlier fact of the same kind and subject.
struct KernelFact {
  Fact fact;
  bool came_back = false;
};
KernelFact ReadKernelRecord(const KernelRecord& record, const DeviceNames& devices);

// The facts that the records report, newest first: few of each kind and subject about each process
// in `pids`, and as few about all others together. The daemon does not show the others' to the job.
std::vector<Fact> FactsOfKernelLog(const std::vector<KernelRecord>& records,
                                   const DeviceNames& devices, const std::vector<pid_t>& pids);

}  // namespace rollcall
