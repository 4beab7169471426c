// SPDX-License-Identifier: Apache-2.0
// Takes a process's stacks repeatedly within one process, as the agent does, and prints the cost of
// one time as lines of "name value unit" for measure.py.
//
//   stacks_probe PID outside|inside ROUNDS
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "agent/stacks/ptrace_stack_taker.h"
#include "agent/stacks/signal_stack_taker.h"
#include "agent/stacks/stack_reader.h"
#include "base/monotonic_clock.h"

namespace {

double Percentile(std::vector<double> values, double share) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[static_cast<size_t>(share * static_cast<double>(values.size() - 1))];
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  const pid_t pid = std::atoi(argv[1]);
  const bool inside = std::strcmp(argv[2], "inside") == 0;
  std::unique_ptr<rollcall::StackTaker> taker;
  if (inside) {
    taker = std::make_unique<rollcall::SignalStackTaker>();
  } else {
    taker = std::make_unique<rollcall::PtraceStackTaker>();
  }
  rollcall::StackReader reader;
  std::vector<double> copies, takes, dumps, stops;
  double cold = 0;
  for (int i = 0; i < std::atoi(argv[3]); ++i) {
    const int64_t start = rollcall::MonotonicNs();
    const rollcall::RawSample sample = taker->Take(pid, rollcall::TakeLimits());
    const int64_t copied = rollcall::MonotonicNs();
    reader.Unwind(sample, rollcall::TakeLimits());
    const double whole = static_cast<double>(rollcall::MonotonicNs() - start) / 1e6;
    if (!sample.error.empty()) {
      std::fprintf(stderr, "stacks_probe: %s\n", sample.error.c_str());
      return 1;
    }
    if (i == 0) {
      cold = whole;
    } else {
      copies.push_back(static_cast<double>(sample.copying_ns) / 1e6);
      takes.push_back(static_cast<double>(copied - start) / 1e6);
      dumps.push_back(whole);
    }
    for (const rollcall::RawThread& thread : sample.threads) {
      if (thread.how == rollcall::HowTaken::kInterrupted) {
        stops.push_back(static_cast<double>(thread.stopped_ns) / 1e6);
      }
    }
  }
  std::printf("copy all threads, median: %.2f ms\n", Percentile(copies, 0.5));
  std::printf("the same and what /proc says of them: %.2f ms\n", Percentile(takes, 0.5));
  std::printf("complete dump, cold: %.1f ms\n", cold);
  std::printf("complete dump, warm, median: %.1f ms\n", Percentile(dumps, 0.5));
  if (inside) return 0;
  std::printf("one thread stopped, median: %.3f ms\n", Percentile(stops, 0.5));
  std::printf("one thread stopped, p99: %.3f ms\n", Percentile(stops, 0.99));
}
