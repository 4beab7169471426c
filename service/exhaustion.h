// SPDX-License-Identifier: Apache-2.0
// What a service does where a limit of the system leaves it too little: memory, threads, file
// descriptors. It reports in one line which limit, and what to type, and ends in order.
//
// At the start the limits are compared with what the program needs at least. Later a request for
// memory that fails stops the program as SIGTERM does, with a little memory that was put by. If not
// even that suffices, or a library ends the process because it has none, the process ends at once.
// Both have the exit code kOutOfResources. All other uncaught exceptions still abort.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"

namespace rollcall {

// Exit code of a program that a limit of the system has stopped. It may start again: others may
// have used up what is missing.
inline constexpr int kOutOfResources = 3;

struct ResourceNeeds {
  uint64_t memory_bytes = 0;  // of address space, without the stacks of threads
  uint64_t threads = 0;       // beside one for each core
  uint64_t descriptors = 0;
};

// What the system allows. `stack_bytes`: what each thread takes.
struct ResourceLimits {
  uint64_t address_space = UINT64_MAX;
  uint64_t descriptors = UINT64_MAX;
  uint64_t stack_bytes = 0;
  uint64_t cores = 1;
};
ResourceLimits LimitsOfThisProcess();

// OK, or what to type: `program` cannot start.
absl::Status CheckLimits(const std::string& program, const ResourceNeeds& needs,
                         const ResourceLimits& limits);

// From now on this process ends as above. `program` must live for ever. Call it once, before any
// thread starts; it holds some MiB of address space.
void EndInOrderWhenExhausted(const char* program);

// The exit code of a service after a request to stop: 0, or kOutOfResources.
int ExitCodeOfService();

}  // namespace rollcall
