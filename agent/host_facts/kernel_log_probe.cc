// SPDX-License-Identifier: Apache-2.0
// Reads the kernel's log, where the agent may.
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "absl/strings/str_cat.h"
#include "agent/host_facts/kernel_log.h"
#include "agent/host_facts/probes.h"
#include "base/monotonic_clock.h"
#include "base/unique_fd.h"

namespace rollcall {
namespace {

constexpr char kLog[] = "/dev/kmsg";
constexpr size_t kMostLogBytes = 16 << 20;
constexpr size_t kLongestRecord = 8192;  // as the kernel makes them

// Returns the whole log. Each read() of the device gives one record; a file gives as much as fits.
std::string ReadAll(int log) {
  std::string text;
  char buffer[kLongestRecord];
  while (text.size() < kMostLogBytes) {
    const ssize_t size = read(log, buffer, sizeof(buffer));
    if (size > 0) {
      text.append(buffer, static_cast<size_t>(size));
    } else if (size == 0 || (errno != EPIPE && errno != EINTR && errno != EINVAL)) {
      break;  // EPIPE: the kernel has overwritten the record; the next one is there
    }
  }
  return text;
}

// The log has the time of the scheduler's clock. CLOCK_MONOTONIC_RAW goes at the same rate, while
// CLOCK_MONOTONIC follows the network's time, which differs by minutes after months.
int64_t LogTimeUs() { return ReadClockNs(CLOCK_MONOTONIC_RAW) / 1000; }

}  // namespace

ProbeResult ProbeKernelLog(const ProbeInput& input) {
  ProbeResult result;
  const UniqueFd log(open(input.files.Path(kLog).c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (!log.valid()) {
    result.outcome = errno == ENOENT ? ProbeOutcome::kAbsent : ProbeOutcome::kDenied;
    result.note = absl::StrCat("cannot read ", kLog,
                               ": give the agent the capability CAP_SYSLOG, or set "
                               "kernel.dmesg_restrict=0");
    return result;
  }
  const std::string text = ReadAll(log.get());
  result.facts =
      FactsOfKernelLog(ParseKernelLog(text, LogTimeUs()), DeviceNames(input.files), input.pids);
  return result;
}

}  // namespace rollcall
