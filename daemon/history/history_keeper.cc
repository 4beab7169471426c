// SPDX-License-Identifier: Apache-2.0
#include "daemon/history/history_keeper.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <future>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/history/earlier_history.h"
#include "daemon/history/history_file.h"
#include "daemon/history/history_write.h"
#include "daemon/history/history_writer.h"
#include "daemon/history/incident_list.h"
#include "daemon/history/write_queue.h"

namespace rollcall {
namespace {

constexpr std::chrono::seconds kLastWait{1};
// No caller waits for the answer to a query that takes longer.
constexpr std::chrono::milliseconds kLastQuestion{100};
// A busy disk takes its time to make a new file. A daemon that may start without the file starts
// soon.
constexpr std::chrono::seconds kStartPatience{30}, kOptionalPatience{5};
constexpr size_t kMostReads = 64;  // that wait for the reading thread
constexpr std::chrono::seconds kLastBringing{2};
constexpr std::chrono::seconds kReadPatience{2};

absl::Status CannotRead() { return absl::UnavailableError("the history cannot be read now"); }

template <typename T>
using Reading = std::function<absl::StatusOr<T>(const History& history, const std::string& note)>;

// The request's page of the history and of these incidents, whose state is newer than the
// history's.
absl::StatusOr<v1::ListIncidentsResponse> ListWith(
    const History& history, const v1::ListIncidentsRequest& request,
    const std::map<std::string, v1::Incident>& newer) {
  std::vector<std::string> ids;
  std::vector<v1::Incident> in_memory;
  for (const auto& [id, incident] : newer) {
    ids.push_back(id);
    if (IsSelected(incident, request)) in_memory.push_back(incident);
  }
  const Window window = WindowFor(request, static_cast<int64_t>(in_memory.size()));
  v1::HistoryQuery::Incidents query;
  *query.mutable_request() = request;
  for (const std::string& id : ids) query.add_without(id);
  query.set_offset(window.offset);
  query.set_limit(window.limit);
  auto listed = history.Ask(query);
  if (!listed.ok()) return listed.status();
  return Merge(request, std::move(in_memory), window, *std::move(listed));
}

template <typename Response>
absl::StatusOr<Response> WithNote(absl::StatusOr<Response> answer, const std::string& note) {
  if (answer.ok()) answer->set_note(note);
  return answer;
}

}  // namespace

// Shared with the threads, which may outlive the keeper.
struct HistoryKeeper::Core {
  explicit Core(HistoryKeeperOptions given) : options(std::move(given)) {}

  // The threads that read call this.
  template <typename T>
  absl::StatusOr<T> Read(HistoryUse use, const Reading<T>& read) {
    absl::StatusOr<T> answer = CannotRead();
    (void)file.Run(use, [&](const History& history, const std::string& note) {
      answer = read(history, note);
      return answer.status();
    });
    if (file.IsDamaged()) queue.Wake();  // so that the writing thread replaces it
    return answer;
  }

