// SPDX-License-Identifier: Apache-2.0
// The network devices of a host under all their names: an InfiniBand device, its PCI address and
// its network interfaces are one card, and the kernel's log uses any of the names.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "agent/host_facts/host_files.h"

namespace rollcall {

inline constexpr char kInfinibandFolder[] = "/sys/class/infiniband";
inline constexpr char kNetFolder[] = "/sys/class/net";

// Returns interfaces with hardware behind them, without bridges, tunnels and virtual pairs.
std::vector<std::string> PhysicalInterfaces(const HostFiles& files);

class DeviceNames {
 public:
  explicit DeviceNames(const HostFiles& files);

  // "mlx5_2 port 1" for "mlx5_2", its PCI address or its interface; an interface that belongs to no
  // InfiniBand device by its own name; empty if there is no such device.
  std::string Find(const std::string& name, int port) const;

 private:
  std::map<std::string, std::string> infiniband_;  // by each name
  std::map<std::string, std::string> interfaces_;  // by interface and PCI address
};

}  // namespace rollcall
