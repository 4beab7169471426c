// SPDX-License-Identifier: Apache-2.0
// The messages that the ranks of a communicator have been sent, by receiver: whether a rank that
// waits for a message of any rank may have one already, and whose messages differ from those of the
// other senders. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "daemon/model/job_state.h"

namespace rollcall {

// Looks once at all counts of the communicator, when it is first asked.
class SentMessages {
 public:
  explicit SentMessages(const Communicator& comm) : comm_(comm) {}

  // Whether `rank`, with the counts `ours`, may have been sent a message with this tag (or any, if
  // it is negative) that it has not received.
  bool MayHave(const MessageCounts& ours, int32_t rank, int32_t tag);

  // For tests: how many counts it has looked at.
  size_t looked_at() const { return looked_at_; }

 private:
  struct Sent {
    int32_t tag, peer;
    uint32_t sends;
  };
  void ReadAll();
  bool MayHaveOf(const std::vector<Sent>& to_us, const MessageCounts& ours, int32_t tag);
  bool IsTaken(const MessageCounts& ours, const Sent& sent);

  const Communicator& comm_;
  bool is_read_ = false;
  bool any_lost_ = false;
  std::map<int32_t, std::vector<Sent>> by_receiver_;  // of each, by tag
  std::set<int32_t> mixed_;  // ranks with which a peer has tags that share an entry
  size_t looked_at_ = 0;
};

// Of a receive of `rank`, whose counts are `ours`: the peer's messages of other tags that it has
// not received. `theirs`: the counts of the peer.
std::vector<const PeerMessages*> FindUnreceived(const MessageCounts& ours,
                                                const MessageCounts& theirs,
                                                const PeerMessages& awaited, int32_t rank);

// Whether the peer of the receive that `rank` waits in is the only one that has not sent as many
// messages with its tag as each other sender, or the only one that has sent with another tag.
bool IsOddSender(const Communicator& comm, int32_t rank, const PeerMessages& awaited);

}  // namespace rollcall
