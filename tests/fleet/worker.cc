// SPDX-License-Identifier: Apache-2.0
#include "tests/fleet/worker.h"

#include <algorithm>
#include <chrono>

#include "base/steady_clock.h"

namespace rollcall::fleet {
namespace {

constexpr int64_t kLongestSleep = 100 * kMillisecond;  // so that Stop() is seen
constexpr int64_t kCloseWithin = 10 * kSecond;
constexpr int kEventsAtOnce = 100;  // between two looks at which streams are open

int64_t CutPeriod(double churn, int workers) {
  return churn <= 0 ? 0 : ToNs(static_cast<double>(workers) / churn);
}

// Rounded up: 0 stands for no limit.
int ShareOf(int connecting, int workers) { return (connecting + workers - 1) / workers; }

}  // namespace

Worker::Worker(const FleetPlan* plan, Tally* tally,
               const std::shared_ptr<grpc::ChannelCredentials>& credentials, int index, int workers)
    : cut_period_ns_(CutPeriod(plan->options().churn, workers)),
      next_cut_ns_(plan->begin_ns() + ToNs(plan->options().start_within)),
      random_(plan->options().seed ^ static_cast<uint64_t>(index)),
      ramp_(ShareOf(plan->options().connecting, workers)) {
  const Host::Tools tools = {&queue_, &timers_, &ramp_, tally, credentials};
  for (int host = index; host < plan->hosts(); host += workers) {
    hosts_.push_back(std::make_unique<Host>(plan, host, tools));
  }
}

Worker::~Worker() { Stop(); }

void Worker::Start() {
  thread_ = std::thread([this] { Run(); });
}

void Worker::Stop() {
  stopping_ = true;
  if (thread_.joinable()) thread_.join();
}

void Worker::Run() {
  while (!stopping_) {
    const int64_t now_ns = SteadyNs();
    RunTimers(now_ns);
    CutHosts(now_ns);
    HandleEvent(std::min(timers_.next_ns(), now_ns + kLongestSleep));
  }
  CloseStreams();
}

void Worker::RunTimers(int64_t now_ns) {
  while (timers_.next_ns() <= now_ns) {
    const auto [due_ns, host] = timers_.Take();
    host->OnTimer(due_ns, now_ns);
  }
}

void Worker::CutHosts(int64_t now_ns) {
  if (cut_period_ns_ == 0 || hosts_.empty()) return;
  for (; next_cut_ns_ <= now_ns; next_cut_ns_ += cut_period_ns_) {
    hosts_[static_cast<size_t>(random_.Below(static_cast<int64_t>(hosts_.size())))]->Cut();
  }
}

void Worker::HandleEvent(int64_t until_ns) {
  void* tag = nullptr;
  bool ok = false;
  const auto pause = std::chrono::nanoseconds(std::max<int64_t>(until_ns - SteadyNs(), 0));
  const auto deadline = std::chrono::time_point_cast<std::chrono::system_clock::duration>(
      std::chrono::system_clock::now() + pause);
  if (queue_.AsyncNext(&tag, &ok, deadline) == grpc::CompletionQueue::GOT_EVENT) {
    Stream::Handle(tag, ok);
  }
}

void Worker::CloseStreams() {
  for (const auto& host : hosts_) host->Stop();
  const auto is_open = [](const std::unique_ptr<Host>& host) { return host->has_stream(); };
  const int64_t until_ns = SteadyNs() + kCloseWithin;
  while (SteadyNs() < until_ns && std::any_of(hosts_.begin(), hosts_.end(), is_open)) {
    for (int i = 0; i < kEventsAtOnce; ++i) HandleEvent(SteadyNs() + kMillisecond);
  }
  queue_.Shutdown();
  void* tag = nullptr;
  bool ok = false;
  while (queue_.Next(&tag, &ok)) Stream::Handle(tag, ok);
}

}  // namespace rollcall::fleet
