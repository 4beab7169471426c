// SPDX-License-Identifier: Apache-2.0
#include "agent/processes/capabilities.h"

#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "agent/processes/proc_files.h"

namespace rollcall {
namespace {

constexpr uint64_t Bit(int capability) { return uint64_t{1} << capability; }

constexpr int kCheckpointRestore = 40;  // younger than the headers of some systems

uint64_t WorthKeeping(uint64_t permitted) {
  uint64_t wanted =
      Bit(CAP_SYS_PTRACE) | Bit(CAP_DAC_READ_SEARCH) | Bit(CAP_SYSLOG) | Bit(kCheckpointRestore);
  if ((permitted & Bit(CAP_DAC_READ_SEARCH)) == 0) wanted |= Bit(CAP_DAC_OVERRIDE);
  return permitted & wanted;
}

}  // namespace

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

absl::Status KeepOnlyReadingCapabilities() {
  __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3] = {};
  if (syscall(SYS_capget, &header, sets) != 0) {
    return absl::InternalError(absl::StrCat("cannot read own capabilities: ", strerror(errno)));
  }
  const uint64_t permitted = uint64_t{sets[1].permitted} << 32 | sets[0].permitted;
  const uint64_t kept = WorthKeeping(permitted);
  // A program that root starts has what this set has. Without CAP_SETPCAP nothing can be dropped
  // here.
  for (int capability = 0; capability < 64; ++capability) {
    if ((kept & Bit(capability)) == 0) prctl(PR_CAPBSET_DROP, capability, 0, 0, 0);
  }
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  bool has_others = false;
  for (int half = 0; half < 2; ++half) {
    const auto bits = static_cast<uint32_t>(kept >> (32 * half));
    has_others |= ((sets[half].permitted | sets[half].inheritable) & ~bits) != 0;
    sets[half] = {bits, bits, sets[half].inheritable & bits};
  }
  // The packages' service has no others, and may not make this call.
  if (has_others && syscall(SYS_capset, &header, sets) != 0) {
    return absl::InternalError(absl::StrCat("cannot give up capabilities: ", strerror(errno)));
  }
  return absl::OkStatus();
}

}  // namespace rollcall
