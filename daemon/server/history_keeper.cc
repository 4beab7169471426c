// SPDX-License-Identifier: Apache-2.0
#include "daemon/server/history_keeper.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <map>
#include <mutex>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/server/incident_list.h"
#include "proto/steady_clock.h"

namespace rollcall {
namespace {

constexpr int64_t kTrimEveryNs = 3'600'000'000'000;
constexpr std::chrono::seconds kLastWait{1};
constexpr auto kReadPatience = std::chrono::seconds(2);
constexpr auto kStartPatience = std::chrono::seconds(5);
constexpr size_t kMostQuestions = 64;  // that wait for the reader

int NumberOf(const v1::Incident& incident) {
  const size_t dash = incident.id().rfind('-');
  return dash == std::string::npos ? 0 : std::atoi(incident.id().c_str() + dash + 1);
}

struct Item {
  v1::Incident incident;
  uint64_t order = 0;  // the state's, so that a newer one is known
};

// What somebody wants to know of the history, and gave up waiting for, maybe.
struct Question {
  std::function<void(const History&)> ask;
  bool is_done = false;
  bool is_dropped = false;
};

}  // namespace

// Shared with the threads, which may outlive the keeper.
struct HistoryKeeper::Core {
  explicit Core(HistoryKeeperOptions given)
      : options(std::move(given)), pause_ns(options.first_pause_ns) {}

  void Write();
  void Read();
  absl::Status Open();
  void Close();
  absl::Status SaveNext();
  absl::Status TrimIfDue();
  void Settle(const absl::Status& status);
  bool HasWork() const { return !waiting.empty() || history == nullptr || is_damaged; }
  void SetDamage(const History& read);
  void DropOldest();

  const HistoryKeeperOptions options;
  std::shared_ptr<History> history;  // the writing thread's own; null: it cannot be used just now
  int64_t trimmed_ns = 0;            // likewise

