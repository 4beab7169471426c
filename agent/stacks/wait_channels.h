// SPDX-License-Identifier: Apache-2.0
// Classifies the kernel function that a thread waits in (/proc/PID/task/TID/wchan): whether taking
// the stack would end the system call with EINTR, which a program can detect.
//
// From signal(7) of Linux man-pages 6, and the names in Linux 4.18 to 6.18. Pure.
#pragma once

#include <string>

namespace rollcall {

// Whether the name does not identify the wait: the thread was entering or leaving the wait, or the
// kernel does not show the name.
bool IsUnknownWait(const std::string& wait_channel);

// Whether the call ends when the thread is stopped and continued, even without a signal:
// epoll_wait, semop, sigtimedwait, and sockets that may have a timeout (SO_RCVTIMEO).
bool EndsWhenStopped(const std::string& wait_channel);

// Whether the call ends after any signal handler, even with SA_RESTART: all calls with a timeout
// except those of sockets, and the calls that wait for signals.
bool EndsWhenSignalled(const std::string& wait_channel);

}  // namespace rollcall
