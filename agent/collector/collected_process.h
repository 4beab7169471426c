// SPDX-License-Identifier: Apache-2.0
// The state that the collector keeps of a process and of its communicators between ticks. Only
// collector.h includes this file.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/collector/comm_update.h"
#include "agent/collector/poll_pace.h"
#include "agent/processes/process_id.h"
#include "agent/processes/spare_threads.h"
#include "agent/segments/segment_owner.h"
#include "agent/segments/segment_reader.h"
#include "rollcall/v1/agent.pb.h"

namespace rollcall {

// A segment file of the directory, before the collector has found its process.
struct NewSegment {
  std::shared_ptr<SegmentReader> reader;
  SegmentClaim claim;
  uint64_t settled_by = 0;  // this scan lists every process that has mapped the file
};

struct CollectedComm {
  uint64_t init_ticks = 0;  // a different value: the block serves another communicator
  CommHistory history;
  bool busy = false;  // the last tick had records
  std::string sent;   // serialized: the last update, without records; "": not kept
};

// A thread that has made calls.
struct Caller {
  uint32_t own_tid = 0;  // in its own pid namespace
  int32_t tid = 0;       // in the agent's; 0: not known
  std::string name;
  bool was_read = false;  // /proc has been asked for the name
};

struct CollectedProcess {
  ProcessId id;
  std::string file;  // name in the directory; "": no segment, or one in another folder
  std::shared_ptr<SegmentReader> reader;
  SegmentClaim claim;
  size_t segment_bytes = 0;    // of what was read of the segment first
  bool visible = true;         // this agent's /proc has this process as `id`
  bool other_numbers = false;  // its own pid namespace has another pid for it
  int64_t ahead_ns = 0;        // of its CLOCK_MONOTONIC over the agent's
  // Set where the offset of its clock is unknown: no wait starts before the first reading.
  int64_t wait_floor_ns = 0;
  std::map<pid_t, pid_t> threads;  // from tids in its pid namespace to the agent's, if they differ
  int64_t threads_read_ns = 0;
  // By tid in its own pid namespace: the thread with this tid made no call before that time.
  std::map<uint32_t, int64_t> calls_from_ns;
  int64_t callers_checked_ns = 0;  // time of that check; 0: never
  std::vector<Caller> callers;     // at most kMostCallers, the newest last
  v1::Identity identity;
  int64_t payer =
      SpareThreads::kNobody;    // PayerOfReads(), of a process that lived when it was found
  int launch_tries = 0;         // reads of its launch facts that have failed
  int64_t launch_again_ns = 0;  // time of the next one; 0: no more
  bool identity_sent = false;
  size_t sites_sent = 0;
  std::string evidence_sent;
  std::map<uint32_t, CollectedComm> comms;

  // by CollectorOptions::takes in the last tick; nullopt: not asked so far
  std::optional<uint64_t> turn;

  bool ended = false;
  int64_t ended_ns = 0;
  int64_t alive_ns = 0;  // the last look that saw it alive; 0: none
  std::optional<int> exit_code, exit_signal;
  std::string error;  // the uncaught Python exception that ends it
  int64_t error_ns = 0;
  ThreadFailureSnapshot thread_failure;
  int64_t step = -1;
  std::string phase;
#define PROCESS_NUMBER(type, name) type name = 0;
#define PROCESS_COUNT(name) uint64_t name = 0;
#include "proto/facts.def"
  bool exit_marked = false;
  bool read_after_end = false;
  bool stuck = false;  // the last read of its segment timed out: the values here are old

  bool missing = false;       // in /proc, at the last read
  int64_t proc_read_ns = 0;   // time of the last read of the fields below; 0: never
  int64_t had_memory_ns = 0;  // the last read at which it still had its memory; 0: none
  char state = '?';
  bool was_at_stop = false;  // another process held its main thread at the last read
  uint64_t cpu_ticks = 0;
  PollPaces poll_paces;
  bool cpu_moving = false;
  uint64_t resident_bytes = 0;
  bool traced = false;
  std::string wait_channel;
};

// The user whose share of the agent it takes, also for reads of it that block
// (SpareThreads::Run()).
inline int64_t PayerOf(const CollectedProcess& process) {
  if (process.payer != SpareThreads::kNobody) return process.payer;
  return process.identity.has_uid() ? process.identity.uid() : SpareThreads::kNobody;
}

}  // namespace rollcall
