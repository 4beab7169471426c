// SPDX-License-Identifier: Apache-2.0
#include "cli/local_progress.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"

namespace rollcall {

LocalProgress::LocalProgress(std::string directory) : directory_(std::move(directory)) {}
LocalProgress::~LocalProgress() = default;

void LocalProgress::Look(int64_t now_ns) {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(directory_, error)) {
    const std::string name = entry.path().filename();
    if (!IsSegmentName(name) || ranks_.count(name) != 0) continue;
    auto reader = SegmentReader::Open(entry.path());
    if (reader.ok()) ranks_[name].reader = *std::move(reader);
  }
  for (auto at = ranks_.begin(); at != ranks_.end();) {
    if (at->second.reader->Deleted()) {  // its process has ended
      at = ranks_.erase(at);
      continue;
    }
    LookAt(&at->second, now_ns);
    ++at;
  }
}

void LocalProgress::LookAt(Rank* rank, int64_t now_ns) {
  const absl::StatusOr<SegmentSnapshot> snapshot = rank->reader->Read();
  if (!snapshot.ok()) return;
  rank->global_rank = snapshot->global_rank;
  for (const CommSnapshot& comm : snapshot->communicators) {
    const uint64_t calls = comm.entered + comm.returned + comm.p2p_entered + comm.p2p_returned +
                           comm.finished + comm.p2p_finished + static_cast<uint64_t>(comm.state);
    const auto [at, is_new] = rank->members.try_emplace({comm.index, comm.init_ticks});
    if (!is_new && at->second.calls == calls) continue;
    at->second = {comm.id, calls, now_ns};
    if (comm.id != 0) communicators_.insert(comm.id);
  }
}

int64_t LocalProgress::StandsStillFor(const RankRanges& ranks, uint64_t communicator,
                                      int64_t now_ns) const {
  const bool any_here = std::any_of(ranks_.begin(), ranks_.end(), [&](const auto& entry) {
    return ranks.Contains(entry.second.global_rank);
  });
  int64_t moved_ns = -1;
  for (const auto& [name, rank] : ranks_) {
    if (any_here && !ranks.Contains(rank.global_rank)) continue;
    const bool has_it =
        std::any_of(rank.members.begin(), rank.members.end(), [&](const auto& member) {
          return member.second.communicator == communicator;
        });
    for (const auto& [block, moves] : rank.members) {
      if (has_it && moves.communicator != communicator) continue;
      moved_ns = std::max(moved_ns, moves.since_ns);
    }
  }
  return moved_ns < 0 ? 0 : std::max<int64_t>(0, now_ns - moved_ns);
}

}  // namespace rollcall
