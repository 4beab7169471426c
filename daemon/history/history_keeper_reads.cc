// SPDX-License-Identifier: Apache-2.0
// What callers ask the keeper of the history. The threads that read answer; callers wait for a
// time.
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "daemon/history/history_keeper.h"
#include "daemon/history/history_keeper_core.h"
#include "daemon/history/incident_list.h"

namespace rollcall {
namespace {

constexpr auto kReadPatience = std::chrono::seconds(2);

// Runs `run` on the reading thread. Returns kUnavailable if it has not ended in time; it may still
// run later.
template <typename Core>
absl::Status RunRead(const std::shared_ptr<Core>& core, Worker* reader,
                     std::function<absl::Status(const History&, const std::string& note)> run) {
  const auto task = std::make_shared<typename Core::ReadTask>();
  task->run = std::move(run);
  const MutexLock lock(core->mutex);
  if (core->to_read == nullptr || core->finishing) {
    return absl::UnavailableError("the history cannot be read now");
  }
  if (!reader->Post([core, task] { core->Read(task.get()); })) {
    return absl::UnavailableError("the history has too many pending queries; ask again later");
  }
  const auto deadline = std::chrono::steady_clock::now() + kReadPatience;
  while (!task->is_done && core->wake_caller.WaitUntil(core->mutex, deadline)) {
  }
  task->is_dropped = !task->is_done;
  return task->is_done ? absl::OkStatus()
                       : absl::UnavailableError("the history has not answered within 2 s");
}

// What `ask` returns on the reading thread. It may still run after the return, so it owns what it
// uses. The core lives as long as the task.
template <typename T, typename Core>
absl::StatusOr<T> Ask(
    const std::shared_ptr<Core>& core, Worker* reader,
    std::function<absl::StatusOr<T>(const History&, const std::string& note)> ask) {
  const auto answer = std::make_shared<absl::StatusOr<T>>();
  const absl::Status came = RunRead(core, reader,
                                    [core = core.get(), answer, ask = std::move(ask)](
                                        const History& history, const std::string& note) {
                                      *answer = ask(history, note);
                                      if (absl::IsDataLoss(answer->status()))
                                        core->MarkDamaged(history);
                                      return answer->status();
                                    });
  if (!came.ok()) return came;
  return *answer;
}

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
  auto listed = history.ListWithout(ids, request, window.offset, window.limit);
  if (!listed.ok()) return listed.status();
  return Merge(request, std::move(in_memory), window, *std::move(listed));
}

template <typename Response>
absl::StatusOr<Response> WithNote(absl::StatusOr<Response> answer, const std::string& note) {
  if (answer.ok()) answer->set_note(note);
  return answer;
}

}  // namespace

absl::StatusOr<v1::ListIncidentsResponse> HistoryKeeper::List(
    const v1::ListIncidentsRequest& request, const std::vector<v1::Incident>& live) const {
  std::map<std::string, v1::Incident> newer;  // than the history's, by id
  {
    const MutexLock lock(core_->mutex);
    for (const auto& [id, item] : core_->waiting) newer[id] = item.write.incident();
  }
  for (const v1::Incident& incident : live) newer[incident.id()] = incident;
  return Ask<v1::ListIncidentsResponse>(core_, &reader_,
                                        [core = core_.get(), request, newer = std::move(newer)](
                                            const History& history, const std::string& note) {
                                          std::map<std::string, v1::Incident> all = newer;
                                          for (v1::Incident& incident : core->Unsettled(history)) {
                                            all.try_emplace(incident.id(), std::move(incident));
                                          }
                                          return WithNote(ListWith(history, request, all), note);
                                        });
}

absl::StatusOr<v1::ListIncidentsResponse> HistoryKeeper::Groups(
    const v1::ListIncidentsRequest& request, const std::string& without) const {
  return Ask<v1::ListIncidentsResponse>(
      core_, &reader_, [request, without](const History& history, const std::string& note) {
        return WithNote(history.Groups(request, without), note);
      });
}

absl::StatusOr<v1::CountIncidentsResponse> HistoryKeeper::Count(
    const v1::CountIncidentsRequest& request, const std::string& who) const {
  return core_->questions.Ask(request, who, kReadPatience);
}

absl::StatusOr<std::vector<v1::Silence>> HistoryKeeper::ListSilences() const {
  return Ask<std::vector<v1::Silence>>(
      core_, &reader_,
      [](const History& history, const std::string&) { return history.ListSilences(); });
}

absl::StatusOr<v1::Incident> HistoryKeeper::Get(const std::string& id) const {
  {
    const MutexLock lock(core_->mutex);
    const auto at = core_->waiting.find(id);
    if (at != core_->waiting.end()) return at->second.write.incident();
  }
  return Ask<v1::Incident>(
      core_, &reader_,
      [core = core_.get(), id](const History& history,
                               const std::string&) -> absl::StatusOr<v1::Incident> {
        for (v1::Incident& incident : core->Unsettled(history)) {
          if (incident.id() == id) return std::move(incident);
        }
        return history.Get(id);
      });
}

}  // namespace rollcall
