// SPDX-License-Identifier: Apache-2.0
#include "daemon/model/sent_messages.h"

#include <algorithm>

#include "daemon/model/message_counts.h"
#include "interpose/segment_messages.h"

namespace rollcall {

void SentMessages::ReadAll() {
  is_read_ = true;
  for (const auto& [peer, member] : comm_.members) {
    const MessageCounts& counts = MessagesOf(&member);
    any_lost_ = any_lost_ || counts.lost;
    for (const PeerMessages& sent : counts.by_peer) {
      ++looked_at_;
      if (sent.peer < 0 || sent.peer == peer) continue;
      if (sent.tag == segment::kMixedTags) mixed_.insert(sent.peer);
      if (sent.sends != 0) by_receiver_[sent.peer].push_back({sent.tag, peer, sent.sends});
    }
  }
  for (auto& [receiver, sent] : by_receiver_) {
    std::stable_sort(sent.begin(), sent.end(),
                     [](const Sent& a, const Sent& b) { return a.tag < b.tag; });
  }
}

bool SentMessages::IsTaken(const MessageCounts& ours, const Sent& sent) {
  const PeerMessages* received = FindMessages(ours, sent.peer, sent.tag);
  ++looked_at_;
  return HasReached(received == nullptr ? 0 : received->receives, sent.sends);
}

bool SentMessages::MayHaveOf(const std::vector<Sent>& to_us, const MessageCounts& ours,
                             int32_t tag) {
  const auto is_open = [&](const Sent& sent) { return !IsTaken(ours, sent); };
  if (tag < 0) return std::any_of(to_us.begin(), to_us.end(), is_open);
  const auto [begin, end] =
      std::equal_range(to_us.begin(), to_us.end(), Sent{tag, 0, 0},
                       [](const Sent& a, const Sent& b) { return a.tag < b.tag; });
  return std::any_of(begin, end, is_open);
}

bool SentMessages::MayHave(const MessageCounts& ours, int32_t rank, int32_t tag) {
  if (!is_read_) ReadAll();
  if (ours.cancelled || ours.lost || any_lost_ || mixed_.count(rank) != 0) return true;
  const auto to_us = by_receiver_.find(rank);
  return to_us != by_receiver_.end() && MayHaveOf(to_us->second, ours, tag);
}

}  // namespace rollcall
