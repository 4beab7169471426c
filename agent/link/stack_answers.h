// SPDX-License-Identifier: Apache-2.0
// Answers the requests of an agent's daemon for stacks, on a thread of its own: process by process,
// the users in turn.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "agent/collector/served_segments.h"
#include "agent/link/stack_queue.h"
#include "agent/link/stack_service.h"
#include "agent/link/unrecorded_list.h"
#include "agent/link/uplink_inbox.h"
#include "base/mutex.h"
#include "rollcall/v1/agent.pb.h"

namespace rollcall {

class StackAnswers {
 public:
  // Takes the stacks of the processes in `served` and `listed`. All outlive this object.
  // `options`: neighbours and segment_of are set here.
  StackAnswers(StackServiceOptions options, const ServedSegments* served,
               const UnrecordedList* listed, UplinkInbox* inbox);

  void Start();
  // The reader of the stream calls this. A request without room is refused here: the reader then
  // reads no faster than the daemon reads the refusals.
  void TakeIn(uint64_t stream, const v1::TakeStacks& request) ABSL_LOCKS_EXCLUDED(mutex_);
  void DropWaiting() ABSL_LOCKS_EXCLUDED(mutex_);
  void Cancel() ABSL_LOCKS_EXCLUDED(mutex_);
  void Stop();  // after Cancel() and UplinkInbox::Stop()

 private:
  StackServiceOptions WithNeighbours(StackServiceOptions options);
  // Returns the neighbours of the process whose stacks are taken. Of them the service takes those
  // of the same user.
  std::vector<pid_t> Neighbours() const;
  void Run() ABSL_LOCKS_EXCLUDED(mutex_);
  void Answer(const PendingRequest& request);
  bool Send(const PendingRequest& request, ProcessId process, v1::ProcessStack stack,
            const std::optional<v1::Evidence>& evidence = std::nullopt);

  const ServedSegments* const served_;
  const UnrecordedList* const listed_;
  UplinkInbox* const inbox_;
  const std::string proc_root_;
  StackService service_;  // Take(): used by the thread only
  ProcessId sampled_;     // likewise: of which it takes the stacks now

  Mutex mutex_;
  Condition changed_;  // any of the next
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  StackQueue queue_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace rollcall
