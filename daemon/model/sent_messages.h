// SPDX-License-Identifier: Apache-2.0
// The messages that the ranks of a communicator have been sent, by receiver: whether a rank that
// waits for a message of any rank may have one already. Pure.
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

}  // namespace rollcall
