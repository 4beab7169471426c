// SPDX-License-Identifier: Apache-2.0
#include "daemon/server/report_queue.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "daemon/report/writer.h"
#include "daemon/server/descriptors.h"
#include "daemon/words/terms.h"
#include "proto/steady_clock.h"

namespace rollcall {
namespace {

constexpr size_t kSpareDescriptors = 8;
constexpr std::chrono::seconds kLastWait{1};
constexpr size_t kMostFolders = 10'000;
// Less of a delay is not worth a word in the report.
constexpr int64_t kLateNs = 5'000'000'000;

struct Item {
  v1::Incident incident;
  std::string folder;
  int64_t put_ns = 0;  // when its first unwritten state came
  int64_t next_try_ns = 0;
  int64_t pause_ns = 0;
  std::string problem;  // of the last try
};

std::string LateNote(const Item& item, int64_t now_ns) {
  if (item.problem.empty() || now_ns - item.put_ns < kLateNs || !item.folder.empty()) return "";
  return absl::StrCat("written ", DurationInWords(now_ns - item.put_ns),
                      " after the hang was confirmed: ", item.problem);
}

// Whoever writes may have to give descriptors up first: connections have used up the others.
absl::Status WriteOnce(const std::string& report_dir, const v1::Incident& incident,
                       std::string* folder) {
  if (!folder->empty()) {
    const absl::Status updated = UpdateReport(*folder, incident);
    if (!absl::IsNotFound(updated)) return updated;
    folder->clear();  // somebody has removed it
  }
  auto created = CreateReport(report_dir, incident);
  if (created.ok()) *folder = *std::move(created);
  return created.status();
}

}  // namespace

// Shared with the thread, which may outlive the queue.
struct ReportQueue::Core {
  explicit Core(ReportQueueOptions given) : options(std::move(given)) {}

  void Run();
  Item* NextItem(int64_t now_ns, int64_t* wait_ns);
  absl::Status Write(Item* item);
  void Settle(Item item, const absl::Status& status);
  void Lose(const std::string& job, const std::string& id, const std::string& folder,
            const std::string& problem);
  size_t Unwritten() const;
  void DropOldest();
  void SayOnce(const std::string& problem);

  const ReportQueueOptions options;
  SpareDescriptors spare{kSpareDescriptors};  // the thread's own

