// SPDX-License-Identifier: Apache-2.0
// Measures the nanoseconds that the library adds to a call, by kind of call: a direct
// call and the full record, in turn, in one run. For the first kind it also measures
// a wrapper that only calls the real function.
//
//   build/release/bench/call_overhead [ROUNDS]
//
// Each round starts a process for each variant, pinned to one core (with four threads:
// not pinned). The process times 200,000 calls one by one with the CPU's counter, and
// subtracts the cost of timing itself. The program prints medians over the rounds. The
// driver writes a marker by a plain store, so the figures show Rollcall's own cost.
#include <cuda_runtime_api.h>
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
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "tests/bench/gloo_calls.h"
#include "tests/bench/network_events.h"
#include "tests/bench/ucc_calls.h"

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

struct Scenario {
  const char* name;
  int communicators, threads;  // without a communicator a process has no segment
  bool markers;
  int (*call)(ncclComm_t comm);
  void (*prepare)() = nullptr;  // the group of another library, which a stub plays
};

int AllReduce(ncclComm_t comm) {
  return ncclAllReduce(nullptr, nullptr, 1024, ncclFloat, ncclSum, comm, nullptr);
}

int Group(ncclComm_t comm) {
  int result = ncclGroupStart();
  for (int i = 0; i < 8; ++i) result |= AllReduce(comm);
  return result | ncclGroupEnd();
}

const Scenario kScenarios[] = {
    {"AllReduce", 1, 1, false, AllReduce},
    {"AllReduce, 512 communicators in turn", 512, 1, false, AllReduce},
    {"AllReduce, 4 threads", 1, 4, false, AllReduce},
    {"AllReduce, markers", 1, 1, true, AllReduce},
    {"Send", 1, 1, false,
     [](ncclComm_t comm) -> int { return ncclSend(nullptr, 1024, ncclFloat, 1, comm, nullptr); }},
    {"group of 8 AllReduce", 1, 1, false, Group},
    {"cudaStreamSynchronize", 1, 1, false,
     [](ncclComm_t) -> int { return cudaStreamSynchronize(nullptr); }},
    {"gloo all_reduce and the end of its work", 1, 1, false, GlooAllReduce, MakeGlooGroup},
    {"gloo send and its wait", 1, 1, false, GlooSend, MakeGlooGroup},
    {"wait for a key of a store", 1, 1, false, WaitForKey, MakeGlooGroup},
    {"UCC allreduce: init, post, progress, end", 1, 1, false, UccAllReduce, MakeUccTeam},
    {"5 events of a step over the network", 1, 1, false, NetworkStep},
    {"wait for a key, without a segment", 0, 1, false, WaitForKey},
};

std::vector<ncclComm_t> MakeCommunicators(int count) {
  std::vector<ncclComm_t> comms(static_cast<size_t>(count));
  for (ncclComm_t& comm : comms) {
    ncclUniqueId id = {};
    ncclGetUniqueId(&id);
    ncclCommInitRank(&comm, 2, id, 0);
    AllReduce(comm);
  }
  return comms;
}

