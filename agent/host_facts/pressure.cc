// SPDX-License-Identifier: Apache-2.0
// What the host lacks: pressure (Documentation/accounting/psi.rst), swapping, memory.
#include <optional>
#include <string>
#include <vector>

#include "agent/host_facts/probes.h"

namespace rollcall {
namespace {

struct Pressure {
  HostFactKind kind;
  const char* file;
  const char* word;
};

constexpr Pressure kPressures[] = {
    {HostFactKind::kMemoryPressure, "/proc/pressure/memory", "full avg10="},
    {HostFactKind::kIoPressure, "/proc/pressure/io", "full avg10="},
    {HostFactKind::kCpuPressure, "/proc/pressure/cpu", "some avg10="},
};

int64_t SwappedPages(const HostFiles& files) {
  return files.Number("/proc/vmstat", "pswpin ").value_or(0) +
         files.Number("/proc/vmstat", "pswpout ").value_or(0);
}

}  // namespace

ProbeResult ProbePressure(const ProbeInput& input) {
  ProbeResult result;
  const HostFiles& files = input.files;
  const auto total = files.Number("/proc/meminfo", "MemTotal:");
  const auto available = files.Number("/proc/meminfo", "MemAvailable:");
  if (!total.has_value()) {
    result.outcome = ProbeOutcome::kAbsent;
    result.note = "no /proc/meminfo";
    return result;
  }
  const int64_t swapped = SwappedPages(files);
  input.pause(input.interval_ns);
  const auto add = [&result](HostFactKind kind, int64_t value) {
    result.facts.push_back({kind, "", value, "", 0, 0});
  };
  if (SwappedPages(files) > swapped) add(HostFactKind::kSwapping, SwappedPages(files) - swapped);
  for (const Pressure& pressure : kPressures) {
    const auto percent = files.Number(pressure.file, pressure.word);
    if (percent.value_or(0) > 0) add(pressure.kind, *percent);
  }
  if (*total > 0 && available.has_value()) {
    add(HostFactKind::kMemoryLow, *available * 100 / *total);
  }
  return result;
}

}  // namespace rollcall
