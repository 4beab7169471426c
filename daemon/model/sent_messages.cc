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

std::vector<const PeerMessages*> FindUnreceived(const MessageCounts& ours,
                                                const MessageCounts& theirs,
                                                const PeerMessages& awaited, int32_t rank) {
  std::vector<const PeerMessages*> found;
  for (const PeerMessages& sent : MessagesWith(theirs, rank)) {
    if (sent.tag < 0 || sent.tag == awaited.tag) continue;
    const PeerMessages* received = FindMessages(ours, awaited.peer, sent.tag);
    if (!HasReached(received == nullptr ? 0 : received->receives, sent.sends)) {
      found.push_back(&sent);
    }
  }
  return found;
}

namespace {

constexpr int kLeastOthers = 2;  // of whom one may say that they all do something

const MessageCounts& CountsOf(const Communicator& comm, int32_t rank) {
  const auto at = comm.members.find(rank);
  return MessagesOf(at == comm.members.end() ? nullptr : &at->second);
}

bool IsUsedByOthers(const Communicator& comm, int32_t receiver, int32_t sender, int32_t tag) {
  return std::any_of(comm.members.begin(), comm.members.end(), [&](const auto& member) {
    if (member.first == sender) return false;
    const PeerMessages* with = FindMessages(MessagesOf(&member.second), receiver, tag);
    return with != nullptr && with->sends != 0;
  });
}

// Whether each other rank has sent it as many messages with this tag as it waits for, two at least.
bool HaveOthersSent(const Communicator& comm, int32_t rank, const PeerMessages& awaited) {
  int others = 0;
  for (const auto& [sender, member] : comm.members) {
    const PeerMessages* with = FindMessages(MessagesOf(&member), rank, awaited.tag);
    if (sender == awaited.peer || with == nullptr || with->sends == 0) continue;
    if (with->sends != awaited.receives_awaited) return false;
    ++others;
  }
  return others >= kLeastOthers;
}

}  // namespace

bool IsOddSender(const Communicator& comm, int32_t rank, const PeerMessages& awaited) {
  if (awaited.receives_awaited == 0 || awaited.peer < 0 || awaited.tag < 0) return false;
  if (HaveOthersSent(comm, rank, awaited)) return true;
  const auto sent =
      FindUnreceived(CountsOf(comm, rank), CountsOf(comm, awaited.peer), awaited, rank);
  return !sent.empty() && IsUsedByOthers(comm, rank, awaited.peer, awaited.tag) &&
         std::none_of(sent.begin(), sent.end(), [&](const PeerMessages* other) {
           return IsUsedByOthers(comm, rank, awaited.peer, other->tag);
         });
}

}  // namespace rollcall
