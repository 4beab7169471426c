// SPDX-License-Identifier: Apache-2.0
// Threads of the simulated NCCL. They take no signal: the application's
// handlers belong on the application's threads.
#pragma once

#include <functional>
#include <thread>

namespace rollcall::sim {

std::thread QuietThread(std::function<void()> body);
inline void StartQuietThread(std::function<void()> body) { QuietThread(std::move(body)).detach(); }

}  // namespace rollcall::sim
