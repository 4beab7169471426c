// SPDX-License-Identifier: Apache-2.0
#include "daemon/queries/past_views.h"

#include <zlib.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "proto/timestamps.h"

namespace rollcall {
namespace {

constexpr size_t kOverhead = 64;  // of a state, beside its text
constexpr size_t kSizeBytes = 4;  // in front of the compressed text: the size of the text
constexpr size_t kMostText = size_t{256} << 20;
constexpr size_t kFewest = 4;  // states that are not made coarser

std::string Compress(const std::string& text) {
  uLongf size = compressBound(text.size());
  std::string out(kSizeBytes + size, '\0');
  for (size_t i = 0; i < kSizeBytes; ++i) out[i] = static_cast<char>(text.size() >> (8 * i));
  auto* to = reinterpret_cast<Bytef*>(&out[kSizeBytes]);
  const auto* from = reinterpret_cast<const Bytef*>(text.data());
  if (compress2(to, &size, from, text.size(), Z_BEST_SPEED) != Z_OK) return "";
  out.resize(kSizeBytes + size);
  out.shrink_to_fit();
  return out;
}

std::string Decompress(const std::string& compressed) {
  uLongf size = 0;
  for (size_t i = 0; i < kSizeBytes; ++i) {
    size |= uLongf{static_cast<uint8_t>(compressed[i])} << (8 * i);
  }
  std::string text(size, '\0');
  const auto* from = reinterpret_cast<const Bytef*>(compressed.data() + kSizeBytes);
  const int result =
      uncompress(reinterpret_cast<Bytef*>(&text[0]), &size, from, compressed.size() - kSizeBytes);
  return result == Z_OK ? text : "";
}

}  // namespace

void PastViews::Add(const JobKey& job, int64_t at_ns, const v1::JobView& view) {
  const std::string text = view.SerializeAsString();
  std::string compressed = text.size() > kMostText ? "" : Compress(text);
  if (compressed.empty()) return;
  const bool has_ended = view.status().state() == "ended";
  const MutexLock lock(mutex_);
  Past& past = jobs_[job];
  if (!past.states.empty() && past.states.back().at_ns >= at_ns) return;
  if (past.has_ended && has_ended) return;
  past.has_ended = has_ended;
  const size_t bytes = compressed.size() + kOverhead;
  past.states.push_back({at_ns, std::move(compressed)});
  past.bytes += bytes;
  bytes_ += bytes;
  KeepWithinLimit();
}

absl::StatusOr<v1::JobView> PastViews::Find(const JobKey& job, int64_t at_ns) const {
  std::string compressed;
  int64_t found_ns = 0, oldest_ns = 0;
  {
    const MutexLock lock(mutex_);
    const auto known = jobs_.find(job);
    if (known == jobs_.end() || known->second.states.empty()) {
      return absl::NotFoundError("the daemon has kept no earlier state of this job");
    }
    const std::deque<State>& states = known->second.states;
    oldest_ns = states.front().at_ns;
    const auto after =
        std::upper_bound(states.begin(), states.end(), at_ns,
                         [](int64_t time_ns, const State& state) { return time_ns < state.at_ns; });
    if (after != states.begin()) {
      compressed = std::prev(after)->compressed;
      found_ns = std::prev(after)->at_ns;
    }
  }
  if (compressed.empty()) {
    // The next whole second, so that a request for the named time finds it.
    const absl::Time named = absl::FromUnixNanos(oldest_ns + 999'999'999);
    return absl::NotFoundError(
        absl::StrCat("the oldest state of this job that the daemon has kept is of ",
                     absl::FormatTime(absl::RFC3339_sec, named, absl::UTCTimeZone())));
  }
  v1::JobView view;
  if (!view.ParseFromString(Decompress(compressed))) {
    return absl::InternalError("the daemon cannot read the state that it has kept");
  }
  *view.mutable_now() = ToTimestamp(found_ns);
  *view.mutable_kept_from() = ToTimestamp(oldest_ns);
  view.set_is_kept(true);
  return view;
}

std::optional<int64_t> PastViews::Oldest(const JobKey& job) const {
  const MutexLock lock(mutex_);
  const auto known = jobs_.find(job);
  if (known == jobs_.end() || known->second.states.empty()) return std::nullopt;
  return known->second.states.front().at_ns;
}

void PastViews::DropOld(int64_t now_ns) {
  const MutexLock lock(mutex_);
  for (auto at = jobs_.begin(); at != jobs_.end();) {
    Past& past = at->second;
    while (!past.states.empty() && past.states.front().at_ns < now_ns - keep_ns_) {
      const size_t bytes = past.states.front().compressed.size() + kOverhead;
      past.bytes -= bytes;
      bytes_ -= bytes;
      past.states.pop_front();
    }
    at = past.states.empty() ? jobs_.erase(at) : std::next(at);
  }
}

// Drops every second state of the older half.
void PastViews::Thin(Past* past) {
  std::deque<State> kept;
  const size_t half = past->states.size() / 2;
  for (size_t i = 0; i < past->states.size(); ++i) {
    State& state = past->states[i];
    if (i < half && i % 2 == 1) {
      const size_t bytes = state.compressed.size() + kOverhead;
      past->bytes -= bytes;
      bytes_ -= bytes;
    } else {
      kept.push_back(std::move(state));
    }
  }
  past->states.swap(kept);
}

void PastViews::KeepWithinLimit() {
  while (bytes_ > most_bytes_) {
    const auto largest = std::max_element(
        jobs_.begin(), jobs_.end(),
        [](const auto& a, const auto& b) { return a.second.bytes < b.second.bytes; });
    if (largest->second.states.size() > kFewest) {
      Thin(&largest->second);
    } else {
      bytes_ -= largest->second.bytes;
      jobs_.erase(largest);
    }
  }
}

size_t PastViews::bytes() const {
  const MutexLock lock(mutex_);
  return bytes_;
}

size_t PastViews::states() const {
  const MutexLock lock(mutex_);
  size_t states = 0;
  for (const auto& [job, past] : jobs_) states += past.states.size();
  return states;
}

}  // namespace rollcall
