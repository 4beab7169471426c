// SPDX-License-Identifier: Apache-2.0
#include "daemon/model/message_counts.h"

#include <algorithm>
#include <utility>

#include "interpose/segment_messages.h"

namespace rollcall {
namespace {

using segment::kAnySource;
using segment::kAnyTag;
using segment::kMixedTags;

// By all tags: if a rank waits for a message while it has received as many as the peer has sent,
// the peer owes one.
OtherEnd CompareSums(const MessageCounts& ours, const PeerMessages& awaited, Way way,
                     const MessageCounts& theirs, int32_t rank) {
  const uint32_t their_sum = CountWith(theirs, rank, OtherWay(way));
  const uint32_t our_sum = CountWith(ours, awaited.peer, way);
  // A receive of any tag is in no sum while it is open.
  const uint32_t wanted = awaited.tag == kAnyTag ? our_sum + 1 : our_sum;
  return HasReached(their_sum, wanted) ? OtherEnd::kUnknown : OtherEnd::kLackingOfAny;
}

// What a rank waits for is not a sign that it goes on.
bool HasSameMessages(const MessageCounts& a, const MessageCounts& b) {
  return std::equal(a.by_peer.begin(), a.by_peer.end(), b.by_peer.begin(), b.by_peer.end(),
                    [](const PeerMessages& x, const PeerMessages& y) {
                      return x.peer == y.peer && x.tag == y.tag && x.sends == y.sends &&
                             x.receives == y.receives;
                    });
}

}  // namespace

const MessageCounts& MessagesOf(const Member* member) {
  static const auto* const kNone = new MessageCounts();
  return member == nullptr || member->messages == nullptr ? *kNone : *member->messages;
}

absl::Span<const PeerMessages> MessagesWith(const MessageCounts& counts, int32_t peer) {
  const auto [begin, end] = std::equal_range(
      counts.by_peer.begin(), counts.by_peer.end(), PeerMessages{peer},
      [](const PeerMessages& a, const PeerMessages& b) { return a.peer < b.peer; });
  return {counts.by_peer.data() + (begin - counts.by_peer.begin()),
          static_cast<size_t>(end - begin)};
}

const PeerMessages* FindMessages(const MessageCounts& counts, int32_t peer, int32_t tag) {
  const absl::Span<const PeerMessages> with = MessagesWith(counts, peer);
  const auto at =
      std::lower_bound(with.begin(), with.end(), tag,
                       [](const PeerMessages& one, int32_t wanted) { return one.tag < wanted; });
  return at != with.end() && at->tag == tag ? &*at : nullptr;
}

uint32_t CountWith(const MessageCounts& counts, int32_t peer, Way way) {
  uint32_t sum = 0;
  for (const PeerMessages& messages : MessagesWith(counts, peer)) {
    if (messages.tag != kAnyTag) sum += IssuedOf(messages, way);
  }
  return sum;
}

bool MixesTags(const MessageCounts& counts, int32_t peer) {
  return FindMessages(counts, peer, kMixedTags) != nullptr;
}

bool MayTake(const MessageCounts& counts, int32_t peer, int32_t tag) {
  const auto is_open = [](const PeerMessages& with) {
    return with.receives != 0 || with.receives_awaited != 0;
  };
  const auto is_open_with = [&](int32_t source, int32_t wanted) {
    const PeerMessages* with = FindMessages(counts, source, wanted);
    return with != nullptr && is_open(*with);
  };
  if (is_open_with(peer, kAnyTag)) return true;
  if (tag >= 0) {
    return is_open_with(kAnySource, kAnyTag) || is_open_with(kAnySource, kMixedTags) ||
           is_open_with(kAnySource, tag);
  }
  const absl::Span<const PeerMessages> any_source = MessagesWith(counts, kAnySource);
  return std::any_of(any_source.begin(), any_source.end(), is_open);
}

OtherEnd FindOtherEnd(const MessageCounts& ours, const PeerMessages& awaited, Way way,
                      const MessageCounts& theirs, int32_t rank) {
  if (ours.cancelled || theirs.cancelled) return OtherEnd::kUnknown;
  const Way other_way = OtherWay(way);
  const PeerMessages* exact = awaited.tag < 0 ? nullptr : FindMessages(theirs, rank, awaited.tag);
  if (exact == nullptr && theirs.lost) return OtherEnd::kUnknown;
  const bool takes_any = way == Way::kSend && MayTake(theirs, rank, awaited.tag);
  if (awaited.tag < 0 || (exact == nullptr && MixesTags(theirs, rank))) {
    return takes_any ? OtherEnd::kUnknown : CompareSums(ours, awaited, way, theirs, rank);
  }
  const uint32_t issued = exact == nullptr ? 0 : IssuedOf(*exact, other_way);
  if (HasReached(issued, AwaitedOf(awaited, way))) {
    // Another receive of ours may have taken it.
    const bool is_taken = way == Way::kReceive && MayTake(ours, awaited.peer, awaited.tag);
    return is_taken ? OtherEnd::kUnknown : OtherEnd::kIssued;
  }
  return takes_any ? OtherEnd::kUnknown : OtherEnd::kLacking;
}

std::shared_ptr<const MessageCounts> NoteMoves(std::shared_ptr<const MessageCounts> newest,
                                               const MessageCounts* before, int64_t now_ns) {
  if (newest == nullptr || before == nullptr) return newest;
  const int64_t moved_ns = HasSameMessages(*newest, *before) ? before->moved_ns : now_ns;
  if (moved_ns == newest->moved_ns) return newest;
  auto noted = std::make_shared<MessageCounts>(*newest);
  noted->moved_ns = moved_ns;
  return noted;
}

}  // namespace rollcall