Figures MeasureThread(const Scenario& scenario) {
  std::vector<ncclComm_t> comms = MakeCommunicators(scenario.communicators);
  if (comms.empty()) comms.push_back(nullptr);
  if (scenario.prepare != nullptr) scenario.prepare();
  size_t turn = 0;
  const auto call = [&] {
    scenario.call(comms[turn]);
    if (++turn == comms.size()) turn = 0;
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
  return {at(0.5), at(0.99), at(0.999), static_cast<double>(Counter() - begin) * ns / kCalls};
}

// With several threads, the figures of the first one.
void Measure(const Scenario& scenario) {
  if (scenario.threads == 1) {
    cpu_set_t cpus;
    CPU_ZERO(&cpus);
    CPU_SET(sched_getcpu(), &cpus);
    sched_setaffinity(0, sizeof(cpus), &cpus);
  }
  std::vector<Figures> figures(static_cast<size_t>(scenario.threads));
  std::vector<std::thread> threads;
  for (Figures& one : figures) {
    threads.emplace_back([&scenario, &one] { one = MeasureThread(scenario); });
  }
  for (std::thread& thread : threads) thread.join();
  printf("%f %f %f %f\n", figures[0].p50, figures[0].p99, figures[0].p999, figures[0].mean);
}

Figures RunVariant(const char* self, size_t scenario, const char* preload) {
  setenv("ROLLCALL_MARKERS", kScenarios[scenario].markers ? "1" : "0", 1);
  const std::string command =
      (preload[0] == '\0' ? std::string() : "LD_PRELOAD=" + std::string(preload) + " ") + self +
      " --measure " + std::to_string(scenario);
  Figures figures;
  FILE* out = popen(command.c_str(), "r");
  if (out == nullptr || fscanf(out, "%lf %lf %lf %lf", &figures.p50, &figures.p99, &figures.p999,
                               &figures.mean) != 4) {
    fprintf(stderr, "call_overhead: %s did not run\n", command.c_str());
    exit(1);
  }
  pclose(out);
  for (const auto& segment : std::filesystem::directory_iterator(getenv("ROLLCALL_DIR"))) {
    std::filesystem::remove(segment);
  }
  return figures;
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

Figures Median(const std::vector<Figures>& all) {
  const auto median = [&all](double Figures::* field) {
    std::vector<double> values;
    for (const Figures& figures : all) values.push_back(figures.*field);
    return Median(values);
  };
  return {median(&Figures::p50), median(&Figures::p99), median(&Figures::p999),
          median(&Figures::mean)};
}

void Print(const char* name, const char* variant, const Figures& figures) {
  printf("%-40s %-12s %7.1f %7.1f %7.1f %13.1f\n", name, variant, figures.p50, figures.p99,
         figures.p999, figures.mean);
}

void Compare(const char* self, size_t scenario, int rounds) {
  const char* const variants[] = {"direct", "full record", "forward only"};
  const char* const preloads[] = {"", ROLLCALL_LIBRARY, FORWARD_LIBRARY};
  const int compared = scenario == 0 ? 3 : 2;
  std::vector<Figures> all[3];
  for (int round = 0; round < rounds; ++round) {
    for (int v = 0; v < compared; ++v) {
      all[v].push_back(RunVariant(self, scenario, preloads[v]));
    }
  }
  const Figures direct = Median(all[0]), full = Median(all[1]);
  for (int v = 0; v < compared; ++v) Print(kScenarios[scenario].name, variants[v], Median(all[v]));
  Print("", "added",
        {full.p50 - direct.p50, full.p99 - direct.p99, full.p999 - direct.p999,
         full.mean - direct.mean});
}

}  // namespace

int main(int argc, char** argv) {
  constexpr size_t kCount = sizeof(kScenarios) / sizeof(kScenarios[0]);
  if (argc > 2 && strcmp(argv[1], "--measure") == 0) {
    Measure(kScenarios[std::min<size_t>(strtoul(argv[2], nullptr, 10), kCount - 1)]);
    return 0;
  }
  const int rounds = argc > 1 ? std::max(1, atoi(argv[1])) : 7;
  char segments[] = "/dev/shm/rollcall-bench-XXXXXX";
  if (mkdtemp(segments) == nullptr) {
    perror(segments);
    return 1;
  }
  setenv("ROLLCALL_DIR", segments, 1);
  printf("ns per call, median of %d rounds of %d calls\n", rounds, kCalls);
  printf("%-40s %-12s %7s %7s %7s %13s\n", "", "", "p50", "p99", "p99.9", "back to back");
  for (size_t scenario = 0; scenario < kCount; ++scenario) Compare(argv[0], scenario, rounds);
  std::filesystem::remove_all(segments);
  return 0;
}
