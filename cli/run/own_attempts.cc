// SPDX-License-Identifier: Apache-2.0
#include "cli/run/own_attempts.h"

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "base/durations.h"
#include "base/monotonic_clock.h"
#include "cli/run/child.h"

namespace rollcall {
namespace {

constexpr int64_t kAskAgainAfterNs = kSecond / 2;
constexpr std::chrono::milliseconds kFirstReadingWithin{200};
constexpr int kProcessesOfHost = 1000;  // the daemon's limit of an answer

template <typename Request>
Request RequestFor(const JobKey& attempt) {
  Request request;
  request.set_tenant(attempt.tenant);
  request.set_job(attempt.job);
  request.set_attempt(attempt.attempt);
  return request;
}

}  // namespace

void SetDeadline(SteadyTime deadline, grpc::ClientContext* context) {
  context->set_deadline(std::chrono::system_clock::now() +
                        std::chrono::duration_cast<std::chrono::microseconds>(
                            deadline - std::chrono::steady_clock::now()));
}

OwnAttempts::OwnAttempts(v1::Query::Stub* stub, std::string directory, std::string host)
    : stub_(stub), directory_(std::move(directory)), host_(std::move(host)) {}

void OwnAttempts::Learn(const std::set<JobKey>& attempts, SteadyTime deadline, bool at_once) {
  if (attempts.empty()) return;
  if (local_ == nullptr) {
    local_ = std::make_unique<LocalProgress>(directory_);
    local_->AwaitReading(
        std::min(deadline, std::chrono::steady_clock::now() + kFirstReadingWithin));
  }
  std::vector<std::pair<int64_t, JobKey>> due;
  for (const JobKey& attempt : attempts) {
    const Known& known = known_[attempt];
    const bool is_due = at_once || MonotonicNs() >= known.ask_again_ns;
    if (is_due && known.ownership != Ownership::kByCommunicator) {
      due.emplace_back(known.ask_again_ns, attempt);
    }
  }
  std::sort(due.begin(), due.end());
  for (const auto& [since_ns, attempt] : due) {
    if (std::chrono::steady_clock::now() >= deadline) return;
    Known& known = known_[attempt];
    // What is this run's stays so, though the processes have ended.
    known.ownership = std::max(known.ownership, Ask(attempt, deadline));
    known.ask_again_ns = MonotonicNs() + kAskAgainAfterNs;
  }
}

Ownership OwnAttempts::Of(const JobKey& attempt) const {
  const auto known = known_.find(attempt);
  return known == known_.end() ? Ownership::kUnknown : known->second.ownership;
}

Ownership OwnAttempts::Ask(const JobKey& attempt, SteadyTime deadline) const {
  const Ownership ownership = AskForCommunicators(attempt, deadline);
  return ownership == Ownership::kNo ? AskForProcesses(attempt, deadline) : ownership;
}

Ownership OwnAttempts::AskForCommunicators(const JobKey& attempt, SteadyTime deadline) const {
  v1::StatusResponse response;
  grpc::ClientContext context;
  SetDeadline(deadline, &context);
  if (!stub_->GetStatus(&context, RequestFor<v1::StatusRequest>(attempt), &response).ok()) {
    return Ownership::kUnknown;
  }
  const std::set<uint64_t> own = local_->communicators();
  for (const v1::JobStatus& job : response.jobs()) {
    for (const v1::CommunicatorStatus& communicator : job.communicators()) {
      uint64_t id = 0;
      const bool is_id = absl::SimpleHexAtoi(communicator.id(), &id);
      if (is_id && own.count(id) != 0) return Ownership::kByCommunicator;
    }
  }
  return Ownership::kNo;
}

Ownership OwnAttempts::AskForProcesses(const JobKey& attempt, SteadyTime deadline) const {
  auto request = RequestFor<v1::ProcessesRequest>(attempt);
  request.set_host(host_);
  request.set_limit(kProcessesOfHost);
  v1::ProcessesResponse response;
  grpc::ClientContext context;
  SetDeadline(deadline, &context);
  if (!stub_->ListProcesses(&context, request, &response).ok()) return Ownership::kUnknown;
  const std::set<pid_t> own = Pids();
  const bool any = std::any_of(
      response.processes().begin(), response.processes().end(), [&own](const auto& process) {
        return own.count(process.pid()) != 0 || own.count(process.inner_pid()) != 0;
      });
  return any ? Ownership::kByProcess : Ownership::kNo;
}

// Of the living processes of this run, and of those that have left a segment.
std::set<pid_t> OwnAttempts::Pids() const {
  std::set<pid_t> pids = local_->pids();
  for (const pid_t pid : OwnDescendants()) pids.insert(pid);
  return pids;
}

}  // namespace rollcall
