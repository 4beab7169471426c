// SPDX-License-Identifier: Apache-2.0
// Asks the threads of one process for their stacks by way of its segment, where the kernel does not
// permit reading from outside (interpose/segment.h, StackSlot).
//
// Needs the right to write the segment and to signal the process: the same user. Never waits longer
// than its limits; what is left of a question without an answer does no harm.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "agent/processes/descriptor_socket.h"
#include "agent/processes/proc_maps.h"
#include "agent/processes/stack_sample.h"
#include "interpose/room.h"
#include "interpose/segment.h"

namespace rollcall {

class StackQuestions {
 public:
  // Finds the segment among the process's mappings. Errors, with words for people: kNotFound (no
  // library in there, or no communicator yet), kPermissionDenied, kUnavailable (switched off,
  // another one asks, no room).
  static absl::StatusOr<std::unique_ptr<StackQuestions>> Open(const std::string& proc_root,
                                                              pid_t pid,
                                                              const std::vector<ProcMap>& maps);
  ~StackQuestions();

  // Asks all these threads, in turns, and waits at most `thread_timeout_ns` for each turn, and
  // until `deadline_ns` (monotonic) in all. Sets registers, stack, how and error of each.
  void Ask(const std::vector<RawThread*>& threads, int64_t thread_timeout_ns, int64_t deadline_ns);

  int signal() const { return signal_; }

  // The process's memory, which a thread that answered passes on; waits a little for it. Not valid:
  // none did.
  UniqueFd TakeMemory();

 private:
  struct Asked {
    RawThread* thread = nullptr;
    uint32_t slot = 0;
    uint64_t question = 0;
    int64_t asked_ns = 0;
    bool asked_memory = false;
    bool done = false;
  };

  StackQuestions(pid_t pid, UniqueFd segment, int signal);
  bool MakeRoom(const Room& room);
  void ReceiveMemory();
  std::vector<uint32_t> QuietSlots();
  void AskTurn(RawThread* const* threads, size_t count, const std::vector<uint32_t>& slots,
               int64_t deadline_ns);
  bool AskOne(Asked* asked);
  void Collect(std::vector<Asked>* turn);
  void ReadCopy(Asked* asked);
  bool WriteWord(uint32_t slot, size_t offset, uint64_t value);
  bool ReadSlots();
  const segment::StackSlot& Slot(uint32_t index) const;

  const pid_t pid_;
  const UniqueFd segment_;
  const int signal_;
  uint32_t slots_ = 0;  // that have room
  std::unique_ptr<DescriptorSocket> socket_;
  UniqueFd memory_;
  bool memory_promised_ = false;  // a thread that was asked for it has answered
  alignas(segment::StackSlot)
      std::array<unsigned char, segment::kStackSlots * sizeof(segment::StackSlot)> copy_;
};

}  // namespace rollcall
