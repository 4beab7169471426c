// SPDX-License-Identifier: Apache-2.0
// The work on stacks that reads files of the job: unwinding, names, lines. It runs in a child
// process, rollcall-probe: a file may lie on a server that does not answer, and may be made to cost
// much memory or time. The child has limits, and may be lost.
//
// The agent writes requests into the child's input, and reads one answer for each. Both are of one
// build.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "agent/processes/stack_sample.h"
#include "agent/stacks/stack_taker.h"
#include "agent/symbols/file_in_use.h"

namespace rollcall {

enum class StackWorkKind : uint8_t {
  kName,         // a ProcessStack of a RawSample
  kFindSymbols,  // FoundSymbols::distances
};

struct StackWork {
  StackWorkKind kind = StackWorkKind::kName;
  std::string proc_root = "/proc";
  TakeLimits limits;
  RawSample sample;  // of kFindSymbols: its pid only
  ProcMap file;      // of kFindSymbols
  std::vector<std::string> names;
  // Files that the child does not open: of devices that do not answer, and those that cost too
  // much.
  std::vector<uint64_t> silent_devices;
  std::vector<FileId> costly_files;
};

std::string ToBytes(const StackWork& work);
// False if these bytes are not of ToBytes() of this build.
bool FromBytes(const std::string& bytes, StackWork* work);

// The answers. False if these bytes are not of ToBytes() of this build.
std::string ToBytes(const ProcessStack& stack);
bool FromBytes(const std::string& bytes, ProcessStack* stack);
std::string ToBytes(const std::vector<uint64_t>& distances);
bool FromBytes(const std::string& bytes, std::vector<uint64_t>* distances);

// A message is its length in bytes, as a uint64_t, and its bytes.
inline constexpr uint64_t kMostStackWorkBytes = uint64_t{256} << 20;
// Limit of an answer. The child has read what strangers wrote, so the agent does not trust it.
inline constexpr uint64_t kMostStackAnswerBytes = uint64_t{32} << 20;

}  // namespace rollcall
