// SPDX-License-Identifier: Apache-2.0
#include "tests/fleet/host.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/rendezvous.h"
#include "base/steady_clock.h"
#include "daemon/model/job_key.h"

namespace rollcall::fleet {
namespace {

constexpr int64_t kFirstPauseFrom = 100 * kMillisecond;
constexpr int64_t kFirstPauseTo = 300 * kMillisecond;
constexpr int64_t kLongestPause = 5 * kSecond;
constexpr int64_t kLatestArrival = 2 * kSecond;

const std::string& DaemonOf(const LoadOptions& options, size_t index) {
  return options.daemons[index % options.daemons.size()];
}

// As an agent does, whose host has this job.
size_t FirstDaemon(const FleetPlan& plan, int host) {
  const std::string job = plan.ScriptOf(plan.SeatOf(host).lane, 0).plan().name;
  return PreferredDaemon(plan.options().daemons, kDefaultTenant, job);
}

bool IsLate(const LoadOptions& options, int host) {
  constexpr uint64_t kParts = 1'000'000;
  const uint64_t part = Scramble(options.seed ^ Scramble(static_cast<uint64_t>(host))) % kParts;
  return static_cast<double>(part) < options.late * static_cast<double>(kParts);
}

}  // namespace

Host::Host(const FleetPlan* plan, int index, const Tools& tools)
    : plan_(plan),
      daemon_index_(FirstDaemon(*plan, index)),
      daemon_(DaemonOf(plan->options(), daemon_index_)),
      tools_(tools),
      is_late_(IsLate(plan->options(), index)),
      random_(plan->options().seed + static_cast<uint64_t>(index)),
      report_(plan, index),
      tick_ns_(ToNs(plan->options().tick)) {
  WakeAt(plan_->begin_ns() + random_.Below(ToNs(plan_->options().start_within)));
}

void Host::WakeAt(int64_t at_ns) {
  wake_ns_ = at_ns;
  tools_.timers->Add(at_ns, this);
}

void Host::WakeForNextTick(int64_t now_ns) {
  due_ns_ = std::max(due_ns_ + tick_ns_, now_ns);
  WakeAt(due_ns_);
}

void Host::OnTimer(int64_t due_ns, int64_t now_ns) {
  if (due_ns != wake_ns_ || stopping_) return;
  tools_.tally->WokenLate(now_ns - due_ns);
  if (stream_ == nullptr) {
    if (tools_.ramp->Enter(this)) Connect();
    return;
  }
  if (!stream_->CanWrite()) {
    tools_.tally->TickDelayed();
    tick_owed_ = true;
    return;
  }
  if (!travelling_.has_value()) return SendTick(now_ns, std::exchange(whole_asked_, false));
  WriteTick(*travelling_);
  travelling_.reset();
  WakeForNextTick(now_ns);
}

void Host::LeaveRamp() {
  if (!std::exchange(is_on_ramp_, false) || stopping_) return;  // all hosts stop at once
  if (Host* next = tools_.ramp->Leave()) next->Connect();
}

void Host::Connect() {
  is_on_ramp_ = true;
  phase_ = Phase::kNothing;
  stream_ = std::make_unique<Stream>(daemon_, tools_.credentials, this, tools_.queue);
}

void Host::OnConnected() {
  LeaveRamp();
  v1::AgentMessage message;
  report_.FillHello(tick_ns_, message.mutable_hello());
  phase_ = Phase::kHello;
  stream_->Write(message);
}

void Host::OnMessage(const v1::DaemonMessage& message) {
  switch (message.body_case()) {
    case v1::DaemonMessage::kWelcome:
      welcomed_ = true;
      report_.SetWholeRecords(message.welcome().whole_records());
      if (phase_ == Phase::kHello && stream_->CanWrite()) OnWritten();
      break;
    case v1::DaemonMessage::kTakeStacks:
      QueueStacks(message.take_stacks());
      break;
    case v1::DaemonMessage::kPace:
      tick_ns_ = std::max(ToNs(plan_->options().tick), message.pace().tick_ns());
      break;
    case v1::DaemonMessage::kOwners:
      ObeyOwners(message.owners());
      break;
    case v1::DaemonMessage::kGatherHostFacts:  // as an agent that does not know the request
    case v1::DaemonMessage::kLookAtRanks:
    case v1::DaemonMessage::kHostHangs:
    case v1::DaemonMessage::BODY_NOT_SET:
      break;
  }
}

// A host runs one job, so it reports to the job's owner alone.
void Host::ObeyOwners(const v1::Owners& owners) {
  whole_asked_ |= owners.send_whole();
  for (const v1::Owners::Job& job : owners.jobs()) {
    if (job.daemon().empty() || job.daemon() == daemon_) continue;
    daemon_ = job.daemon();
    cut_itself_ = true;
    stream_->Cancel();
  }
}

void Host::OnWritten() {
  const int64_t now_ns = SteadyNs();
  if (phase_ == Phase::kHello) {
    if (!welcomed_) return;
    phase_ = Phase::kWholeTick;
    due_ns_ = now_ns;
    return SendTick(now_ns, true);
  }
  if (phase_ == Phase::kWholeTick) {
    phase_ = Phase::kTicks;
    CheckBack();
  }
  if (tick_owed_) {
    tick_owed_ = false;
    WakeAt(now_ns);
  } else if (!answers_.empty()) {
    stream_->Write(answers_.front());
    answers_.pop_front();
    tools_.tally->StackSent();
  }
}

void Host::SendTick(int64_t now_ns, bool whole) {
  static thread_local v1::AgentMessage message;  // keeps its memory from tick to tick
  message.mutable_tick()->Clear();
  report_.FillTick(now_ns, whole, message.mutable_tick());
  if (is_late_ && !whole) {
    travelling_ = message;
    return WakeAt(now_ns + random_.Below(kLatestArrival));
  }
  WriteTick(message);
  WakeForNextTick(now_ns);
}

void Host::WriteTick(const v1::AgentMessage& message) {
  stream_->Write(message);
  tools_.tally->TickSent();
}

void Host::QueueStacks(const v1::TakeStacks& request) {
  for (const v1::ProcessRef& process : request.processes()) {
    v1::AgentMessage& answer = answers_.emplace_back();
    report_.FillStack(request.request(), process, answer.mutable_stacks());
  }
  if (phase_ == Phase::kTicks && !answers_.empty() && stream_->CanWrite()) OnWritten();
}

void Host::CheckBack() {
  if (is_back_ || !welcomed_ || phase_ != Phase::kTicks) return;
  is_back_ = true;
  attempts_ = 0;
  tools_.tally->HostIsBack(lost_ns_, SteadyNs());
  lost_ns_ = 0;
}

void Host::Cut() {
  if (stream_ == nullptr || !is_back_) return;
  cut_itself_ = true;
  stream_->Cancel();
}

void Host::Stop() {
  stopping_ = true;
  cut_itself_ = true;
  if (stream_ != nullptr) stream_->Cancel();
}

void Host::OnClosed(const grpc::Status& status) {
  const int64_t now_ns = SteadyNs();
  const std::string why = absl::StrCat("code ", status.error_code(), ": ", status.error_message());
  if (is_back_ && !stopping_) tools_.tally->HostIsGone(now_ns);
  if (cut_itself_) {
    if (!stopping_) tools_.tally->StreamCut();
  } else if (welcomed_) {
    tools_.tally->StreamClosed(why);
  } else {
    tools_.tally->AttemptFailed(why);
  }
  if (lost_ns_ == 0 && is_back_) lost_ns_ = now_ns;
  stream_.reset();
  answers_.clear();
  travelling_.reset();
  // The owner does not answer: any other daemon knows who has the job now.
  if (!welcomed_) daemon_ = DaemonOf(plan_->options(), ++daemon_index_);
  tick_owed_ = welcomed_ = is_back_ = cut_itself_ = whole_asked_ = false;
  if (!stopping_) WakeAt(now_ns + NextPause());
  LeaveRamp();
}

// Jittered in full, so that a fleet that lost its daemon comes back spread out.
int64_t Host::NextPause() {
  const int64_t longest_ns = std::min(kFirstPauseTo << std::min(attempts_++, 8), kLongestPause);
  return kFirstPauseFrom + random_.Below(longest_ns - kFirstPauseFrom);
}

}  // namespace rollcall::fleet
