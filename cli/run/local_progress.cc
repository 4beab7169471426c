// SPDX-License-Identifier: Apache-2.0
#include "cli/run/local_progress.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "agent/segments/segment_reader.h"
#include "base/durations.h"
#include "base/monotonic_clock.h"
#include "base/mutex.h"

namespace rollcall {
namespace {

constexpr std::chrono::milliseconds kLookEvery{100};
constexpr int64_t kLookIsOldNs = 2 * kSecond;
constexpr std::chrono::milliseconds kEndsWithin{200};

}  // namespace

struct LocalProgress::Shared {
  Mutex mutex;
  Condition changed;
  std::shared_ptr<const Found> newest ABSL_GUARDED_BY(mutex) = std::make_shared<Found>();
};

// Reads the segments of the folder. Belongs to the thread.
class LocalProgress::Reader {
 public:
  Reader(std::string directory, size_t most) : directory_(std::move(directory)), most_(most) {}

  const Found& Look(int64_t now_ns) {
    found_.looked_ns = now_ns;
    OpenNew();
    for (auto at = readers_.begin(); at != readers_.end();) {
      if (at->second->file().Deleted()) {  // its process has ended
        found_.ranks.erase(at->first);
        at = readers_.erase(at);
        continue;
      }
      LookAt(at->second.get(), &found_.ranks[at->first]);
      ++at;
    }
    return found_;
  }

 private:
  void OpenNew() {
    std::error_code error;
    found_.has_all = true;
    for (const auto& entry : std::filesystem::directory_iterator(directory_, error)) {
      const std::string name = entry.path().filename();
      if (!IsSegmentName(name) || readers_.count(name) != 0) continue;
      if (readers_.size() >= most_) {
        found_.has_all = false;
        return WarnOnce();
      }
      auto reader = SegmentReader::Open(entry.path());
      if (reader.ok()) readers_[name] = *std::move(reader);
      if (absl::IsUnavailable(reader.status())) found_.has_all = false;
    }
  }

  void WarnOnce() {
    if (std::exchange(has_warned_, true)) return;
    spdlog::warn("{} has more than {} segments: --on-hang cannot check that all ranks stand still",
                 directory_, most_);
  }

  void LookAt(SegmentReader* reader, Rank* rank) {
    const absl::StatusOr<SegmentSnapshot> snapshot = reader->Read();
    if (!snapshot.ok()) return;
    rank->global_rank = snapshot->global_rank;
    found_.pids.insert(snapshot->pid);
    for (const CommSnapshot& comm : snapshot->communicators) {
      const uint64_t calls = comm.entered + comm.returned + comm.p2p_entered + comm.p2p_returned +
                             comm.finished + comm.p2p_finished + comm.messages_issued +
                             static_cast<uint64_t>(comm.state);
      const auto [at, is_new] = rank->members.try_emplace({comm.index, comm.init_ticks});
      if (!is_new && at->second.calls == calls) continue;
      at->second = {comm.id, calls, found_.looked_ns};
      if (comm.id != 0) found_.communicators.insert(comm.id);
    }
  }

  const std::string directory_;
  const size_t most_;                                              // segments
  std::map<std::string, std::unique_ptr<SegmentReader>> readers_;  // by the name of the segment
  Found found_;
  bool has_warned_ = false;
};

LocalProgress::LocalProgress(std::string directory, size_t most_segments)
    : shared_(std::make_shared<Shared>()) {
  worker_.Repeat(
      [reader = std::make_shared<Reader>(std::move(directory), most_segments), shared = shared_] {
        auto found = std::make_shared<Found>(reader->Look(MonotonicNs()));
        const MutexLock lock(shared->mutex);
        shared->newest = std::move(found);
        shared->changed.NotifyAll();
        return kLookEvery;
      });
}

LocalProgress::~LocalProgress() { worker_.Finish(std::chrono::steady_clock::now() + kEndsWithin); }

std::shared_ptr<const LocalProgress::Found> LocalProgress::Newest() const {
  const MutexLock lock(shared_->mutex);
  return shared_->newest;
}

void LocalProgress::AwaitReading(SteadyTime deadline) const {
  const MutexLock lock(shared_->mutex);
  while (shared_->newest->looked_ns == 0 && shared_->changed.WaitUntil(shared_->mutex, deadline)) {
  }
}

std::set<uint64_t> LocalProgress::communicators() const { return Newest()->communicators; }

std::set<pid_t> LocalProgress::pids() const { return Newest()->pids; }

int64_t LocalProgress::StandsStillFor(const RankRanges& ranks, uint64_t communicator,
                                      int64_t now_ns) const {
  const std::shared_ptr<const Found> found = Newest();
  if (!found->has_all || now_ns - found->looked_ns > kLookIsOldNs) return 0;
  const bool any_here =
      std::any_of(found->ranks.begin(), found->ranks.end(),
                  [&](const auto& entry) { return ranks.Contains(entry.second.global_rank); });
  int64_t moved_ns = -1;
  for (const auto& [name, rank] : found->ranks) {
    if (any_here && !ranks.Contains(rank.global_rank)) continue;
    const bool has_it =
        std::any_of(rank.members.begin(), rank.members.end(),
                    [&](const auto& member) { return member.second.communicator == communicator; });
    for (const auto& [block, moves] : rank.members) {
      if (has_it && moves.communicator != communicator) continue;
      moved_ns = std::max(moved_ns, moves.since_ns);
    }
  }
  return moved_ns < 0 ? 0 : std::max<int64_t>(0, found->looked_ns - moved_ns);
}

}  // namespace rollcall
