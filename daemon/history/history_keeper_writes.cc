// SPDX-License-Identifier: Apache-2.0
// The start and end of the keeper of the history, and what callers give to it. Reads are in
// history_keeper_reads.cc.
#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/mutex.h"
#include "daemon/history/history_keeper.h"
#include "daemon/history/history_keeper_core.h"
#include "daemon/history/history_write.h"

namespace rollcall {
namespace {

constexpr std::chrono::seconds kLastWait{1};
// Nobody waits for the answer to a question that takes longer.
constexpr std::chrono::milliseconds kLastQuestion{100};
// A busy disk takes its time to make a new file. A daemon that may start without the file starts
// soon.
constexpr auto kStartPatience = std::chrono::seconds(30);
constexpr auto kOptionalPatience = std::chrono::seconds(5);
constexpr size_t kMostReads = 64;          // that wait for the reading thread
constexpr size_t kMostHeldIncidents = 20;  // of one job
constexpr std::chrono::seconds kLastBringing{2};
constexpr int64_t kTryDatabaseWithin = 4'000'000'000;

}  // namespace

HistoryKeeper::HistoryKeeper(HistoryKeeperOptions options)
    : core_(std::make_shared<Core>(std::move(options))), reader_(kMostReads) {}

void HistoryKeeper::StartForwarder() {
  HistoryForwarderOptions options;
  options.database = core_->options.database;
  options.known_as = KnownAs(options.database);
  options.limits = core_->options.limits;
  options.retry.first_ns = core_->options.retry.first_ns;
  options.retry.longest_ns = std::min(core_->options.retry.longest_ns / 2, kTryDatabaseWithin);
  // The core owns the forwarder, whose thread may outlive both.
  const std::weak_ptr<Core> weak = core_;
  core_->forwarder = std::make_unique<HistoryForwarder>(
      options,
      [weak](Continuation loaded) {
        const std::shared_ptr<Core> core = weak.lock();
        if (core == nullptr) return;
        const MutexLock lock(core->mutex);
        if (!std::exchange(core->has_loaded, true)) core->continuation = std::move(loaded);
        core->wake_caller.NotifyAll();
      },
      [weak](const std::map<JobId, int>& known) {
        if (const std::shared_ptr<Core> core = weak.lock()) core->AddNumbers(known);
      });
}

HistoryKeeper::~HistoryKeeper() { Finish(std::chrono::steady_clock::now() + kLastWait); }

absl::Status HistoryKeeper::Start() {
  if (!core_->options.database.url.empty()) StartForwarder();
  writer_.Post([core = core_] { core->Write(); });
  reader_.Start();
  questions_.Post([core = core_] {
    core->questions.Run(
        [&](const v1::CountIncidentsRequest& request) { return core->Count(request); });
  });
  absl::Status problem;
  {
    const auto deadline = std::chrono::steady_clock::now() +
                          (core_->options.is_optional ? kOptionalPatience : kStartPatience);
    const MutexLock lock(core_->mutex);
    while (!core_->has_tried && core_->wake_caller.WaitUntil(core_->mutex, deadline)) {
    }
    problem =
        core_->has_tried
            ? core_->problem
            : absl::UnavailableError(absl::StrCat("the history ", core_->options.path,
                                                  " cannot be used: its disk does "
                                                  "not respond\n  another one?  --history=FILE"));
  }
  if (problem.ok() || core_->options.is_optional) return absl::OkStatus();
  Finish(std::chrono::steady_clock::now() + std::chrono::seconds(1));
  return problem;
}

int HistoryKeeper::LastNumber(const JobId& job) const {
  const MutexLock lock(core_->mutex);
  const auto at = core_->numbers.find(job);
  return at == core_->numbers.end() ? 0 : at->second;
}

void HistoryKeeper::RaiseNumber(const JobId& job, int number) {
  core_->AddNumbers({{job, number}});
}

void HistoryKeeper::Save(v1::Incident incident) {
  const MutexLock lock(core_->mutex);
  if (core_->finishing) return;
  const JobId job = ReadJobKey(incident);
  int& number = core_->numbers[job];
  number = std::max(number, IncidentNumber(incident));
  if (!core_->IsHeld(job)) return core_->Keep(std::move(incident));
  std::map<std::string, v1::Incident>& held = core_->held[job].incidents;
  std::string id = incident.id();
  if (held.size() >= kMostHeldIncidents && held.count(id) == 0) return;
  held[std::move(id)] = std::move(incident);
}

void HistoryKeeper::ReleaseHeld(const JobId& job) {
  const MutexLock lock(core_->mutex);
  auto held = core_->held.extract(job);
  if (held.empty() || core_->finishing) return;
  // An alert is about an incident, and comes after it.
  for (auto& [id, incident] : held.mapped().incidents) core_->Keep(std::move(incident));
  for (Core::Note& note : held.mapped().notes) {
    if (note.write.has_value()) core_->AddFence(job, &*note.write);
    core_->Append(std::move(note));
  }
}

void HistoryKeeper::DropHeld(const JobId& job) {
  const MutexLock lock(core_->mutex);
  core_->held.erase(job);
}

std::function<bool()> HistoryKeeper::Barrier() const {
  struct Marks {
    uint64_t order = 0;
    std::shared_ptr<HistorySpool> spool;  // nullptr: the writing thread still has some of it
    int64_t place = 0;
  };
  const auto marks = std::make_shared<Marks>();
  const MutexLock lock(core_->mutex);
  marks->order = core_->next_order;
  return [core = core_, marks] {
    if (!core->HasWritten(marks->order)) return false;
    std::shared_ptr<HistorySpool> spool;
    {
      const MutexLock lock(core->mutex);
      spool = core->spool;
    }
    if (spool == nullptr) return core->forwarder == nullptr;
    if (marks->spool == nullptr) {
      marks->spool = spool;
      marks->place = spool->NewestPlace();
    }
    // If somebody has removed the file, what waited there is lost.
    return spool != marks->spool || spool->HasBrought(marks->place);
  };
}

// Shares the core, because alerts may be delivered after the keeper has ended.
class HistoryKeeper::Outbox : public AlertOutbox {
 public:
  explicit Outbox(std::shared_ptr<Core> core) : core_(std::move(core)) {}

