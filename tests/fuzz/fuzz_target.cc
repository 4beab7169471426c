// SPDX-License-Identifier: Apache-2.0
#include "fuzz_target.h"

#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <utility>

namespace rollcall {
namespace fuzz {
namespace {

constexpr int64_t kMostNs = 1'000'000'000;
constexpr int64_t kCpuTimeAgeNs = 100'000'000;

std::vector<Target>& AllTargets() {
  static auto& targets = *new std::vector<Target>();
  return targets;
}

int64_t NowNs(clockid_t clock) {
  timespec time = {};
  clock_gettime(clock, &time);
  return time.tv_sec * 1'000'000'000 + time.tv_nsec;
}

}  // namespace

const std::vector<Target>& Targets() { return AllTargets(); }

Registered::Registered(Target target) {
  std::vector<Target>& all = AllTargets();
  all.push_back(std::move(target));
  std::sort(all.begin(), all.end(),
            [](const Target& a, const Target& b) { return a.name < b.name; });
}

void Promise(bool kept, const char* text) {
  if (kept) return;
  std::fprintf(stderr, "broken promise: %s\n", text);
  std::abort();
}

// A thread's CPU time costs a system call, which takes longer than many inputs. So it is read ten
// times a second, and for an input that took long by the clock, which shows at least the CPU time.
void RunChecked(const Target& target, const uint8_t* data, size_t size) {
  static thread_local int64_t read_at_ns = 0, cpu_ns = 0;
  const int64_t before_ns = NowNs(CLOCK_MONOTONIC_COARSE);
  if (before_ns - read_at_ns > kCpuTimeAgeNs) {
    read_at_ns = before_ns;
    cpu_ns = NowNs(CLOCK_THREAD_CPUTIME_ID);
  }
  target.run(Input(data, size));
  if (NowNs(CLOCK_MONOTONIC_COARSE) - before_ns < kMostNs) return;
  Promise(NowNs(CLOCK_THREAD_CPUTIME_ID) - cpu_ns < kMostNs + kCpuTimeAgeNs,
          "an input takes less than a second");
}

}  // namespace fuzz
}  // namespace rollcall
