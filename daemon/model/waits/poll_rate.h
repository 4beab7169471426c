// SPDX-License-Identifier: Apache-2.0
// What shows that a thread only asks again and again for what it waits for. Pure.
#pragma once

namespace rollcall {

// A thread that wakes so often polls. One that wakes less often may do a step each time.
inline constexpr double kLeastPollsASecond = 3.5;

// The begin of the functions in which a thread of gloo waits inside of a call.
inline constexpr char kGlooWaits[] = "gloo::transport::tcp::UnboundBuffer::wait";

}  // namespace rollcall
