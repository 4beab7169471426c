// SPDX-License-Identifier: Apache-2.0
// One Flight Recorder dump of PyTorch (one rank's file) as plain values,
// versions 2.1 to 2.10, from pickle or JSON. Fields that a version lacks keep
// their defaults.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace rollcall {

struct DumpedCall {
  uint64_t record_id = 0;
  std::string group;        // its name, "0"
  std::string description;  // what people call it, "default_pg"
  std::string group_id;     // key of Dump::status
  uint64_t collective_seq = 0,
           p2p_seq = 0;  // per group, from 1; members of a coalesced group share one
  std::string name;      // "nccl:all_reduce", "nccl:send 1->2"
  std::vector<uint64_t> input_counts, output_counts;         // elements of each tensor
  std::string dtype;                                         // of the first input, "Float"
  int64_t created_ns = 0, started_ns = 0, completed_ns = 0;  // 0: not known
  bool started = false, completed = false;                   // as the entry's state says
  bool retired = false;  // nobody watches it any more: completed, or timed out
  bool is_p2p = false;
  std::string
      where;  // the innermost line outside of torch, "train.py:41 (step)"; "" if not recorded
};

struct DumpedGroup {
  std::string description;
  std::vector<int32_t> ranks;  // global, ascending
};

struct DumpedStatus {
  int64_t enqueued = -1, started = -1, completed = -1;  // newest sequence number; -1: none
};

struct Dump {
  std::string version;
  std::map<std::string, DumpedGroup> groups;   // by name
  std::map<std::string, DumpedStatus> status;  // by group id
  std::vector<DumpedCall> calls;               // in the order of record_id
  std::vector<std::string> notes;              // entries that were left out, and why
};

// True for what may be a dump, by its first bytes.
bool LooksLikeDump(const std::string& head);

// Errors say what is wrong and where in the file.
absl::StatusOr<Dump> ReadDump(const std::string& bytes);

}  // namespace rollcall
