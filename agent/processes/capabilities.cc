// SPDX-License-Identifier: Apache-2.0
#include "agent/processes/capabilities.h"

#include <linux/capability.h>

#include <cstdint>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "agent/processes/proc_files.h"

namespace rollcall {

bool MaySeeAllProcesses() {
  const std::string status = ReadProcFile("/proc/self/status").value_or("");
  uint64_t effective = 0;
  for (absl::string_view line : absl::StrSplit(status, '\n')) {
    if (absl::ConsumePrefix(&line, "CapEff:\t")) {
      static_cast<void>(absl::SimpleHexAtoi(line, &effective));
    }
  }
  const auto has = [effective](int capability) { return (effective >> capability & 1) != 0; };
  return has(CAP_SYS_PTRACE) && (has(CAP_DAC_READ_SEARCH) || has(CAP_DAC_OVERRIDE));
}

}  // namespace rollcall
