// SPDX-License-Identifier: Apache-2.0
#include "daemon/daemon_clock.h"

#include <spdlog/spdlog.h>
#include <time.h>

#include <algorithm>
#include <chrono>

#include "base/durations.h"
#include "daemon/access/daemon_security.h"
#include "daemon/agent_hub.h"
#include "daemon/agents/agent_service.h"
#include "daemon/incidents/incident_book.h"
#include "daemon/jobs/job_store.h"
#include "daemon/jobs/timeline.h"
#include "daemon/loop/job_runners.h"
#include "daemon/queries/past_views_keeper.h"

namespace rollcall {
namespace {

// Limits the diagnosis after the agents' last ticks.
constexpr std::chrono::seconds kLastDiagnosisWithin{2};

constexpr int64_t kPulseEveryNs = kSecond;
constexpr int64_t kSilencesEveryNs = 2 * kSecond;
// A daemon with more load than it can carry is late, and not dead.
constexpr int64_t kDeadAfterNs = 30 * kSecond;

}  // namespace

void DaemonClock::Start(bool has_database) {
  thread_ = std::thread([this] { Run(); });
  past_thread_ = std::thread([this] { parts_.past->Run(&stop_); });
  if (has_database) silences_thread_ = std::thread([this] { KeepSilences(); });
}

void DaemonClock::Join() {
  if (thread_.joinable()) thread_.join();
  if (past_thread_.joinable()) past_thread_.join();
  if (silences_thread_.joinable()) silences_thread_.join();
}

void DaemonClock::Run() {
  do {
    Tick();
    const int64_t due_ns = SteadyNs() + times_.tick_ns;
    if (stop_.SleepFor(times_.tick_ns)) break;
    lateness_.Add(due_ns, SteadyNs());
  } while (true);
  parts_.runners->Finish(std::chrono::steady_clock::now() + kLastDiagnosisWithin);
  Publish();
}

void DaemonClock::KeepSilences() {
  while (!stop_.SleepFor(kSilencesEveryNs)) parts_.incidents->actions().RefreshSilences();
}

void DaemonClock::Tick() {
  ran_ns_ = SteadyNs();
  const int64_t now_ns = parts_.timeline->Now();
  parts_.hub->MarkSilent(now_ns, lateness_.Total());
  if (now_ns - pulsed_ns_ >= kPulseEveryNs) {
    pulsed_ns_ = now_ns;
    Pulse(now_ns);
  }
  if (now_ns - callers_checked_ns_ >= times_.check_callers_every_ns) {
    callers_checked_ns_ = now_ns;
    parts_.agents->EndInvalid(time(nullptr));
  }
  parts_.hub->BeginTurns();
  Publish();
}

void DaemonClock::Pulse(int64_t now_ns) {
  parts_.hub->UpdatePace(now_ns);
  if (parts_.security != nullptr) parts_.security->Poll(time(nullptr));
  spdlog::default_logger()->flush();  // it reports how many lines it left out
  parts_.runners->DropForgotten();
  parts_.runners->Pulse();
}

bool DaemonClock::IsAlive() const {
  return SteadyNs() - std::min<int64_t>(ran_ns_, parts_.runners->PulsedAt()) < kDeadAfterNs;
}

void DaemonClock::Publish() {
  parts_.incidents->Publish();
  parts_.hub->TellHostHangs();
  JobTakeover& takeover = parts_.incidents->takeover();
  parts_.store->places()->RestoreAttempts(takeover.ConsumeAttempts());
  takeover.SaveAttempts(
      parts_.store->places()->TakeAttemptChanges(takeover.ConsumeAttemptsToSave()));
}

}  // namespace rollcall
