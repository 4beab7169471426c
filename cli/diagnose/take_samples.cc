// SPDX-License-Identifier: Apache-2.0
#include "cli/diagnose/take_samples.h"

#include <time.h>

#include <algorithm>
#include <atomic>
#include <optional>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "agent/link/stack_service.h"
#include "agent/processes/this_host.h"
#include "base/durations.h"
#include "base/steady_clock.h"
#include "base/threads.h"
#include "cli/diagnose/sample_times.h"

namespace rollcall {
namespace {

constexpr int64_t kWakeEveryNs = kSecond / 20;

void SleepNs(int64_t ns) {
  const timespec pause = {static_cast<time_t>(ns / kSecond), static_cast<long>(ns % kSecond)};
  nanosleep(&pause, nullptr);
}

using Samples = std::vector<v1::StackSample>;

// Each worker has a service of its own and every nth process, so that all samples of a process are
// taken alike.
class Sampler {
 public:
  Sampler(const std::vector<ProcessId>& processes, const SampleOptions& options)
      : processes_(processes),
        options_(options),
        begun_ns_(SteadyNs()),
        samples_(processes.size()),
        workers_(std::min(options.at_once, processes.size())) {}

  std::vector<Samples> Run() {
    std::vector<std::thread> running;
    MakeServices();
    for (size_t worker = 0; worker < workers_; ++worker) {
      std::optional<std::thread> thread = TryThread([this, worker] { Work(worker); });
      if (thread.has_value()) {
        running.push_back(*std::move(thread));
      } else {
        Work(worker);
      }
    }
    while (done_ < workers_ && SteadyNs() < options_.until_ns) {
      TellRest();
      SleepNs(kWakeEveryNs);
    }
    // Ends what still waits for a process; its thread may be stuck in the kernel, and stays behind.
    for (const auto& service : services_) service->Cancel();
    for (std::thread& worker : running) worker.join();
    return std::move(samples_);
  }

 private:
  void MakeServices() {
    StackServiceOptions options;
    options.proc_root = options_.proc_root;
    options.max_per_minute = 0;
    options.redactor = options_.redactor;
    options.namer = std::make_shared<StackNamer>(options_.proc_root);
    options.effects = std::make_shared<SampleEffects>();
    std::vector<pid_t> pids;
    for (const ProcessId& process : processes_) pids.push_back(process.pid);
    options.neighbours = [pids] { return pids; };
    for (size_t worker = 0; worker < workers_; ++worker) {
      services_.push_back(std::make_unique<StackService>(options, [](ProcessId) { return true; }));
    }
  }

  void Work(size_t worker) {
    const SamplePlan plan = {options_.apart_ns, options_.until_ns,
                             static_cast<int64_t>(options_.times - 1)};
    std::vector<size_t> own;
    for (size_t i = worker; i < processes_.size(); i += workers_) own.push_back(i);
    int64_t round_ns = 0;
    for (const size_t i : own) {
      if (SteadyNs() < options_.until_ns) round_ns += Sample(worker, i);
    }
    for (int64_t step = 1; step <= plan.steps; ++step) {
      const int64_t one_ns = round_ns / static_cast<int64_t>(own.size());
      round_ns = 0;
      for (size_t k = 0; k < own.size(); ++k) {
        if (samples_[own[k]].empty()) continue;
        const auto due_ns = SampleDueNs(plan, samples_[own[k]].front().taken_ns(), step,
                                        one_ns * static_cast<int64_t>(own.size() - k), SteadyNs());
        if (due_ns && SleepUntil(*due_ns)) round_ns += Sample(worker, own[k]);
      }
      if (round_ns == 0) round_ns = one_ns * static_cast<int64_t>(own.size());
    }
    ++done_;
  }

  // False if the time for all of them is over.
  bool SleepUntil(int64_t due_ns) const {
    if (due_ns >= options_.until_ns) return false;
    for (int64_t now_ns = SteadyNs(); now_ns < due_ns; now_ns = SteadyNs()) {
      SleepNs(std::min(due_ns - now_ns, kWakeEveryNs));
    }
    return SteadyNs() < options_.until_ns;
  }

  // Returns how long it took.
  int64_t Sample(size_t worker, size_t i) {
    v1::StackSample sample;
    sample.set_taken_ns(SteadyNs());
    *sample.mutable_stack() = services_[worker]->Take(processes_[i], true);
    sample.mutable_stack()->set_host(HostName());
    samples_[i].push_back(std::move(sample));
    return SteadyNs() - samples_[i].back().taken_ns();
  }

  void TellRest() {
    const int64_t left_ns = begun_ns_ + options_.apart_ns - SteadyNs();
    const int64_t seconds = std::max<int64_t>((left_ns + kSecond - 1) / kSecond, 0);
    if (seconds == told_ || !options_.tell) return;
    told_ = seconds;
    options_.tell(seconds > 0 ? absl::StrCat("looking whether they move: ", seconds, " s")
                              : "last look");
  }

  const std::vector<ProcessId>& processes_;
  const SampleOptions& options_;
  const int64_t begun_ns_;
  std::vector<Samples> samples_;  // each element is one worker's
  const size_t workers_;
  std::vector<std::unique_ptr<StackService>> services_;
  std::atomic<size_t> done_{0};
  int64_t told_ = -1;  // seconds; of the caller's thread
};

}  // namespace

std::vector<Samples> TakeSamples(const std::vector<ProcessId>& processes,
                                 const SampleOptions& options) {
  return Sampler(processes, options).Run();
}

}  // namespace rollcall
