// SPDX-License-Identifier: Apache-2.0
// What the kernel function that a thread waits in (/proc/PID/task/TID/wchan) says about the system
// call: whether taking the stack would end it with EINTR, which a program can detect.
//
// From signal(7) of Linux man-pages 6, and the names in Linux 4.18 to 6.18. Pure.
#pragma once

#include <string>

namespace rollcall {

// The name does not say where it waits: the thread was on its way into the wait, or out of it, or
// the kernel does not show it.
bool IsUnknownWait(const std::string& wait_channel);

// Ends when the thread is stopped and goes on, though no signal was there for it: epoll_wait,
// semop, sigtimedwait, and sockets that may have a timeout (SO_RCVTIMEO).
bool EndsWhenStopped(const std::string& wait_channel);

// Ends after any signal handler, SA_RESTART or not: all calls that have a timeout but the sockets',
// and those that are made to wait for signals.
bool EndsWhenSignalled(const std::string& wait_channel);

}  // namespace rollcall
