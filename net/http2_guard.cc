// SPDX-License-Identifier: Apache-2.0
#include "net/http2_guard.h"

#include <algorithm>
#include <cstring>

namespace rollcall {
namespace {

// RFC 9113, section 6.
enum FrameType : uint8_t {
  kData = 0,
  kHeaders = 1,
  kPriority = 2,
  kResetStream = 3,
  kSettingsFrame = 4,
  kPushPromise = 5,
  kPing = 6,
  kGoAway = 7,
  kWindowUpdate = 8,
  kContinuation = 9
};
constexpr uint8_t kEndStream = 1, kEndHeaders = 4, kPadded = 8, kHasPriority = 32;
constexpr size_t kMessagePrefix = 5;

}  // namespace

void HeaderFields::BeginField(uint8_t byte) {
  ++count_;
  uint8_t mask = 0;
  if ((byte & 0x80) != 0) {  // both in the table
    mask = 0x7f;
    texts_ = 0;
  } else if ((byte & 0xe0) == 0x20) {  // a size of the table
    mask = 0x1f;
    texts_ = 0;
  } else {
    mask = (byte & 0x40) != 0 ? 0x3f : 0x0f;
    texts_ = (byte & mask) == 0 ? 2 : 1;  // a name and a value, or a value
  }
  shift_ = 0;
  length_ = 0;
  if ((byte & mask) == mask) {
    step_ = Step::kIndex;
  } else {
    BeginText();
  }
}

void HeaderFields::BeginText() {
  step_ = texts_ > 0 ? Step::kLength : Step::kField;
  if (texts_ > 0) --texts_;
}

bool HeaderFields::ReadRest(uint8_t byte) {
  if (shift_ < 56) length_ += uint64_t{byte & 0x7fu} << shift_;
  shift_ = static_cast<uint8_t>(std::min(shift_ + 7, 63));
  return (byte & 0x80) == 0;
}

void HeaderFields::Read(uint8_t byte) {
  switch (step_) {
    case Step::kField:
      return BeginField(byte);
    case Step::kIndex:
      if (ReadRest(byte)) BeginText();
      return;
    case Step::kLength:
      shift_ = 0;
      length_ = byte & 0x7f;
      step_ = length_ == 0x7f ? Step::kLengthRest : Step::kText;
      break;
    case Step::kLengthRest:
      if (!ReadRest(byte)) return;
      step_ = Step::kText;
      break;
    case Step::kText:
      --length_;
      break;
  }
  if (step_ == Step::kText && length_ == 0) BeginText();
}

size_t HeaderFields::Skip(size_t most) {
  if (step_ != Step::kText) return 0;
  const size_t skipped = std::min<uint64_t>(length_, most);
  length_ -= skipped;
  if (length_ == 0) BeginText();
  return skipped;
}

Http2Guard::Http2Guard(const Http2Limits& limits, StrangerBudget* strangers)
    : frame_bytes_(limits.frame_bytes),
      most_fields_(limits.header_fields),
      most_messages_(limits.messages),
      throttles_({limits.streams, limits.resets, limits.pings, limits.settings, limits.windows,
                  limits.idle}),
      strangers_(strangers) {}

void Http2Guard::Know(Shares shares) {
  shares_only_calls_ = true;
  if (shares == Shares::kCalls) return;
  GiveBackCalls();
  strangers_ = nullptr;
}

void Http2Guard::GiveBackCalls() {
  if (shared_calls_ > 0) strangers_->GiveBackCalls(shared_calls_);
  shared_calls_ = 0;
}

bool Http2Guard::Read(const void* data, size_t size, int64_t now_ns) {
  if (reason_ != nullptr) return false;
  const auto* at = static_cast<const uint8_t*>(data);
  const uint8_t* const end = at + size;
  while (at < end) {
    const uint64_t skipped = std::min(skip_, static_cast<uint64_t>(end - at));
    if (is_header_ && !ReadFields(at, skipped)) return false;
    if (is_data_ && !ReadData(at, skipped)) return false;
    skip_ -= skipped;
    at += skipped;
    if (skip_ == 0 && ends_stream_) EndMessage(stream_);
    while (skip_ == 0 && at < end && head_size_ < kHeadBytes) head_[head_size_++] = *at++;
    if (head_size_ < kHeadBytes) continue;
    if (!ReadHead(now_ns)) return false;
    head_size_ = 0;
  }
  return true;
}

bool Http2Guard::ReadHead(int64_t now_ns) {
  const uint32_t length = uint32_t{head_[0]} << 16 | uint32_t{head_[1]} << 8 | head_[2];
  const uint8_t type = head_[3], flags = head_[4];
  stream_ =
      (uint32_t{head_[5]} << 24 | uint32_t{head_[6]} << 16 | uint32_t{head_[7]} << 8 | head_[8]) &
      0x7fffffff;
  skip_ = length;
  is_header_ = false;
  is_data_ = type == kData;
  ends_stream_ = (type == kData || type == kHeaders) && (flags & kEndStream) != 0;
  if (length > frame_bytes_) return Refuse("a frame that is too long");
  switch (type) {
    case kData:
      if ((flags & kPadded) != 0) return Refuse("data with padding");  // gRPC's clients pad nothing
      if (length == 0 && ends_stream_) EndMessage(stream_);
      return length > 0 || Take(FrameKind::kIdle, now_ns, "too many frames without data");
    case kHeaders:
      return ReadHeaders(flags, now_ns);
    case kResetStream:
      EndMessage(stream_);
      return Take(FrameKind::kResets, now_ns, "too many streams given up");
    case kSettingsFrame:
      return Take(FrameKind::kSettings, now_ns, "too many settings");
    case kPushPromise:
    case kContinuation:
      return Refuse("a header in several frames");
    case kPing:
      return Take(FrameKind::kPings, now_ns, "too many pings");
    case kGoAway:
      return true;
    case kWindowUpdate:
      return Take(FrameKind::kWindows, now_ns, "too many window updates");
    case kPriority:
    default:
      return Take(FrameKind::kIdle, now_ns, "too many frames without use");
  }
}

// gRPC counts the bytes of a header for each of its frames anew. Its clients pad nothing, and give
// no priorities.
bool Http2Guard::ReadHeaders(uint8_t flags, int64_t now_ns) {
  if ((flags & kEndHeaders) == 0) return Refuse("a header in several frames");
  if ((flags & (kPadded | kHasPriority)) != 0) return Refuse("a header with padding or a priority");
  is_header_ = true;
  has_called_ = true;
  fields_.Begin();
  return Take(FrameKind::kStreams, now_ns, "too many calls");
}

bool Http2Guard::ReadFields(const uint8_t* at, size_t size) {
  const uint8_t* const end = at + size;
  while (at < end) {
    at += fields_.Skip(static_cast<size_t>(end - at));
    if (at < end) fields_.Read(*at++);
    if (fields_.count() > most_fields_) return Refuse("a header of too many fields");
  }
  return true;
}

bool Http2Guard::ReadData(const uint8_t* at, size_t size) {
  constexpr int kByte = 8;
  const uint8_t* const end = at + size;
  while (at < end) {
    Message& message = messages_[stream_];
    if (messages_.size() > most_messages_) return Refuse("too many unfinished messages");
    if (message.prefix_bytes < kMessagePrefix) {
      message.length = message.length << kByte | (message.prefix_bytes++ == 0 ? 0 : *at);
      ++at;
    } else {
      const auto taken = static_cast<uint32_t>(
          std::min<uint64_t>(message.length - message.came, static_cast<uint64_t>(end - at)));
      message.came += taken;
      held_ += taken;
      at += taken;
    }
    const bool is_complete =
        message.prefix_bytes == kMessagePrefix && message.came == message.length;
    if (is_complete) EndMessage(stream_);
  }
  return true;
}

// It is complete, or its stream has ended.
void Http2Guard::EndMessage(uint32_t stream) {
  const auto at = messages_.find(stream);
  if (at == messages_.end()) return;
  held_ -= at->second.came;
  messages_.erase(at);
}

bool Http2Guard::Take(FrameKind kind, int64_t now_ns, const char* otherwise) {
  if (!throttles_.Take(kind, now_ns)) return Refuse(otherwise);
  return TakeShare(kind, now_ns) || Refuse("more than its share of what unknown callers may send");
}

bool Http2Guard::TakeShare(FrameKind kind, int64_t now_ns) {
  const bool is_call = kind == FrameKind::kStreams || kind == FrameKind::kResets;
  if (strangers_ == nullptr || (shares_only_calls_ && !is_call)) return true;
  if (own_.Take(kind, now_ns)) return true;
  const bool has_taken = strangers_->Take(kind, now_ns);
  if (has_taken && kind == FrameKind::kStreams) ++shared_calls_;
  return has_taken;
}

bool Http2Guard::Refuse(const char* reason) {
  reason_ = reason;
  return false;
}

}  // namespace rollcall
