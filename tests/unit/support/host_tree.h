// SPDX-License-Identifier: Apache-2.0
// The files of a healthy host as its kernel writes them: two cards with an InfiniBand device each,
// a process in a control group, no pressure. A test breaks one part of it.
#pragma once

#include <string>

#include "temporary_tree.h"

namespace rollcall {

class HostTree {
 public:
  static constexpr int kPid = 4121;

  HostTree() {
    AddCard("mlx5_0", "ens1", "0000:3b:00.0");
    AddCard("mlx5_2", "ens3", "0000:98:00.0");
    tree_.Write("proc/net/snmp",
                "Ip: Forwarding\nIp: 1\n"
                "Tcp: RtoAlgorithm InSegs OutSegs RetransSegs\nTcp: 1 100 90 7\n");
    for (const char* part : {"memory", "io", "cpu"}) {
      tree_.Write(std::string("proc/pressure/") + part,
                  "some avg10=0.00 avg60=0.00 avg300=0.00 total=12\n"
                  "full avg10=0.00 avg60=0.00 avg300=0.00 total=10\n");
    }
    tree_.Write("proc/vmstat", "nr_free_pages 1\npswpin 5\npswpout 6\n");
    tree_.Write("proc/meminfo",
                "MemTotal:       1000000 kB\nMemFree: 1 kB\nMemAvailable:    600000 kB\n");
    tree_.Write("sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq", "3500000\n");
    tree_.Write("sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq", "3400000\n");
    tree_.Write("sys/devices/system/cpu/cpu0/thermal_throttle/package_throttle_count", "0\n");
    tree_.Write("dev/kmsg", "6,1,100,-;Linux version 6.1\n");
    AddProcess();
  }

  const std::string& root() const { return tree_.root(); }
  void Write(const std::string& file, const std::string& text) const { tree_.Write(file, text); }
  void Remove(const std::string& file) const { tree_.Remove(file); }

  static std::string Port(const std::string& device) {
    return "sys/class/infiniband/" + device + "/ports/1/";
  }
  static std::string Group() { return "sys/fs/cgroup/job_7/"; }
  static std::string Proc() { return "proc/" + std::to_string(kPid) + "/"; }
  static std::string Thread(int tid) { return Proc() + "task/" + std::to_string(tid) + "/"; }

  // A thread of the process, as in /proc/PID/task/TID.
  void AddThread(int tid, char state, const std::string& channel, int switches = 3) const {
    tree_.Write(Thread(tid) + "stat",
                std::to_string(tid) + " (python) " + state +
                    " 1 1 1 0 -1 4194304 1 0 0 0 5 6 0 0 20 0 1 0 100 4096 10 0\n");
    tree_.Write(Thread(tid) + "status",
                "Name:\tpython\nvoluntary_ctxt_switches:\t" + std::to_string(switches) + "\n");
    tree_.Write(Thread(tid) + "wchan", channel);
  }

 private:
  void AddCard(const std::string& device, const std::string& interface, const std::string& pci) {
    const std::string port = Port(device);
    tree_.Link("sys/class/infiniband/" + device + "/device", "../../../devices/pci0/" + pci);
    tree_.Write(port + "state", "4: ACTIVE\n");
    tree_.Write(port + "phys_state", "5: LinkUp\n");
    tree_.Write(port + "rate", "400 Gb/sec (4X NDR)\n");
    tree_.Write(port + "counters/symbol_error", "2\n");
    tree_.Write(port + "counters/link_downed", "0\n");
    tree_.Write(port + "hw_counters/local_ack_timeout_err", "4\n");
    tree_.Link("sys/class/net/" + interface + "/device", "../../../devices/pci0/" + pci);
    tree_.Write("sys/class/net/" + interface + "/carrier", "1\n");
    tree_.Write("sys/class/net/" + interface + "/operstate", "up\n");
    tree_.Write("sys/class/net/" + interface + "/statistics/rx_errors", "0\n");
    tree_.Write("sys/class/net/" + interface + "/statistics/tx_dropped", "0\n");
  }

  void AddProcess() {
    AddThread(kPid, 'S', "futex_wait_queue");
    tree_.Write(Proc() + "cgroup", "0::/job_7\n");
    tree_.Write(Proc() + "mountinfo",
                "22 1 259:1 / / rw,relatime shared:1 - ext4 /dev/nvme0n1p1 rw\n"
                "23 22 0:21 / /proc rw - proc proc rw\n"
                "40 22 0:52 / /mnt/data\\0401 rw,relatime - nfs4 fs1:/export rw\n"
                "41 22 0:52 /sub /mnt/again rw,relatime - nfs4 fs1:/export rw\n");
    tree_.Write(Group() + "cgroup.events", "populated 1\nfrozen 0\n");
    tree_.Write(Group() + "cpu.stat", "usage_usec 100\nnr_throttled 0\nthrottled_usec 0\n");
    tree_.Write(Group() + "memory.events", "low 0\nhigh 0\nmax 0\noom 0\noom_kill 0\n");
  }

  const TemporaryTree tree_;
};

}  // namespace rollcall
