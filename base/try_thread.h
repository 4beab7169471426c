// SPDX-License-Identifier: Apache-2.0
// Threads that a running program can do without.
#pragma once

#include <optional>
#include <system_error>
#include <thread>
#include <utility>

namespace rollcall {

// Runs `run` in a thread. nullopt if the system refuses the thread, at a limit of processes or of
// address space: std::thread would throw, and end the program.
template <typename Run>
std::optional<std::thread> TryThread(Run run) {
  try {
    return std::thread(std::move(run));
  } catch (const std::system_error&) {
    return std::nullopt;
  }
}

}  // namespace rollcall
