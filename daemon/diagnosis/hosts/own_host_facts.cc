// SPDX-License-Identifier: Apache-2.0
#include "daemon/diagnosis/hosts/own_host_facts.h"

#include <algorithm>
#include <set>
#include <string_view>

#include "absl/strings/match.h"

namespace rollcall {
namespace {

constexpr std::string_view kKernelLog = "kernel_log";
constexpr char kOfAGroup[] = "emory cgroup out of memory";

// What is known of the job on one host.
struct Own {
  std::set<int32_t> pids;        // of its ranks: other processes of the job are not known
  std::set<std::string> gpus;    // subjects of facts
  std::set<std::string> others;  // GPUs that another process uses, and none of the ranks
  bool met_limit = false;        // the kernel has killed processes in a control group of the job
};

Own FindOwn(const JobState& job, const std::string& host, const HostFacts& facts) {
  Own own;
  std::set<std::string> uuids;
  for (const Process& process : job.processes) {
    if (process.host != host) continue;
    own.pids.insert(process.pid);
    if (!process.gpu_uuid.empty()) uuids.insert(process.gpu_uuid);
  }
  for (const HostFact& fact : facts.facts) {
    const bool is_used =
        (fact.kind == HostFactKind::kGpuProcess && own.pids.count(fact.pid) != 0) ||
        (fact.kind == HostFactKind::kGpu && uuids.count(fact.text) != 0);
    if (is_used) own.gpus.insert(fact.subject);
    if (fact.kind == HostFactKind::kGpuProcess) own.others.insert(fact.subject);
    own.met_limit =
        own.met_limit || (fact.kind == HostFactKind::kCgroupOom && own.pids.count(fact.pid) != 0);
  }
  for (const std::string& gpu : own.gpus) own.others.erase(gpu);
  return own;
}

bool IsOfAnother(const HostFact& fact, const Own& own) {
  return fact.pid != 0 && InfoOf(fact.kind).probe == kKernelLog && own.pids.count(fact.pid) == 0;
}

// Whether programs cause this Xid by their own mistakes. NVIDIA's table of Xid errors names them:
// 13 and 69 (illegal instruction or access), 31 (page fault), 43 and 45 (a stopped or ended
// program), 68.
bool IsOfAProgram(int64_t xid) {
  constexpr int64_t kOfPrograms[] = {13, 31, 43, 45, 68, 69};
  return std::find(std::begin(kOfPrograms), std::end(kOfPrograms), xid) != std::end(kOfPrograms);
}

bool MayConcernTheJob(const HostFact& fact, const Own& own) {
  switch (fact.kind) {
    case HostFactKind::kOomKill:
      return own.met_limit || !absl::StrContains(fact.text, kOfAGroup);
    case HostFactKind::kXid:
      // NVML names no process of a GPU that is off the bus.
      return own.others.count(fact.subject) == 0 && !IsOfAProgram(fact.value);
    case HostFactKind::kHungTask:  // perhaps a data loader of the job, or a thread of the kernel
    case HostFactKind::kLockup:
      return true;
    default:
      return false;
  }
}

}  // namespace

void KeepOwnHostFacts(const JobState& job, const std::string& host, HostFacts* facts) {
  const Own own = FindOwn(job, host, *facts);
  std::vector<HostFact>& all = facts->facts;
  all.erase(std::remove_if(all.begin(), all.end(),
                           [&own](const HostFact& fact) {
                             return IsOfAnother(fact, own) && !MayConcernTheJob(fact, own);
                           }),
            all.end());
  for (HostFact& fact : all) {
    if (!IsOfAnother(fact, own)) continue;
    fact.pid = 0;
    fact.text.clear();
  }
}

}  // namespace rollcall
