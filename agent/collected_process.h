// SPDX-License-Identifier: Apache-2.0
// What the collector keeps of a process and of its communicators from tick to tick. Used by
// collector.h alone.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "agent/comm_update.h"
#include "agent/processes/process_id.h"
#include "agent/segments/segment_owner.h"
#include "agent/segments/segment_reader.h"
#include "rollcall/v1/agent.pb.h"

namespace rollcall {

// A segment of the directory whose process is not known yet.
struct NewSegment {
  std::shared_ptr<SegmentReader> reader;
  SegmentClaim claim;
  uint64_t settled_by = 0;  // number of the scan that will know all that have mapped it
};

struct CollectedComm {
  uint64_t init_ticks = 0;  // another one: the block serves another communicator
  CommHistory history;
  std::string sent;  // the last update, without records
};

struct CollectedProcess {
  ProcessId id;
  std::string file;  // in the directory; "": its segment lies elsewhere, or there is none
  std::shared_ptr<SegmentReader> reader;
  SegmentClaim claim;
  bool visible = true;         // this agent's /proc shows it as `id`
  bool other_numbers = false;  // it sees itself by other numbers than `id`
  int64_t ahead_ns = 0;        // its CLOCK_MONOTONIC
  int64_t waits_from_ns = 0;   // its clock is not known: no wait is older than our first reading
  std::map<pid_t, pid_t> threads;  // from its own numbers, where they differ
  int64_t threads_read_ns = 0;
  // By a thread's own number: calls from before then are not of the thread that has it, if any has.
  std::map<uint32_t, int64_t> calls_from_ns;
  int64_t callers_checked_ns = 0;  // when that was checked; 0: never
  v1::Identity identity;
  bool identity_sent = false;
  size_t sites_sent = 0;
  std::string evidence_sent;
  std::map<uint32_t, CollectedComm> comms;

  bool ended = false;
  int64_t ended_ns = 0;
  std::optional<int> exit_code, exit_signal;
  std::string error;  // the exception it dies of
  int64_t error_ns = 0;
  int64_t step = -1;
  std::string phase;
#define PROCESS_NUMBER(type, name) type name = 0;
#define PROCESS_COUNT(name) uint64_t name = 0;
#include "proto/facts.def"
  bool exit_marked = false;
  bool read_after_end = false;
  bool stuck = false;  // its segment could not be read in time: what is known of it is old

  int64_t details_read_ns = 0;  // when what is read more rarely was read
  char state = '?';
  uint64_t cpu_ticks = 0;
  bool cpu_moving = false;
  uint64_t resident_bytes = 0;
  bool traced = false;
  std::string wait_channel;
};

}  // namespace rollcall
