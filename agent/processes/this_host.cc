// SPDX-License-Identifier: Apache-2.0
#include "agent/processes/this_host.h"

#include <unistd.h>

#include "absl/strings/ascii.h"
#include "base/read_file.h"

namespace rollcall {

std::string HostName() {
  char name[256] = "";
  gethostname(name, sizeof(name) - 1);
  return name;
}

const std::string& OwnBootId() {
  static const std::string own(
      absl::StripAsciiWhitespace(ReadFile("/proc/sys/kernel/random/boot_id").value_or("")));
  return own;
}

}  // namespace rollcall
