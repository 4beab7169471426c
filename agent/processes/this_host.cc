// SPDX-License-Identifier: Apache-2.0
#include "agent/processes/this_host.h"

#include <unistd.h>

#include <fstream>

namespace rollcall {

std::string HostName() {
  char name[256] = "";
  gethostname(name, sizeof(name) - 1);
  return name;
}

const std::string& OwnBootId() {
  static const std::string own = [] {
    std::ifstream file("/proc/sys/kernel/random/boot_id");
    std::string id;
    std::getline(file, id);
    return id;
  }();
  return own;
}

}  // namespace rollcall
