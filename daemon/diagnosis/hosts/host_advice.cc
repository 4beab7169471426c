// SPDX-License-Identifier: Apache-2.0
#include "daemon/diagnosis/hosts/host_advice.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "daemon/diagnosis/hosts/host_fact_rules.h"

namespace rollcall {
namespace {

constexpr size_t kMostHostAdvice = 2;
constexpr char kPort[] = " port ";

// "ibstat mlx5_2 1" for "mlx5_2 port 1"; "ethtool ens1" for an interface.
std::string CardCommand(const std::string& subject) {
  const size_t port = subject.find(kPort);
  if (port != std::string::npos) {
    return absl::StrCat("ibstat ", subject.substr(0, port), " ",
                        subject.substr(port + sizeof(kPort) - 1));
  }
  return subject.empty() ? "ip -s link" : absl::StrCat("ethtool ", subject);
}

std::string Fill(const HostAdviceEntry& entry, const HostEvidence& evidence) {
  return absl::StrReplaceAll(entry.text,
                             {{"$h", evidence.host},
                              {"$s", evidence.subject.empty() ? "the device" : evidence.subject},
                              {"$p", evidence.pid == 0 ? "PID" : absl::StrCat(evidence.pid)},
                              {"$c", CardCommand(evidence.subject)}});
}

}  // namespace

const std::vector<HostAdviceEntry>& HostAdvice() {
  static const auto* const kTable = new std::vector<HostAdviceEntry>{
      {"check-link",
       "A link that goes down or loses packets stops the transfers over it, and NCCL retries for "
       "long "
       "before it reports an error.",
       "Probably the link of $s on $h. There: `$c`, `dmesg -T | grep -i link`, and "
       "`rdma statistic show` twice; then cable, transceiver and switch port. Restart the job "
       "without "
       "$h if the link does not stay up."},
      {"gpu-fault",
       "After such an error a GPU may never finish a kernel, and its peers wait for its data.",
       "Probably a faulty GPU ($s) on $h. There: `dmesg -T | grep -i xid`, `nvidia-smi -q`, "
       "`nvidia-smi nvlink -e`, then `dcgmi diag -r 3`. Drain $h, reset the GPU, and restart the "
       "job "
       "without the host."},
      {"gpu-slow", "A GPU with a reduced clock or fewer PCIe lanes is late for every call.",
       "$s on $h is slower than the others. There: `nvidia-smi -q -d "
       "PERFORMANCE,TEMPERATURE,POWER` "
       "and `nvidia-smi --query-gpu=pcie.link.width.current --format=csv`. Check cooling, power "
       "and "
       "the seat of the card."},
      {"hardware-error",
       "A CPU that is stuck, a PCIe error or a memory error stops what runs there.",
       "Probably the hardware of $h. There: `dmesg -T --level=emerg,alert,crit,err`, `ras-mc-ctl "
       "--summary`, and the log of the management controller. Drain $h and restart the job without "
       "it."},
      {"out-of-memory",
       "The kernel kills a process when its control group or the host has no memory left, and "
       "slows all "
       "down before that.",
       "Memory ran short on $h. There: `dmesg -T | grep -i 'killed process'`, `free -g`, and "
       "`cat /sys/fs/cgroup/$(cut -d: -f3 /proc/$p/cgroup)/memory.events`. Use fewer data-loader "
       "workers or less pinned memory, or raise the limit of the job."},
      {"frozen-group",
       "No process of a frozen control group runs. A batch system, a container runtime or a person "
       "froze it.",
       "The control group of pid $p on $h is frozen. There: `cat /proc/$p/cgroup`, then find what "
       "froze it (`scontrol show job`, `docker ps`, `systemctl status $p`), and thaw it: write 0 "
       "to its cgroup.freeze, or of version 1 THAWED to its freezer.state."},
      {"cpu-held-back",
       "A CPU limit, other work or heat gives the processes of this host less time than the "
       "others.",
       "The CPUs of $h give the job less time. There: `cat /proc/pressure/cpu`, `top`, `cat "
       "/sys/fs/cgroup/$(cut -d: -f3 /proc/$p/cgroup)/cpu.stat`. Raise the CPU limit of the job, "
       "or "
       "end the other work."},
      {"blocked-in-kernel",
       "A thread in state D waits for a disk, a file server or a driver, and no signal ends it.",
       "A thread on $h waits in the kernel. There: `cat /proc/$p/task/*/wchan`, `echo w > "
       "/proc/sysrq-trigger` and `dmesg -T` show where. If it waits in a driver, only a restart of "
       "the "
       "host helps."},
      {"file-server-silent", "All access to a file system waits for its server.",
       "The file system $s does not answer on $h. There: `findmnt $s`, `nfsstat -m` or `lfs check "
       "servers`, `dmesg -T | grep -i server`; then the server itself. Unmount with `umount -f -l "
       "$s` "
       "only if the job may fail."},
      {"disk-full", "A write to a full file system fails or waits.",
       "The file system $s on $h is full. There: `df -h $s`, `df -i $s`. Remove old checkpoints, "
       "logs "
       "and core files, or write elsewhere."},
      {"disk-error", "A disk that repeats its reads holds up every process that waits for it.",
       "A disk of $h has errors ($s). There: `dmesg -T | grep -i 'i/o error'`, `smartctl -a "
       "/dev/$s`, "
       "`nvme smart-log /dev/$s`. Drain $h."},
  };
  return *kTable;
}

void AddHostAdvice(Verdict* verdict) {
  std::vector<Advice> advice;
  for (const HostEvidence& evidence : verdict->host_evidence) {
    const HostFactRule& rule = RuleOf(evidence.kind);
    if (rule.weight == HostSignWeight::kContext || advice.size() == kMostHostAdvice) continue;
    const auto entry = std::find_if(
        HostAdvice().begin(), HostAdvice().end(),
        [&](const HostAdviceEntry& known) { return known.id == std::string(rule.advice); });
    const bool is_known = std::any_of(advice.begin(), advice.end(),
                                      [&](const Advice& known) { return known.id == rule.advice; });
    if (entry != HostAdvice().end() && !is_known)
      advice.push_back({entry->id, Fill(*entry, evidence)});
  }
  verdict->advice.insert(verdict->advice.begin(), advice.begin(), advice.end());
}

}  // namespace rollcall
