// SPDX-License-Identifier: Apache-2.0
// What a segment holds at one moment, as SegmentReader::Read() returns it. Plain values.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "interpose/comm_kind.h"
#include "interpose/segment.h"

namespace rollcall {

// Times are nanoseconds of the clock that Read() gets, or since the Unix epoch without one; 0 if
// never.
struct RecordSnapshot {
  uint64_t index = 0;
  uint64_t position = 0;
#define RECORD_COLUMN(type, name) type name = 0;
#include "proto/record_columns.def"
  std::string shape;  // "[1024, 4096]", "all_to_all_single [8, 4]", "barrier"; empty if unknown
  uint32_t site = 0;  // 1 + index into SegmentSnapshot::sites; 0 if unknown
  int64_t entered_ns = 0;
  int64_t returned_ns = 0;
};

// The launch of a CUDA graph that holds calls of the communicator.
struct GraphLaunchSnapshot {
  uint32_t graph = 0;         // nth graph of the process that holds calls, from 1
  uint64_t launch = 0;        // of this graph, from 1
  uint64_t first_record = 0;  // index of its first call's record
  uint64_t records = 0;       // number of its calls on this communicator
};

// Counted messages with one peer and one tag (interpose/segment_messages.h).
struct MessagesSnapshot {
  int32_t peer = -1, tag = -1;
  uint32_t sends = 0, receives = 0, sends_awaited = 0, receives_awaited = 0;
};

struct CommSnapshot {
#define COMM_COUNT(type, name) uint64_t name = 0;
#define COMM_SEEN(type, name) uint64_t name = 0;
#define COMM_TIME(name) int64_t name##_ns = 0;
#include "proto/facts.def"
  uint32_t index = 0;
  segment::CommState state = segment::CommState::kEmpty;
  uint32_t flags = 0;
  CommKind kind = CommKind::kNccl;
  uint64_t id = 0, parent_id = 0, split_id = 0;
  uint64_t base_id = 0;                    // hash of its unique id; 0 if unknown
  uint64_t grow_base_id = 0, grow_id = 0;  // of the grown communicator
  int32_t rank = -1, size = 0, device = -1, parent_rank = -1, parent_size = 0;
  std::string name;
  int64_t last_entered_ns = 0;
  uint64_t init_ticks = 0;  // by the process's clock: identifies the communicator in the block
  uint32_t async_error = 0;

  std::vector<std::pair<uint64_t, uint64_t>> checkpoints;  // position, signature; ascending
  std::vector<RecordSnapshot> records;  // in order; new records, and records that have changed
  uint64_t recorded = 0;                // index of the next record
  uint64_t records_lost = 0;            // overwritten before they were read, in total
  std::vector<GraphLaunchSnapshot> graph_launches;  // the newest, in order
  std::vector<MessagesSnapshot> messages;           // by peer and tag
  uint64_t messages_issued = 0;                     // of all peers and tags
  bool messages_lost = false, messages_cancelled = false;
};

struct BlockedSnapshot {
  uint32_t tid = 0;
  uint32_t op = 0;
  uint32_t comm = segment::kNoComm;  // index
  int64_t since_ns = 0;
  uint64_t stream = 0;  // the stream that the call waits for; for MPI calls 1 + the position
  // The key of a store that the call waits for, the first of `keys`, and the wait's time-out, or 0.
  // Empty if there is no key.
  std::string key = {};
  uint32_t keys = 0;
  uint64_t key_timeout_ms = segment::kUnknownTimeout;
  uint64_t polls = 0;  // of a loop of tests: their number, and the time spent in them
  int64_t poll_ns = 0;
};

// A Python exception that ended a thread.
struct ThreadFailureSnapshot {
  std::string thread;  // its name in Python
  std::string error;   // may be empty
  int64_t failed_ns = 0;
};

struct SegmentSnapshot {
#define PROCESS_TEXT(name) std::string name;
#define PROCESS_NUMBER(type, name) type name = 0;
#define PROCESS_COUNT(name) uint64_t name = 0;
#include "proto/facts.def"
  int32_t pid = 0;  // in its own pid namespace, like BlockedSnapshot::tid
  uint64_t start_time = 0;
  std::string host, boot_id, job;
  int32_t global_rank = -1, world_size = -1, local_rank = -1;
  bool exited = false;
  int64_t exit_ns = 0;
  std::string error;  // an uncaught Python exception, or empty
  int64_t error_ns = 0;
  ThreadFailureSnapshot thread_failure;  // the newest
  int64_t step = -1;                     // -1 if the program does not report steps
  std::string phase;
  int64_t newest_ns = 0;           // the newest timestamp in the file
  std::vector<std::string> sites;  // of calls: "/x/train.py:57 in train_epoch"
  std::vector<BlockedSnapshot> blocked;
  std::vector<CommSnapshot> communicators;
  std::vector<std::string> warnings;  // parts left out, and the reasons
};

}  // namespace rollcall