  void Save(AlertRow alert, std::function<void()> saved) override {
    core_->Put(WriteOfAlert(alert), std::move(saved));
  }
  void Mark(const std::string& incident, int32_t sequence, const std::string& receiver) override {
    core_->Put(WriteOfAlertMark(incident, sequence, receiver), nullptr);
  }

 private:
  const std::shared_ptr<Core> core_;
};

std::shared_ptr<AlertOutbox> HistoryKeeper::outbox() const {
  return std::make_shared<Outbox>(core_);
}

void HistoryKeeper::Apply(v1::HistoryWrite write) {
  if (!core_->options.token_of) return core_->Put(std::move(write), nullptr);
  // A write with a token is about one job.
  for (v1::HistoryWrite& part : ByJob(std::move(write))) core_->Put(std::move(part), nullptr);
}

bool HistoryKeeper::AwaitSaved(int64_t patience_ns) {
  // The keeper writes in order.
  struct Saved {
    Mutex mutex;
    Condition wake;
    bool has_come ABSL_GUARDED_BY(mutex) = false;
  };
  const auto saved = std::make_shared<Saved>();
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::nanoseconds(patience_ns);
  core_->Put(std::nullopt, [saved] {
    const MutexLock lock(saved->mutex);
    saved->has_come = true;
    saved->wake.NotifyAll();
  });
  const MutexLock lock(saved->mutex);
  while (!saved->has_come && saved->wake.WaitUntil(saved->mutex, deadline)) {
  }
  return saved->has_come;
}

std::optional<Continuation> HistoryKeeper::ConsumeContinuation() {
  const MutexLock lock(core_->mutex);
  return std::exchange(core_->continuation, std::nullopt);
}

bool HistoryKeeper::ConsumeRecreated() {
  const MutexLock lock(core_->mutex);
  return std::exchange(core_->is_recreated, false);
}

HistoryKeeper::Counts HistoryKeeper::counts() const {
  const MutexLock lock(core_->mutex);
  Counts counts = core_->counts;
  counts.waiting = core_->waiting.size() + core_->notes.size();
  if (core_->forwarder == nullptr) return counts;
  const HistoryForwarder::Counts database = core_->forwarder->counts();
  counts.has_database = true;
  counts.is_connected = database.is_connected;
  counts.failed += database.failed;
  counts.lost += database.refused;
  counts.fenced = database.fenced;
  if (core_->spool == nullptr) return counts;
  const HistorySpool::Waiting spooled = core_->spool->waiting();
  counts.spooled = static_cast<uint64_t>(spooled.count);
  counts.spooled_bytes = static_cast<uint64_t>(spooled.bytes);
  counts.lost += static_cast<uint64_t>(spooled.lost);
  return counts;
}

void HistoryKeeper::Finish(SteadyTime deadline) {
  {
    const MutexLock lock(core_->mutex);
    if (core_->finishing) return;
    core_->finishing = true;
    core_->problem = absl::OkStatus();  // one more try
    core_->wake_writer.NotifyAll();
  }
  core_->questions.End();
  writer_.Finish(deadline);
  reader_.Finish(deadline);
  questions_.Finish(std::min(deadline, std::chrono::steady_clock::now() + kLastQuestion));
  if (core_->forwarder != nullptr) {
    core_->forwarder->Finish(std::min(deadline, std::chrono::steady_clock::now() + kLastBringing));
    if (const uint64_t left = counts().spooled) {
      spdlog::info("{} writes wait in {} for the history's database", left, core_->options.path);
    }
  }
  const MutexLock lock(core_->mutex);
  const size_t lost = core_->waiting.size();
  core_->counts.lost += lost + core_->notes.size();
  if (lost == 0 && core_->notes.empty()) return;
  spdlog::error(
      "cannot save {} and {} of alerts and hosts in the history {}: {}",
      lost == 1 ? "1 incident" : absl::StrCat(lost, " incidents"),
      core_->notes.size() == 1 ? "1 fact" : absl::StrCat(core_->notes.size(), " facts"),
      core_->options.path,
      core_->problem.ok() ? "its disk does not respond" : std::string(core_->problem.message()));
}

}  // namespace rollcall
