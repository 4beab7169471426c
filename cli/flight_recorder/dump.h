// SPDX-License-Identifier: Apache-2.0
// One dump of PyTorch's Flight Recorder (one rank's file) as plain values. Reads
// dump versions 2.1 to 2.10, as pickle or JSON. Fields that a version lacks keep
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
  std::string description;  // the name for people, "default_pg"
  std::string group_id;     // key of Dump::status
  // Sequence numbers in the process group, from 1. The members of a coalesced call share one.
  uint64_t collective_seq = 0, p2p_seq = 0;
  std::string name;                                   // "nccl:all_reduce", "nccl:send 1->2"
  std::vector<uint64_t> input_counts, output_counts;  // elements of each tensor
  // All-to-alls whose sums do not match: elements to compare with the other ranks; else 0.
  uint64_t exchanged = 0;
  // Gathers and scatters in which each rank has the number of elements that the root expects.
  bool is_in_list = false;
  std::string dtype;                                         // of the first input, "Float"
  int64_t created_ns = 0, started_ns = 0, completed_ns = 0;  // 0 if unknown
  bool started = false, completed = false;                   // from the entry's state
  bool retired = false;  // PyTorch no longer watches the call: it completed or timed out
  bool is_p2p = false;
  // The innermost line outside of torch, "train.py:41 (step)"; "" if not recorded.
  std::string where;
};

struct DumpedGroup {
  std::string description;
  std::vector<int32_t> ranks;  // global, ascending
};

struct DumpedStatus {
  int64_t enqueued = -1, started = -1, completed = -1;  // the newest sequence number, or -1
};

struct Dump {
  std::string version;
  std::string host;                            // from the dump's environment; empty if it has none
  std::map<std::string, DumpedGroup> groups;   // by name
  std::map<std::string, DumpedStatus> status;  // by group id
  std::vector<DumpedCall> calls;               // in the order of record_id
  std::vector<std::string> warnings;           // the entries left out, and the reasons
};

// Whether `head`, the first bytes of a file, may begin a dump.
bool LooksLikeDump(const std::string& head);

// Reads a whole dump. An error gives the problem and its place in the file.
absl::StatusOr<Dump> ReadDump(const std::string& bytes);

}  // namespace rollcall
