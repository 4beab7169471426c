// SPDX-License-Identifier: Apache-2.0
#include "net/http_viewers.h"

#include <chrono>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/steady_clock.h"

namespace rollcall {
namespace {

constexpr std::chrono::milliseconds kLookEvery{200};
// A viewer gets a comment after this time without a change.
constexpr int64_t kKeepAliveNs = 5'000'000'000;

}  // namespace

HttpViewers::HttpViewers(int limit, HttpVersion version, Deliver deliver, HttpOverShare over_share)
    : limit_(limit),
      version_(std::move(version)),
      deliver_(std::move(deliver)),
      over_share_(std::move(over_share)) {}
HttpViewers::~HttpViewers() { Stop(); }

void HttpViewers::Start() {
  worker_.Repeat([this] {
    SendEvents();
    return kLookEvery;
  });
}

void HttpViewers::Stop() { worker_.Finish(SteadyTime::max()); }

bool HttpViewers::Add(uint64_t id, Viewer viewer) {
  std::optional<Owner> loser;
  {
    const MutexLock lock(mutex_);
    if (IsFull()) {
      const auto makes_room = places_.MakesRoomFor(viewer.owner, Places::First::kNewest);
      if (!makes_room.has_value()) return false;
      loser = places_.OwnerOf(*makes_room);
      places_.Remove(*makes_room);
      viewers_[*makes_room].has_place = false;
    }
    places_.Put(id, viewer.owner, 1);
    viewers_[id] = {std::move(viewer)};
    worker_.Wake();
  }
  if (loser.has_value() && over_share_) over_share_(*loser);
  return true;
}

void HttpViewers::Remove(uint64_t id) {
  const MutexLock lock(mutex_);
  viewers_.erase(id);
  places_.Remove(id);
}

bool HttpViewers::HasRoomFor(const Owner& owner) const {
  {
    const MutexLock lock(mutex_);
    if (!IsFull() || places_.MakesRoomFor(owner, Places::First::kNewest).has_value()) return true;
  }
  if (over_share_) over_share_(owner);
  return false;
}

// Asks without the lock, because the answer may wait for the mutex of a job.
std::map<HttpTopic, uint64_t> HttpViewers::AskVersions() {
  std::map<HttpTopic, uint64_t> versions;
  for (const auto& [id, watched] : viewers_) versions.try_emplace(watched.viewer.topic);
  mutex_.Unlock();
  for (auto& [topic, version] : versions) version = version_(topic);
  mutex_.Lock();
  return versions;
}

bool HttpViewers::IsDue(const Watched& watched, const std::map<HttpTopic, uint64_t>& versions,
                        int64_t now_ns) const {
  const auto version = versions.find(watched.viewer.topic);
  if (version == versions.end()) return false;  // the viewer connected just now
  return !watched.has_place || watched.sent_ns == 0 || version->second != watched.version ||
         now_ns - watched.sent_ns >= kKeepAliveNs;
}

void HttpViewers::SendEvents() {
  MutexLock lock(mutex_);
  if (viewers_.empty()) return;
  const std::map<HttpTopic, uint64_t> versions = AskVersions();
  const int64_t now_ns = SteadyNs();
  std::vector<Event> events;
  for (auto& [id, watched] : viewers_) {
    if (!IsDue(watched, versions, now_ns)) continue;
    const uint64_t version = versions.at(watched.viewer.topic);
    const bool has_changed = watched.sent_ns == 0 || version != watched.version;
    watched.version = version;
    watched.sent_ns = now_ns;
    const bool is_allowed = !watched.viewer.is_allowed || watched.viewer.is_allowed();
    const bool is_end = !watched.has_place || !is_allowed;
    events.push_back({id,
                      has_changed ? absl::StrCat("event: change\ndata: ", version, "\n\n")
                                  : std::string(": alive\n\n"),
                      is_end});
  }
  lock.Unlock();
  for (Event& event : events) deliver_(std::move(event));
}

}  // namespace rollcall