  mutable std::mutex mutex;
  std::condition_variable wake_writer, wake_reader, wake_asker;
  std::shared_ptr<History> to_read;
  std::map<std::string, Item> waiting;  // by incident
  std::map<std::string, int> numbers;   // by job, the highest
  std::deque<std::shared_ptr<Question>> questions;
  uint64_t next_order = 1;
  int64_t next_try_ns = 0;
  int64_t pause_ns;
  Counts counts;
  absl::Status problem;     // of the last try
  bool has_tried = false;   // to open the file
  bool begun_anew = false;  // and nobody was told
  bool said = false;        // that the history cannot be written
  bool is_damaged = false;  // the file, as the reading thread has seen
  bool finishing = false;
};

// On the writing thread, without the mutex.
absl::Status HistoryKeeper::Core::Open() {
  auto opened = History::Open(options.path, options.limits);
  if (!opened.ok()) return opened.status();
  history = *std::move(opened);
  std::shared_ptr<History> reading = history;
  if (!options.path.empty()) {
    auto second = History::OpenToRead(options.path);
    if (!second.ok()) return second.status();
    reading = *std::move(second);
  }
  const std::map<std::string, int> known = history->LastNumbers();
  const std::lock_guard<std::mutex> lock(mutex);
  to_read = std::move(reading);
  for (const auto& [job, number] : known) numbers[job] = std::max(numbers[job], number);
  return absl::OkStatus();
}

// Likewise.
void HistoryKeeper::Core::Close() {
  history = nullptr;
  const std::lock_guard<std::mutex> lock(mutex);
  to_read = nullptr;
}

absl::Status HistoryKeeper::Core::SaveNext() {
  Item item;
  {
    const std::lock_guard<std::mutex> lock(mutex);
    if (waiting.empty()) return absl::OkStatus();
    item = std::min_element(waiting.begin(), waiting.end(), [](const auto& a, const auto& b) {
             return a.second.order < b.second.order;
           })->second;
  }
  const absl::Status status = history->Save(item.incident);
  if (!status.ok()) return status;
  const std::lock_guard<std::mutex> lock(mutex);
  const auto at = waiting.find(item.incident.id());
  if (at != waiting.end() && at->second.order == item.order) waiting.erase(at);
  return status;
}

absl::Status HistoryKeeper::Core::TrimIfDue() {
  const int64_t now_ns = SteadyNs();
  if (now_ns - trimmed_ns < kTrimEveryNs) return absl::OkStatus();
  trimmed_ns = now_ns;
  return history->Trim(WallNs(now_ns));
}

void HistoryKeeper::Core::Write() {
  std::unique_lock<std::mutex> lock(mutex);
  while (true) {
    if (finishing && (waiting.empty() || (has_tried && !problem.ok()))) return;
    const int64_t wait_ns = next_try_ns - SteadyNs();
    if (!finishing && HasWork() && wait_ns > 0) {
      wake_writer.wait_for(lock, std::chrono::nanoseconds(wait_ns));
      continue;
    }
    if (!finishing && !HasWork()) {
      // Not for ever, for old incidents are to be forgotten.
      wake_writer.wait_for(lock, std::chrono::nanoseconds(kTrimEveryNs));
    }
    const bool must_go = std::exchange(is_damaged, false);
    lock.unlock();
    if (must_go) {
      Close();
      History::PutAside(options.path);
    }
    if (history != nullptr && !history->IsInPlace()) Close();
    const bool was_open = history != nullptr;
    absl::Status status = was_open ? absl::OkStatus() : Open();
    if (status.ok()) status = SaveNext();
    if (status.ok()) status = TrimIfDue();
    if (absl::IsDataLoss(status)) {
      Close();
      History::PutAside(options.path);
    }
    lock.lock();
    if (!was_open && history != nullptr && has_tried) begun_anew = true;
    Settle(status);
  }
}

// With the mutex held.
void HistoryKeeper::Core::Settle(const absl::Status& status) {
  has_tried = true;
  problem = status;
  wake_asker.notify_all();
  if (status.ok()) {
    pause_ns = options.first_pause_ns;
    next_try_ns = 0;
    said = false;
    return;
  }
  ++counts.failed;
  if (!said) spdlog::error("the history was not written: {}", std::string(status.message()));
  said = true;
  // A damaged file is out of the way: what was to be saved goes to a new one at once.
  if (absl::IsDataLoss(status) && pause_ns == options.first_pause_ns) {
    pause_ns *= 2;
    problem = absl::OkStatus();
    return;
  }
  next_try_ns = SteadyNs() + pause_ns;
  pause_ns = std::min(pause_ns * 2, options.longest_pause_ns);
}

void HistoryKeeper::Core::Read() {
  std::unique_lock<std::mutex> lock(mutex);
  while (true) {
    wake_reader.wait(lock, [this] { return finishing || !questions.empty(); });
    if (questions.empty()) return;
    const std::shared_ptr<Question> question = questions.front();
    questions.pop_front();
    const std::shared_ptr<History> from = to_read;
    if (question->is_dropped || from == nullptr) continue;
    lock.unlock();
    question->ask(*from);
    lock.lock();
    question->is_done = true;
    wake_asker.notify_all();
  }
}

// On the reading thread: the writing one may not have met the damage.
void HistoryKeeper::Core::SetDamage(const History& read) {
  const std::lock_guard<std::mutex> lock(mutex);
  if (to_read.get() != &read) return;  // that file is out of the way already
  is_damaged = true;
  wake_writer.notify_all();
}

void HistoryKeeper::Core::DropOldest() {
  const auto oldest =
      std::min_element(waiting.begin(), waiting.end(), [](const auto& a, const auto& b) {
        return std::make_pair(a.second.incident.has_confirmed_at(), a.second.order) <
               std::make_pair(b.second.incident.has_confirmed_at(), b.second.order);
      });
  if (oldest->second.incident.has_confirmed_at()) {
    spdlog::error("incident {} will be missing in the history: {} others wait to be saved",
                  oldest->first, waiting.size() - 1);
  }
  waiting.erase(oldest);
  ++counts.lost;
}

HistoryKeeper::HistoryKeeper(HistoryKeeperOptions options)
    : core_(std::make_shared<Core>(std::move(options))) {}

HistoryKeeper::~HistoryKeeper() { Finish(std::chrono::steady_clock::now() + kLastWait); }

absl::Status HistoryKeeper::Start() {
  writer_.Start([core = core_] { core->Write(); });
  reader_.Start([core = core_] { core->Read(); });
  absl::Status problem;
  {
    std::unique_lock<std::mutex> lock(core_->mutex);
    const bool answered = core_->wake_asker.wait_for(lock, kStartPatience,
                                                     [this] { return core_->has_tried; });
    problem = answered ? core_->problem
                       : absl::UnavailableError(absl::StrCat(
                             "the history ", core_->options.path, " cannot be used: its disk does "
                             "not answer\n  another one?  --history=FILE"));
  }
  if (problem.ok() || core_->options.is_optional) return absl::OkStatus();
  Finish(std::chrono::steady_clock::now() + std::chrono::seconds(1));
  return problem;
}

int HistoryKeeper::LastNumber(const std::string& job) const {
  const std::lock_guard<std::mutex> lock(core_->mutex);
  const auto at = core_->numbers.find(job);
  return at == core_->numbers.end() ? 0 : at->second;
}

void HistoryKeeper::Save(v1::Incident incident) {
  const std::lock_guard<std::mutex> lock(core_->mutex);
  if (core_->finishing) return;
  int& number = core_->numbers[incident.job()];
  number = std::max(number, NumberOf(incident));
  Item& item = core_->waiting[incident.id()];
  item.incident = std::move(incident);
  item.order = core_->next_order++;
  if (core_->waiting.size() > core_->options.most_waiting) core_->DropOldest();
  core_->wake_writer.notify_all();
}

bool HistoryKeeper::TakeBegunAnew() {
  const std::lock_guard<std::mutex> lock(core_->mutex);
  return std::exchange(core_->begun_anew, false);
}

namespace {

// Runs `ask` on the reading thread. False: no answer in time; then it may still run, later.
template <typename Core>
bool Ask(Core* core, std::function<void(const History&)> ask) {
  const auto question = std::make_shared<Question>();
  question->ask = std::move(ask);
  std::unique_lock<std::mutex> lock(core->mutex);
  if (core->to_read == nullptr || core->finishing || core->questions.size() >= kMostQuestions) {
    return false;
  }
  core->questions.push_back(question);
  core->wake_reader.notify_all();
  core->wake_asker.wait_for(lock, kReadPatience, [&] { return question->is_done; });
  question->is_dropped = !question->is_done;
  return question->is_done;
}

}  // namespace

absl::StatusOr<v1::ListIncidentsResponse> HistoryKeeper::List(
    const v1::ListIncidentsRequest& request, const std::vector<v1::Incident>& live) const {
  std::map<std::string, v1::Incident> newer;  // than the history's, by id
  {
    const std::lock_guard<std::mutex> lock(core_->mutex);
    for (const auto& [id, item] : core_->waiting) newer[id] = item.incident;
  }
  for (const v1::Incident& incident : live) newer[incident.id()] = incident;
  std::vector<std::string> ids;
  std::vector<v1::Incident> in_memory;
  for (auto& [id, incident] : newer) {
    ids.push_back(id);
    if (IsAskedFor(incident, request)) in_memory.push_back(std::move(incident));
  }
  const Window window = WindowFor(request, static_cast<int64_t>(in_memory.size()));
  using Answer = absl::StatusOr<v1::ListIncidentsResponse>;
  // Its own, for whoever asks may be gone when the answer comes.
  const auto answer = std::make_shared<Answer>(absl::UnavailableError("the history does not answer"));
  // It holds no share of the core, which it is a part of.
  const bool came = Ask(core_.get(), [core = core_.get(), answer, ids, request,
                                      window](const History& history) {
    *answer = history.ListWithout(ids, request, window.offset, window.limit);
    if (absl::IsDataLoss(answer->status())) core->SetDamage(history);
  });
  if (!came) return absl::UnavailableError("the history does not answer");
  if (!answer->ok()) return answer->status();
  return Merge(request, std::move(in_memory), window, **std::move(answer));
}

std::optional<v1::Incident> HistoryKeeper::Get(const std::string& id) const {
  {
    const std::lock_guard<std::mutex> lock(core_->mutex);
    const auto at = core_->waiting.find(id);
    if (at != core_->waiting.end()) return at->second.incident;
  }
  const auto answer = std::make_shared<std::optional<v1::Incident>>();
  const bool came =
      Ask(core_.get(), [answer, id](const History& history) { *answer = history.Get(id); });
  return came ? *answer : std::nullopt;
}

HistoryKeeper::Counts HistoryKeeper::counts() const {
  const std::lock_guard<std::mutex> lock(core_->mutex);
  Counts counts = core_->counts;
  counts.waiting = core_->waiting.size();
  return counts;
}

void HistoryKeeper::Finish(SteadyTime deadline) {
  {
    const std::lock_guard<std::mutex> lock(core_->mutex);
    if (core_->finishing) return;
    core_->finishing = true;
    core_->problem = absl::OkStatus();  // one more try
    core_->wake_writer.notify_all();
    core_->wake_reader.notify_all();
  }
  writer_.Join(deadline);
  reader_.Join(deadline);
  const std::lock_guard<std::mutex> lock(core_->mutex);
  if (core_->waiting.empty()) return;
  core_->counts.lost += core_->waiting.size();
  spdlog::error("{} {} not saved in the history {}: {}", core_->waiting.size(),
                core_->waiting.size() == 1 ? "incident was" : "incidents were", core_->options.path,
                core_->problem.ok() ? "its disk does not answer"
                                    : std::string(core_->problem.message()));
}

}  // namespace rollcall