  mutable std::mutex mutex;
  std::condition_variable wake;
  std::map<std::string, Item> waiting;  // by incident
  std::string writing, writing_job;     // this incident's report; "": none
  int64_t writing_since_ns = 0;         // when its state was put
  std::map<std::string, std::string> folders;  // by incident
  std::vector<Written> written;
  Counts counts;
  bool finishing = false;
  bool abandoned = false;  // nobody waits any more
  bool said = false;       // that reports cannot be written
};

// The one to be tried next; null if that is later, in `*wait_ns`, or nothing waits (-1).
Item* ReportQueue::Core::NextItem(int64_t now_ns, int64_t* wait_ns) {
  Item* next = nullptr;
  for (auto& [id, item] : waiting) {
    if (next == nullptr || item.next_try_ns < next->next_try_ns) next = &item;
  }
  *wait_ns = -1;
  if (next == nullptr || finishing || next->next_try_ns <= now_ns) return next;
  *wait_ns = next->next_try_ns - now_ns;
  return nullptr;
}

void ReportQueue::Core::Run() {
  std::unique_lock<std::mutex> lock(mutex);
  while (!abandoned) {
    int64_t wait_ns = 0;
    const Item* next = NextItem(SteadyNs(), &wait_ns);
    if (next == nullptr) {
      if (finishing) return;
      if (wait_ns < 0) {
        wake.wait(lock);
      } else {
        wake.wait_for(lock, std::chrono::nanoseconds(wait_ns));
      }
      continue;
    }
    auto node = waiting.extract(next->incident.id());
    Item item = std::move(node.mapped());
    writing = item.incident.id();
    writing_job = item.incident.job();
    writing_since_ns = item.put_ns;
    lock.unlock();
    const absl::Status status = Write(&item);
    lock.lock();
    writing.clear();
    Settle(std::move(item), status);
  }
}

absl::Status ReportQueue::Core::Write(Item* item) {
  const std::string note = LateNote(*item, SteadyNs());
  if (!note.empty()) item->incident.set_report_note(note);
  absl::Status status = WriteOnce(options.report_dir, item->incident, &item->folder);
  if (absl::IsUnavailable(status)) {
    spare.Release();
    status = WriteOnce(options.report_dir, item->incident, &item->folder);
    spare.Take();
  }
  return status;
}

// With the mutex held.
void ReportQueue::Core::Settle(Item item, const absl::Status& status) {
  const std::string id = item.incident.id();
  const auto newer = waiting.find(id);
  if (status.ok()) {
    ++counts.written;
    said = false;
    if (folders.size() >= kMostFolders) folders.erase(folders.begin());
    folders[id] = item.folder;
    written.push_back({item.incident.job(), id, item.folder, item.incident.report_note()});
    if (newer != waiting.end()) newer->second.folder = item.folder;
    return;
  }
  ++counts.failed;
  SayOnce(std::string(status.message()));
  if (finishing) {
    Lose(item.incident.job(), id, item.folder, std::string(status.message()));
    waiting.erase(id);
    return;
  }
  item.problem = std::string(status.message());
  item.next_try_ns = SteadyNs() + item.pause_ns;
  item.pause_ns = std::min(item.pause_ns * 2, options.longest_pause_ns);
  if (newer != waiting.end()) item.incident = std::move(newer->second.incident);
  waiting[id] = std::move(item);
}

// An older state of the report may be on disk.
void ReportQueue::Core::Lose(const std::string& job, const std::string& id,
                             const std::string& folder, const std::string& problem) {
  ++counts.lost;
  if (folder.empty()) written.push_back({job, id, "", absl::StrCat("not written: ", problem)});
}

// Incidents. With the mutex held.
size_t ReportQueue::Core::Unwritten() const {
  const bool alone = !writing.empty() && waiting.count(writing) == 0;  // no newer state waits
  return waiting.size() + (alone ? 1 : 0);
}

void ReportQueue::Core::SayOnce(const std::string& problem) {
  if (said) return;
  said = true;
  spdlog::error("the report was not written: {}{}", problem, finishing ? "" : "; tried again later");
}

void ReportQueue::Core::DropOldest() {
  const auto oldest =
      std::min_element(waiting.begin(), waiting.end(), [](const auto& a, const auto& b) {
        return a.second.put_ns < b.second.put_ns;
      });
  spdlog::error("the report of {} is given up: {} others wait to be written", oldest->first,
                waiting.size() - 1);
  Lose(oldest->second.incident.job(), oldest->first, oldest->second.folder,
       "too many reports wait to be written");
  waiting.erase(oldest);
}

ReportQueue::ReportQueue(ReportQueueOptions options)
    : core_(std::make_shared<Core>(std::move(options))) {
  if (!core_->options.report_dir.empty()) thread_.Start([core = core_] { core->Run(); });
}

ReportQueue::~ReportQueue() { Finish(std::chrono::steady_clock::now() + kLastWait); }

void ReportQueue::Put(v1::Incident incident, const std::string& folder) {
  const std::lock_guard<std::mutex> lock(core_->mutex);
  if (core_->options.report_dir.empty() || core_->finishing) return;
  const std::string id = incident.id();
  const auto [at, is_new] = core_->waiting.try_emplace(id);
  Item& item = at->second;
  const auto known = core_->folders.find(id);
  if (is_new) {
    item.put_ns = core_->writing == id ? core_->writing_since_ns : SteadyNs();
    item.pause_ns = core_->options.first_pause_ns;
    item.folder = known == core_->folders.end() ? folder : known->second;
  }
  item.incident = std::move(incident);
  if (core_->waiting.size() > core_->options.most_waiting) core_->DropOldest();
  core_->wake.notify_all();
}

std::vector<ReportQueue::Written> ReportQueue::TakeWritten() {
  const std::lock_guard<std::mutex> lock(core_->mutex);
  return std::exchange(core_->written, {});
}

std::string ReportQueue::FindProblem(const std::string& incident, int64_t patience_ns) const {
  const std::lock_guard<std::mutex> lock(core_->mutex);
  const auto at = core_->waiting.find(incident);
  const bool waits = at != core_->waiting.end();
  if (!waits && core_->writing != incident) return "";
  const int64_t since_ns = waits ? at->second.put_ns : core_->writing_since_ns;
  if (SteadyNs() - since_ns < patience_ns) return "";
  const std::string problem = waits ? at->second.problem : "";
  return absl::StrCat("not written yet: ", problem.empty() ? "the disk does not answer" : problem);
}

ReportQueue::Counts ReportQueue::counts() const {
  const std::lock_guard<std::mutex> lock(core_->mutex);
  Counts counts = core_->counts;
  counts.waiting = core_->Unwritten();
  return counts;
}

void ReportQueue::Finish(SteadyTime deadline) {
  {
    const std::lock_guard<std::mutex> lock(core_->mutex);
    core_->finishing = true;
    core_->wake.notify_all();
  }
  if (thread_.Join(deadline)) return;
  const std::lock_guard<std::mutex> lock(core_->mutex);
  core_->abandoned = true;
  const size_t open = core_->Unwritten();
  const char* const problem = "the disk does not answer";
  const bool newer_waits = core_->waiting.count(core_->writing) != 0;
  if (!core_->writing.empty() && !newer_waits) {
    core_->Lose(core_->writing_job, core_->writing, "", problem);
  }
  for (const auto& [id, item] : core_->waiting) {
    core_->Lose(item.incident.job(), id, item.folder, problem);
  }
  if (open == 0) return;
  spdlog::error("{} {} not written: {} does not answer", open,
                open == 1 ? "report was" : "reports were", core_->options.report_dir);
}

}  // namespace rollcall
