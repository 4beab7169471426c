// SPDX-License-Identifier: Apache-2.0
// Converts a communicator's snapshot to its update on the wire: start times of waits, counters,
// and the records by columns.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <utility>

#include "agent/segments/segment_snapshot.h"
#include "rollcall/v1/agent.pb.h"

namespace rollcall {

// The state of a communicator that persists between ticks.
struct CommHistory {
  std::deque<std::pair<uint64_t, int64_t>> entered;  // newest collectives: position, time
  uint64_t finished = 0;                             // by the markers, as of the last tick
  int64_t finished_changed_ns = 0;                   // time of the first tick with this value
  uint64_t p2p_finished = 0;
  int64_t p2p_open_since_ns = 0;        // first tick with an unfinished one, or 0
  uint64_t checkpoint_sent = 0;         // position of the newest checkpoint sent
  std::string messages, messages_sent;  // v1::MessageCounts: of the last tick, and as sent
  int64_t messages_sent_ns = 0;
};

// Waits of the process's threads that concern one communicator. A time is 0 if there is no such
// wait.
struct HostWaits {
  // Start of the NCCL call on the communicator, or of the group end with such a call.
  int64_t host_blocked_since_ns = 0;
  uint64_t awaited = 0;          // 1 + the position of that call; 0 if unknown
  int64_t message_since_ns = 0;  // start of a wait for messages of MPI
  // Start of a wait for the GPU, if the process's last call was on this communicator.
  int64_t host_waits_since_ns = 0;
};

// Returns the waits that concern `comm`, a communicator of `snapshot`.
HostWaits FindHostWaits(const SegmentSnapshot& snapshot, const CommSnapshot& comm);

// Sets all fields of `update` except the records. Updates `history`.
void FillProgress(const CommSnapshot& comm, const HostWaits& waits, int64_t now_ns,
                  CommHistory* history, v1::CommUpdate* update);

// Raises the start of every wait in `update` to at least `from_ns`.
void ApplyWaitFloor(int64_t from_ns, v1::CommUpdate* update);

// Sets the columns of `batch` from the newest `most` records of `comm`, up to the first gap in
// their indices.
void FillRecords(const CommSnapshot& comm, size_t most, v1::RecordBatch* batch);

}  // namespace rollcall
