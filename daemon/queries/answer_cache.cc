// SPDX-License-Identifier: Apache-2.0
#include "daemon/queries/answer_cache.h"

#include <zlib.h>

#include <algorithm>
#include <functional>

#include "absl/strings/str_cat.h"

namespace rollcall {
namespace {

constexpr size_t kBytesOfEntry = 256;  // besides its texts
constexpr int kGzipWindow = 15 + 16;
constexpr int kLevel = 1;  // the network is rarely the bottleneck

std::string Gzip(const std::string& text) {
  z_stream stream = {};
  if (deflateInit2(&stream, kLevel, Z_DEFLATED, kGzipWindow, 8, Z_DEFAULT_STRATEGY) != Z_OK) {
    return "";
  }
  std::string out(deflateBound(&stream, text.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  const int result = deflate(&stream, Z_FINISH);
  out.resize(result == Z_STREAM_END ? stream.total_out : 0);
  deflateEnd(&stream);
  return out;
}

}  // namespace

size_t AnswerCache::bytes() const {
  const MutexLock lock(mutex_);
  return bytes_;
}

AnswerCache::EntryPtr AnswerCache::FindOrAdd(const std::string& key) {
  const MutexLock lock(mutex_);
  EntryPtr& entry = entries_[key];
  if (entry == nullptr) entry = std::make_shared<Entry>();
  entry->used = ++requests_;
  return entry;
}

void AnswerCache::Erase(std::map<std::string, EntryPtr>::iterator at) {
  bytes_ -= at->second->bytes;
  entries_.erase(at);
}

// `bytes`: of the entry's new answer, or 0.
void AnswerCache::SetBytes(const std::string& key, const EntryPtr& entry, size_t bytes) {
  const MutexLock lock(mutex_);
  const auto at = entries_.find(key);
  if (at == entries_.end() || at->second != entry) return;  // others have taken its room
  if (bytes == 0) return Erase(at);
  bytes_ -= entry->bytes;
  entry->bytes = bytes + key.size() + kBytesOfEntry;
  bytes_ += entry->bytes;
  while (bytes_ > most_bytes_) {
    Erase(std::min_element(entries_.begin(), entries_.end(), [](const auto& a, const auto& b) {
      return a.second->used < b.second->used;
    }));
  }
}

absl::StatusOr<AnswerCache::Answer> AnswerCache::Get(
    const std::string& key, uint64_t version, int64_t now_ns,
    const std::function<absl::StatusOr<std::string>()>& make) {
  const EntryPtr entry = FindOrAdd(key);
  const MutexLock lock(entry->mutex);
  const int64_t age_ns = now_ns - entry->made_ns;
  const bool fresh = entry->version == version ? age_ns < most_ns_ : age_ns < least_ns_;
  if (entry->answer != nullptr && age_ns >= 0 && fresh) return entry->answer;
  auto made = make();
  if (!made.ok()) {
    SetBytes(key, entry, 0);
    return made.status();
  }
  auto answer = std::make_shared<CachedAnswer>();
  answer->gzip = Gzip(*made);
  answer->gzip.shrink_to_fit();
  answer->etag = absl::StrCat("\"", absl::Hex(std::hash<std::string>()(*made)), "\"");
  answer->json = *std::move(made);
  answer->json.shrink_to_fit();
  entry->answer = answer;
  entry->version = version;
  entry->made_ns = now_ns;
  SetBytes(key, entry, answer->json.size() + answer->gzip.size());
  return answer;
}

}  // namespace rollcall
