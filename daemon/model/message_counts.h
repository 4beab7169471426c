// SPDX-License-Identifier: Apache-2.0
// Comparing the counts of MPI's messages (interpose/segment_messages.h): whether the other end of a
// message was issued. Pure.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/types/span.h"
#include "daemon/model/job_state.h"

namespace rollcall {

// Counts are modulo 2^32.
inline bool HasReached(uint32_t count, uint32_t wanted) {
  return static_cast<int32_t>(count - wanted) >= 0;
}

// Direction of a message, from the rank in whose counts it is.
enum class Way : uint8_t { kSend, kReceive };
inline Way OtherWay(Way way) { return way == Way::kSend ? Way::kReceive : Way::kSend; }

// How many messages the member has issued, and how many of them it waits for.
inline uint32_t IssuedOf(const PeerMessages& messages, Way way) {
  return way == Way::kSend ? messages.sends : messages.receives;
}
inline uint32_t AwaitedOf(const PeerMessages& messages, Way way) {
  return way == Way::kSend ? messages.sends_awaited : messages.receives_awaited;
}

// The member's messages; none if it has issued none.
const MessageCounts& MessagesOf(const Member* member);

// Returns the messages with this peer, by tag. An agent may send hundreds, so no query looks at
// those of other peers.
absl::Span<const PeerMessages> MessagesWith(const MessageCounts& counts, int32_t peer);

// The messages with exactly this peer and tag, or nullptr.
const PeerMessages* FindMessages(const MessageCounts& counts, int32_t peer, int32_t tag);

// With this peer, over all tags that are known.
uint32_t CountWith(const MessageCounts& counts, int32_t peer, Way way);

// Whether some of the peer's tags share an entry.
bool MixesTags(const MessageCounts& counts, int32_t peer);

// Whether an open receive for which MPI chooses the source or the tag may take the message.
bool MayTake(const MessageCounts& counts, int32_t peer, int32_t tag);

enum class OtherEnd : uint8_t {
  kIssued,
  kLacking,
  kLackingOfAny,  // of several tags together: which one lacks its end is not known
  kUnknown,
};

// Whether the other end of the messages that `rank` waits for was issued by their peer, whose
// counts are `theirs`.
OtherEnd FindOtherEnd(const MessageCounts& ours, const PeerMessages& awaited, Way way,
                      const MessageCounts& theirs, int32_t rank);

// The newest counts of a rank, with the time of its newest message. `before`: those that it had;
// nullptr if none are known, and neither is the time.
std::shared_ptr<const MessageCounts> NoteMoves(std::shared_ptr<const MessageCounts> newest,
                                               const MessageCounts* before, int64_t now_ns);

}  // namespace rollcall
