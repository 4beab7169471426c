// SPDX-License-Identifier: Apache-2.0
#include "agent/host_facts/device_names.h"

#include "absl/strings/str_cat.h"

namespace rollcall {

std::vector<std::string> PhysicalInterfaces(const HostFiles& files) {
  std::vector<std::string> physical;
  for (const std::string& name : files.List(kNetFolder)) {
    if (!files.LinkName(absl::StrCat(kNetFolder, "/", name, "/device")).empty()) {
      physical.push_back(name);
    }
  }
  return physical;
}

DeviceNames::DeviceNames(const HostFiles& files) {
  std::map<std::string, std::string> by_pci;
  for (const std::string& device : files.List(kInfinibandFolder)) {
    infiniband_[device] = device;
    const std::string pci = files.LinkName(absl::StrCat(kInfinibandFolder, "/", device, "/device"));
    if (pci.empty()) continue;
    infiniband_[pci] = device;
    by_pci[pci] = device;
  }
  for (const std::string& name : PhysicalInterfaces(files)) {
    const std::string pci = files.LinkName(absl::StrCat(kNetFolder, "/", name, "/device"));
    const auto card = by_pci.find(pci);
    if (card != by_pci.end()) infiniband_[name] = card->second;
    interfaces_[name] = name;
    interfaces_[pci] = name;
  }
}

std::string DeviceNames::Find(const std::string& name, int port) const {
  const auto device = infiniband_.find(name);
  if (device != infiniband_.end()) return absl::StrCat(device->second, " port ", port);
  const auto interface = interfaces_.find(name);
  return interface == interfaces_.end() ? "" : interface->second;
}

}  // namespace rollcall
