// SPDX-License-Identifier: Apache-2.0
// From a communicator's snapshot to its update on the wire: who waits, since
// when, and the records by columns.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <utility>

#include "agent/segments/segment_reader.h"
#include "rollcall/v1/agent.pb.h"

namespace rollcall {

// What must be remembered of a communicator from tick to tick.
struct CommHistory {
  std::deque<std::pair<uint64_t, int64_t>> entered;  // newest collectives: position, when
  uint64_t finished = 0;                             // by the markers, at the last tick
  int64_t finished_changed_ns = 0;                   // when that was first seen
  uint64_t p2p_finished = 0;
  int64_t p2p_open_since_ns = 0;                     // when more was first seen begun; 0: none is
  uint64_t checkpoint_sent = 0;                      // position of the newest one sent
};

// The threads of the process, as far as they bear on one communicator.
struct HostWaits {
  int64_t host_blocked_since_ns = 0;  // inside an NCCL call on it, or the end of a group with it
  uint64_t awaited = 0;              // 1 + the position of that call, where the host says; 0
  int64_t host_waits_since_ns = 0;  // in a wait for the GPU, and its call was the process's last
};

// Waits of each communicator (by index) of a process.
HostWaits FindHostWaits(const SegmentSnapshot& snapshot, const CommSnapshot& comm);

// Fills everything but the records.
void FillProgress(const CommSnapshot& comm, const HostWaits& waits, int64_t now_ns,
                  CommHistory* history, v1::CommUpdate* update);

// Lets no wait in the update begin before `from_ns`.
void BeginWaitsAt(int64_t from_ns, v1::CommUpdate* update);

void FillRecords(const CommSnapshot& comm, v1::RecordBatch* batch);

}  // namespace rollcall
