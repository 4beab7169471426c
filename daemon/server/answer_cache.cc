// SPDX-License-Identifier: Apache-2.0
#include "daemon/server/answer_cache.h"

#include <zlib.h>

#include <functional>

#include "absl/strings/str_cat.h"

namespace rollcall {
namespace {

constexpr size_t kMaxEntries = 1000;
constexpr int kGzipWindow = 15 + 16;
constexpr int kLevel = 1;  // the network is rarely what is short

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

absl::StatusOr<AnswerCache::Answer> AnswerCache::Get(
    const std::string& key, uint64_t version, int64_t now_ns,
    const std::function<absl::StatusOr<std::string>()>& make) {
  std::shared_ptr<Entry> entry;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (entries_.size() > kMaxEntries) entries_.clear();
    std::shared_ptr<Entry>& place = entries_[key];
    if (place == nullptr) place = std::make_shared<Entry>();
    entry = place;
  }
  const std::lock_guard<std::mutex> lock(entry->mutex);
  const int64_t age_ns = now_ns - entry->made_ns;
  const bool fresh = entry->version == version ? age_ns < most_ns_ : age_ns < least_ns_;
  if (entry->answer != nullptr && age_ns >= 0 && fresh) return entry->answer;
  auto made = make();
  if (!made.ok()) return made.status();
  auto answer = std::make_shared<CachedAnswer>();
  answer->gzip = Gzip(*made);
  answer->etag = absl::StrCat("\"", absl::Hex(std::hash<std::string>()(*made)), "\"");
  answer->json = *std::move(made);
  entry->answer = answer;
  entry->version = version;
  entry->made_ns = now_ns;
  return entry->answer;
}

}  // namespace rollcall
