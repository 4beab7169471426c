// SPDX-License-Identifier: Apache-2.0
// Measures what it costs to learn a rank's period from its past, beside one pass over the same
// calls. The past is made from the records of calls that the daemon has anyway, when a verdict asks
// for it: a healthy job pays nothing, and no rank takes memory for it. Prints medians.
//
//   past_cost [ROUNDS]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "daemon/model/habit.h"

namespace rollcall {
namespace {

constexpr size_t kCalls = 1024;                         // the longest past that a rule looks at
constexpr size_t kPeriods[] = {1, 3, 37, 300, kCalls};  // the last: no period at all
constexpr size_t kHorizon = 128;

std::vector<CallToken> MakePast(size_t period) {
  std::vector<CallToken> calls;
  for (size_t i = 0; i < kCalls; ++i) calls.push_back(0x9e3779b97f4a7c15u * (i % period + 1));
  return calls;
}

template <typename Function>
double MedianNs(int rounds, Function function) {
  std::vector<double> times;
  for (int i = 0; i < rounds; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    function();
    times.push_back(
        std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - begin).count());
  }
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

void Measure(size_t period, int rounds) {
  const std::vector<CallToken> calls = MakePast(period);
  volatile CallToken sum = 0;
  const double pass = MedianNs(rounds, [&] {
    CallToken local = 0;
    for (const CallToken call : calls) local ^= call;
    sum = local;
  });
  volatile size_t found = 0;
  const double judge = MedianNs(rounds, [&] { found = JudgeCall(calls, kCalls - 1).habit.period; });
  const double slip = MedianNs(
      rounds, [&] { found = FindSlip(calls, kHorizon, [](size_t) { return true; }).habit.period; });
  std::printf("%8zu %14.1f %16.1f %14.2f %18.2f\n", period, pass / kCalls, judge / kCalls,
              judge / 1e3, slip / 1e6);
}

}  // namespace
}  // namespace rollcall

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::max(1, std::atoi(argv[1])) : 101;
  std::printf("a past of %zu calls\n", rollcall::kCalls);
  std::printf("  period  one pass, ns  one judged, ns  one judged  newest %zu judged\n",
              rollcall::kHorizon);
  std::printf("                a call          a call          us                 ms\n");
  for (const size_t period : rollcall::kPeriods) rollcall::Measure(period, rounds);
}