  const HistoryKeeperOptions options;
  const std::shared_ptr<EarlierHistory> earlier = std::make_shared<EarlierHistory>();
  WriteQueue queue{options};
  HistoryFile file{options, earlier};
  HistoryWriter writer{options, &queue, &file};
  QuestionDesk questions;
  std::atomic<uint64_t> lost_at_end{0};  // what waited then
};

HistoryKeeper::HistoryKeeper(HistoryKeeperOptions options)
    : core_(std::make_shared<Core>(std::move(options))), reader_(kMostReads) {}

HistoryKeeper::~HistoryKeeper() { Finish(std::chrono::steady_clock::now() + kLastWait); }

absl::Status HistoryKeeper::Start() {
  core_->file.Connect();
  for (Worker* worker : {&writer_, &reader_, &questions_}) worker->Start();
  writer_.Post([core = core_] { core->writer.Run(); });
  questions_.Post([core = core_] {
    core->questions.Run([&](const v1::HistoryQuery& query) {
      return core->Read<v1::HistoryAnswer>(HistoryUse::kQuestions,
                                           [&](const History& history, const std::string& note) {
                                             return WithNote(history.Answer(query), note);
                                           });
    });
  });
  const bool is_optional = core_->options.is_optional;
  const absl::Status problem =
      core_->writer
          .AwaitFirstTry(std::chrono::steady_clock::now() +
                         (is_optional ? kOptionalPatience : kStartPatience))
          .value_or(absl::UnavailableError(absl::StrCat(
              "the history ", core_->options.path,
              " cannot be used: its disk does not respond\n  another one?  --history=FILE")));
  if (problem.ok() || is_optional) return absl::OkStatus();
  Finish(std::chrono::steady_clock::now() + kLastWait);
  return problem;
}

int HistoryKeeper::LastNumber(const JobId& job) const { return core_->earlier->LastNumber(job); }

void HistoryKeeper::RaiseNumber(const JobId& job, int number) {
  core_->earlier->Raise({{job, number}});
}

void HistoryKeeper::Save(v1::Incident incident) {
  RaiseNumber(ReadJobKey(incident), IncidentNumber(incident));
  core_->queue.Save(std::move(incident));
}

void HistoryKeeper::ReleaseHeld(const JobId& job) { core_->queue.ReleaseHeld(job); }

void HistoryKeeper::DropHeld(const JobId& job) { core_->queue.DropHeld(job); }

std::function<bool()> HistoryKeeper::Barrier() const {
  struct Marks {
    uint64_t order = 0;
    std::shared_ptr<HistorySpool> spool;  // nullptr if the writing thread still has some of it
    int64_t place = 0;
  };
  const auto marks = std::make_shared<Marks>();
  marks->order = core_->queue.NextOrder();
  return [core = core_, marks] {
    if (!core->queue.HasWritten(marks->order)) return false;
    const std::shared_ptr<HistorySpool> spool = core->file.spool();
    if (spool == nullptr) return core->file.forwarder() == nullptr;
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
    core_->queue.Add(WriteOfAlert(alert), std::move(saved));
  }
  void Mark(const std::string& incident, int32_t sequence, const std::string& receiver) override {
    core_->queue.Add(WriteOfAlertMark(incident, sequence, receiver), nullptr);
  }

 private:
  const std::shared_ptr<Core> core_;
};

std::shared_ptr<AlertOutbox> HistoryKeeper::outbox() const {
  return std::make_shared<Outbox>(core_);
}

void HistoryKeeper::Apply(v1::HistoryWrite write) {
  if (!core_->options.token_of) return core_->queue.Add(std::move(write), nullptr);
  // A write with a token is about one job.
  for (v1::HistoryWrite& part : ByJob(std::move(write))) core_->queue.Add(std::move(part), nullptr);
}

bool HistoryKeeper::AwaitSaved(int64_t patience_ns) {
  // The keeper writes in order.
  const auto is_saved = std::make_shared<std::promise<void>>();
  core_->queue.Add(std::nullopt, [is_saved] { is_saved->set_value(); });
  return is_saved->get_future().wait_until(After(patience_ns)) == std::future_status::ready;
}

std::optional<Continuation> HistoryKeeper::ConsumeContinuation() {
  return core_->earlier->Consume();
}

bool HistoryKeeper::ConsumeRecreated() { return core_->writer.ConsumeRecreated(); }

// `read` may still run after the return, so it owns what it uses.
template <typename T>
absl::StatusOr<T> HistoryKeeper::OnReader(Reading<T> read) const {
  struct Task {
    std::promise<absl::StatusOr<T>> answer;
    std::atomic<bool> is_dropped{false};  // the caller has stopped waiting
  };
  if (!core_->file.IsOpen() || core_->queue.has_ended()) return CannotRead();
  const auto task = std::make_shared<Task>();
  const bool has_begun = reader_.Post([core = core_, task, read = std::move(read)] {
    if (!task->is_dropped) task->answer.set_value(core->Read<T>(HistoryUse::kLists, read));
  });
  if (!has_begun) {
    return absl::UnavailableError("the history has too many pending queries; ask again later");
  }
  std::future<absl::StatusOr<T>> answer = task->answer.get_future();
  const auto deadline = std::chrono::steady_clock::now() + kReadPatience;
  if (answer.wait_until(deadline) == std::future_status::ready) return answer.get();
  task->is_dropped = true;
  return absl::UnavailableError("the history has not answered within 2 s");
}

absl::StatusOr<v1::ListIncidentsResponse> HistoryKeeper::List(
    const v1::ListIncidentsRequest& request, const std::vector<v1::Incident>& live) const {
  std::map<std::string, v1::Incident> newer = core_->queue.Incidents();  // than the history's
  for (const v1::Incident& incident : live) newer[incident.id()] = incident;
  return OnReader<v1::ListIncidentsResponse>(
      [core = core_.get(), request, newer = std::move(newer)](const History& history,
                                                              const std::string& note) {
        std::map<std::string, v1::Incident> all = newer;
        for (v1::Incident& incident : core->file.NewerThan(history)) {
          all.try_emplace(incident.id(), std::move(incident));
        }
        return WithNote(ListWith(history, request, all), note);
      });
}

absl::StatusOr<v1::HistoryAnswer> HistoryKeeper::Answer(const v1::HistoryQuery& query,
                                                        const HistoryCaller& caller) const {
  if (UseFor(query) == HistoryUse::kQuestions) {
    return core_->questions.Ask(query, caller, kReadPatience);
  }
  return OnReader<v1::HistoryAnswer>([query](const History& history, const std::string& note) {
    return WithNote(history.Answer(query), note);
  });
}

absl::StatusOr<v1::Incident> HistoryKeeper::Get(const std::string& id) const {
  if (std::optional<v1::Incident> waits = core_->queue.Find(id)) return *std::move(waits);
  return OnReader<v1::Incident>(
      [core = core_.get(), id](const History& history,
                               const std::string&) -> absl::StatusOr<v1::Incident> {
        for (v1::Incident& incident : core->file.NewerThan(history)) {
          if (incident.id() == id) return std::move(incident);
        }
        return history.Get(id);
      });
}

HistoryKeeper::Counts HistoryKeeper::counts() const {
  const WriteQueue::Counts queue = core_->queue.counts();
  Counts counts;
  counts.failed = core_->writer.failed();
  counts.lost = queue.lost + core_->lost_at_end;
  counts.waiting = queue.incidents + queue.others;
  if (core_->file.forwarder() == nullptr) return counts;
  const HistoryForwarder::Counts database = core_->file.forwarder()->counts();
  counts.has_database = true;
  counts.is_connected = database.is_connected;
  counts.failed += database.failed;
  counts.lost += database.refused;
  counts.fenced = database.fenced;
  const std::shared_ptr<HistorySpool> spool = core_->file.spool();
  if (spool == nullptr) return counts;
  const HistorySpool::Waiting spooled = spool->waiting();
  counts.spooled = static_cast<uint64_t>(spooled.count);
  counts.spooled_bytes = static_cast<uint64_t>(spooled.bytes);
  counts.lost += static_cast<uint64_t>(spooled.lost);
  return counts;
}

void HistoryKeeper::Finish(SteadyTime deadline) {
  if (core_->queue.has_ended()) return;
  core_->queue.End();
  core_->questions.End();
  writer_.Finish(deadline);
  reader_.Finish(deadline);
  questions_.Finish(std::min(deadline, std::chrono::steady_clock::now() + kLastQuestion));
  if (core_->file.forwarder() != nullptr) {
    core_->file.forwarder()->Finish(
        std::min(deadline, std::chrono::steady_clock::now() + kLastBringing));
    if (const uint64_t left = counts().spooled) {
      spdlog::info("{} writes wait in {} for the history's database", left, core_->options.path);
    }
  }
  const WriteQueue::Counts left = core_->queue.counts();
  core_->lost_at_end = left.incidents + left.others;
  if (core_->lost_at_end == 0) return;
  const absl::Status problem = core_->writer.problem();
  spdlog::error("cannot save {} and {} of alerts and hosts in the history {}: {}",
                left.incidents == 1 ? "1 incident" : absl::StrCat(left.incidents, " incidents"),
                left.others == 1 ? "1 fact" : absl::StrCat(left.others, " facts"),
                core_->options.path,
                problem.ok() ? "its disk does not respond" : std::string(problem.message()));
}

}  // namespace rollcall
