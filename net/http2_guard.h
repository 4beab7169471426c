// SPDX-License-Identifier: Apache-2.0
// Watches what a client sends to gRPC, frame by frame, and decides when a connection must end. gRPC
// 1.51 puts no limit to what a client costs that opens and resets streams, sends pings or settings
// without end, cuts a header into many frames, or refers to its header table again and again: then
// each byte becomes 4 KiB. Its limits for streams and headers hold only once the client has
// acknowledged them (RFC 9113, 6.5.3), and no client must do so. All of that comes before gRPC has
// identified the caller. And it takes each message into memory as it comes, up to its limit, so the
// guard counts what has come of messages that are not complete.
//
// Pure: reads bytes in the order of the connection, and keeps some counters.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>

#include "net/stranger_budget.h"

namespace rollcall {

struct Http2Limits {
  // The limits of an RFC 9113 endpoint that has announced no others.
  uint32_t frame_bytes = 16384;
  // A call of gRPC has about ten, and one more for each fact about it.
  int header_fields = 32;
  // Messages that have begun and are not complete, at once. Each call of gRPC has one at most, and
  // the server permits fewer calls.
  size_t messages = 1024;
  // gRPC's clients open a stream for each call, and reset one for each call that they give up.
  FrameRate streams{300, 200};
  FrameRate resets{300, 100};
  // Their estimate of the bandwidth pings up to ten times a second, and changes the settings after
  // it.
  FrameRate pings{500, 100};
  FrameRate settings{100, 20};
  FrameRate windows{20000, 5000};
  // Data frames without data (one may end each stream), priorities, and frames of unknown types.
  FrameRate idle{2000, 400};
};

// Counts the fields of a header as HPACK writes them (RFC 7541, section 6), byte by byte. Decodes
// no text.
class HeaderFields {
 public:
  void Begin() { *this = HeaderFields(); }
  void Read(uint8_t byte);
  // Skips what belongs to the text that is being read, at most `most` bytes. Returns how many.
  size_t Skip(size_t most);
  int count() const { return count_; }

 private:
  enum class Step : uint8_t { kField, kIndex, kLength, kLengthRest, kText };

  void BeginField(uint8_t byte);
  void BeginText();
  bool ReadRest(uint8_t byte);  // of a number; true: it is complete

  Step step_ = Step::kField;
  uint8_t texts_ = 0;    // of this field, that follow
  uint8_t shift_ = 0;    // of the number that is being read
  uint64_t length_ = 0;  // that number, or what is left of the text
  int count_ = 0;
};

class Http2Guard {
 public:
  Http2Guard() : Http2Guard(Http2Limits()) {}
  // `strangers`: what unknown callers share; nullptr if this caller is known.
  // It must outlive this object.
  explicit Http2Guard(const Http2Limits& limits, StrangerBudget* strangers = nullptr);

  // The caller is known. From now on it shares only the calls, or nothing.
  enum class Shares : uint8_t { kCalls, kNothing };
  void Know(Shares shares);
  // The calls that have begun so far take no memory any more, as far as its caller can tell.
  void GiveBackCalls();

  // Reads the next bytes of the connection, its preface first. If false, the connection must end;
  // `reason` explains why, in a few words. `now_ns` is monotonic.
  bool Read(const void* data, size_t size, int64_t now_ns);
  const char* reason() const { return reason_; }
  // The connection must end for another reason than its frames.
  bool Refuse(const char* reason);

  bool has_called() const { return has_called_; }  // a call has begun
  // What has come of messages that are not complete, in bytes.
  uint64_t held() const { return held_; }

 private:
  static constexpr size_t kPrefaceBytes = 24, kHeadBytes = 9;

  bool ReadHead(int64_t now_ns);
  bool ReadHeaders(uint8_t flags, int64_t now_ns);
  bool ReadFields(const uint8_t* at, size_t size);
  bool Take(FrameKind kind, int64_t now_ns, const char* otherwise);
  bool TakeShare(FrameKind kind, int64_t now_ns);
  bool ReadData(const uint8_t* at, size_t size);
  void EndMessage(uint32_t stream);

  // A message of gRPC: a byte, its length in four, and itself.
  struct Message {
    size_t prefix_bytes = 0;  // that have come
    uint32_t length = 0, came = 0;
  };

  uint32_t frame_bytes_;
  int most_fields_;
  size_t most_messages_;
  FrameThrottles throttles_;
  StrangerBudget* strangers_;
  bool shares_only_calls_ = false;
  int64_t shared_calls_ = 0;                  // taken from what strangers share, and not given back
  FrameThrottles own_{StrangerBudget::kOwn};  // of what strangers share
  std::array<uint8_t, kHeadBytes> head_{};
  size_t head_size_ = 0;           // of the next frame, that are read
  uint64_t skip_ = kPrefaceBytes;  // of the preface, or of the content of a frame
  bool is_header_ = false;         // that content
  bool is_data_ = false;           // likewise
  bool ends_stream_ = false;       // that frame
  bool has_called_ = false;
  uint32_t stream_ = 0;                   // of that frame
  std::map<uint32_t, Message> messages_;  // not complete, by stream
  uint64_t held_ = 0;
  HeaderFields fields_;
  const char* reason_ = nullptr;
};

}  // namespace rollcall
