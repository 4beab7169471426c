// What the library adds to one NCCL call, in nanoseconds: a direct call, a
// wrapper that only calls on, and the full record, in turn, in one run.
//
//   build/release/bench/call_overhead [ROUNDS]
//
// Each round starts a process per variant, pinned to one core; 200,000 calls
// are timed one by one with the CPU's counter, and the cost of timing itself is
// taken off. Printed is the median over the rounds.
#include <nccl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace {

constexpr int kCalls = 200000;

#if defined(__x86_64__)
uint64_t Counter() {
  __builtin_ia32_lfence();
  const uint64_t ticks = __builtin_ia32_rdtsc();
  __builtin_ia32_lfence();
  return ticks;
}
#else
uint64_t Counter() {
  uint64_t ticks;
  __asm__ volatile("isb; mrs %0, cntvct_el0" : "=r"(ticks));
  return ticks;
}
#endif

double NsPerTick() {
  timespec a, b;
  clock_gettime(CLOCK_MONOTONIC, &a);
  const uint64_t begin = Counter();
  do {
    clock_gettime(CLOCK_MONOTONIC, &b);
  } while ((b.tv_sec - a.tv_sec) * 1000000000L + b.tv_nsec - a.tv_nsec < 50000000L);
  const double ns =
      static_cast<double>((b.tv_sec - a.tv_sec) * 1000000000L + b.tv_nsec - a.tv_nsec);
  return ns / static_cast<double>(Counter() - begin);
}

struct Figures {
  double p50 = 0, p99 = 0, p999 = 0, mean = 0;
};

template <typename Call>
std::vector<uint64_t> Time(Call call) {
  std::vector<uint64_t> ticks(kCalls);
  for (uint64_t& t : ticks) {
    const uint64_t begin = Counter();
    call();
    t = Counter() - begin;
  }
  std::sort(ticks.begin(), ticks.end());
  return ticks;
}

void Measure() {
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  CPU_SET(sched_getcpu(), &cpus);
  sched_setaffinity(0, sizeof(cpus), &cpus);
  ncclUniqueId id = {};
  ncclComm_t comm = nullptr;
  ncclGetUniqueId(&id);
  ncclCommInitRank(&comm, 2, id, 0);
  const auto call = [comm] {
    ncclAllReduce(nullptr, nullptr, 1024, ncclFloat, ncclSum, comm, nullptr);
  };
  for (int i = 0; i < 20000; ++i) call();
  const double ns = NsPerTick();
  const double timing = static_cast<double>(Time([] {})[kCalls / 2]);
  const std::vector<uint64_t> ticks = Time(call);
  const auto at = [&](double q) {
    return std::max(0.0,
                    (static_cast<double>(ticks[static_cast<size_t>(q * kCalls)]) - timing) * ns);
  };
  const uint64_t begin = Counter();
  for (int i = 0; i < kCalls; ++i) call();
  const double mean = static_cast<double>(Counter() - begin) * ns / kCalls;
  printf("%f %f %f %f\n", at(0.5), at(0.99), at(0.999), mean);
}

Figures RunVariant(const char* self, const char* preload) {
  setenv("ROLLCALL_MARKERS", "0", 1);
  const std::string command =
      (preload[0] == '\0' ? std::string() : "LD_PRELOAD=" + std::string(preload) + " ") + self +
      " --measure";
  Figures figures;
  FILE* out = popen(command.c_str(), "r");
  if (out == nullptr || fscanf(out, "%lf %lf %lf %lf", &figures.p50, &figures.p99, &figures.p999,
                               &figures.mean) != 4) {
    fprintf(stderr, "call_overhead: %s did not run\n", command.c_str());
    exit(1);
  }
  pclose(out);
  return figures;
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && strcmp(argv[1], "--measure") == 0) {
    Measure();
    return 0;
  }
  const int rounds = argc > 1 ? std::max(1, atoi(argv[1])) : 7;
  const char* const names[] = {"direct", "forward only", "full record"};
  const char* const preloads[] = {"", FORWARD_LIBRARY, ROLLCALL_LIBRARY};
  std::vector<Figures> all[3];
  for (int round = 0; round < rounds; ++round) {
    for (int v = 0; v < 3; ++v) all[v].push_back(RunVariant(argv[0], preloads[v]));
  }
  Figures medians[3];
  printf("ns per call, median of %d rounds of %d calls\n", rounds, kCalls);
  printf("%-14s %8s %8s %8s %12s\n", "", "p50", "p99", "p99.9", "back to back");
  for (int v = 0; v < 3; ++v) {
    const auto median = [&](double Figures::*field) {
      std::vector<double> values;
      for (const Figures& figures : all[v]) values.push_back(figures.*field);
      return Median(values);
    };
    medians[v] = {median(&Figures::p50), median(&Figures::p99), median(&Figures::p999),
                  median(&Figures::mean)};
    printf("%-14s %8.1f %8.1f %8.1f %12.1f\n", names[v], medians[v].p50, medians[v].p99,
           medians[v].p999, medians[v].mean);
  }
  printf("full - direct  %8.1f %8.1f\n", medians[2].p50 - medians[0].p50,
         medians[2].p99 - medians[0].p99);
  return 0;
}
