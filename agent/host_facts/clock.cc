// SPDX-License-Identifier: Apache-2.0
// Whether the clock follows a time server, and how fast the CPUs run.
#include <sys/timex.h>

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "agent/host_facts/probes.h"

namespace rollcall {
namespace {

constexpr char kCpus[] = "/sys/devices/system/cpu";

bool IsCpu(const std::string& name) {
  return name.size() > 3 && name.rfind("cpu", 0) == 0 &&
         std::all_of(name.begin() + 3, name.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// Times that a package of the host was too hot. All CPUs of a package show the same number.
int64_t TimesTooHot(const HostFiles& files, const std::vector<std::string>& cpus) {
  int64_t most = 0;
  for (const std::string& cpu : cpus) {
    const std::string folder = absl::StrCat(kCpus, "/", cpu, "/thermal_throttle/");
    for (const char* file : {"package_throttle_count", "core_throttle_count"}) {
      most = std::max(most, files.Number(folder + file).value_or(0));
    }
  }
  return most;
}

// Returns the fastest of the CPUs, in percent of the highest frequency: idle ones are slow.
int64_t PercentOfFastest(const HostFiles& files, const std::vector<std::string>& cpus) {
  int64_t fastest = 0;
  for (const std::string& cpu : cpus) {
    const std::string folder = absl::StrCat(kCpus, "/", cpu, "/cpufreq/");
    const int64_t highest = files.Number(folder + "cpuinfo_max_freq").value_or(0);
    const int64_t now = files.Number(folder + "scaling_cur_freq").value_or(0);
    if (highest > 0) fastest = std::max(fastest, now * 100 / highest);
  }
  return fastest;
}

void AddClock(std::vector<Fact>* facts) {
  timex state = {};
  const int result = adjtimex(&state);
  if (result < 0 || (result != TIME_ERROR && (state.status & STA_UNSYNC) == 0)) return;
  facts->push_back({HostFactKind::kClockUnsynchronized, "", state.maxerror / 1000,
                    absl::StrCat("it may be wrong by ", state.maxerror / 1000, " ms"), 0, 0});
}

}  // namespace

ProbeResult ProbeClock(const ProbeInput& input) {
  ProbeResult result;
  std::vector<std::string> cpus = input.files.List(kCpus);
  cpus.erase(
      std::remove_if(cpus.begin(), cpus.end(), [](const std::string& n) { return !IsCpu(n); }),
      cpus.end());
  AddClock(&result.facts);
  const int64_t hot = TimesTooHot(input.files, cpus);
  input.pause(input.interval_ns);
  const int64_t grown = TimesTooHot(input.files, cpus) - hot;
  if (grown > 0) result.facts.push_back({HostFactKind::kCpuThrottled, "", grown, "", 0, 0});
  const int64_t percent = PercentOfFastest(input.files, cpus);
  if (percent > 0) result.facts.push_back({HostFactKind::kCpuSpeed, "", percent, "", 0, 0});
  return result;
}

}  // namespace rollcall
