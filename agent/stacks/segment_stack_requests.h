// SPDX-License-Identifier: Apache-2.0
// Requests stacks from the threads of one process through its segment (interpose/segment.h,
// StackSlot), for hosts where the kernel does not permit ptrace.
//
// Needs the right to write the segment and to signal the process: the same user. Never waits longer
// than its limits. A request that stays without a reply does no harm.
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
#include "base/fair_parts.h"
#include "interpose/room.h"
#include "interpose/segment.h"

namespace rollcall {

class SegmentStackRequests {
 public:
  // Finds the segment among the process's mappings. Errors, with messages for people: kNotFound
  // (the process has no library, or no communicator yet), kPermissionDenied, kUnavailable (turned
  // off, another requester, no room).
  static absl::StatusOr<std::unique_ptr<SegmentStackRequests>> Open(
      const std::string& proc_root, pid_t pid, const std::vector<ProcMap>& maps);
  ~SegmentStackRequests();

  // Requests the stacks of these threads in batches. Waits at most `thread_timeout_ns` for a batch,
  // and until `deadline_ns` (monotonic) in all. Sets registers, stack, how and error of each
  // thread; all stacks together have `most_bytes`.
  void RequestStacks(const std::vector<RawThread*>& threads, size_t most_bytes,
                     int64_t thread_timeout_ns, int64_t deadline_ns);

  int signal() const { return answers_.signal; }

  // Returns a descriptor of the process's memory, from a thread that answered; waits at most 50 ms
  // for it. Not valid: no thread passed one on.
  UniqueFd TakeMemory();

 private:
  struct Request {
    RawThread* thread = nullptr;
    uint32_t slot = 0;
    uint64_t number = 0;
    int64_t sent_ns = 0;
    bool with_memory = false;
    bool done = false;
  };

  // How the library answers: the signal, and SegmentHeader::seccomp_filters.
  struct Answers {
    int signal;
    uint32_t seccomp_filters;
  };

  SegmentStackRequests(std::string proc_root, pid_t pid, UniqueFd segment, const Answers& answers);
  static absl::StatusOr<Answers> ReadAnswers(int fd);
  bool HasLockedItselfIn(pid_t thread) const;
  bool MakeRoom(const Room& room);
  void ReceiveMemory();
  std::vector<uint32_t> FreeSlots();
  void RequestBatch(RawThread* const* threads, size_t count, const std::vector<uint32_t>& slots,
                    int64_t deadline_ns);
  bool SendRequest(Request* request);
  void CollectReplies(std::vector<Request>* batch);
  void ReadCopy(Request* request);
  bool WriteWord(uint32_t slot, size_t offset, uint64_t value);
  bool ReadSlots();
  const segment::StackSlot& Slot(uint32_t index) const;

  const std::string proc_root_;
  const pid_t pid_;
  const UniqueFd segment_;
  const Answers answers_;
  uint32_t slots_ = 0;  // slots with room for a copy
  std::unique_ptr<DescriptorSocket> socket_;
  FairParts parts_ = {0, 0};  // of the limit for all copies, by threads
  UniqueFd memory_;
  bool memory_promised_ = false;  // a thread answered a request for the memory
  alignas(segment::StackSlot)
      std::array<unsigned char, segment::kStackSlots * sizeof(segment::StackSlot)> copy_;
};

}  // namespace rollcall
