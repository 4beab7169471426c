// SPDX-License-Identifier: Apache-2.0
// Handles two signals in a process that has a communicator. By one, an agent requests the registers
// and the top of the stack of a thread (segment::StackSlot). By SIGQUIT, a person requests all
// stacks of the process, which the agent of the host writes to its stderr; a JVM does the same.
//
// The handlers copy, or pass a descriptor on, and return. They do not unwind, allocate, lock, wait,
// or touch errno. They make system calls only through syscall(), which is not a cancellation point.
// A thread stuck in malloc or dlopen answers too.
//
// The handlers run on the thread's alternate signal stack, because the thread's own stack may be
// too small or not the system's (Go's). Some threads have too small an alternate stack. So the
// library wraps sigaltstack(), and once a thread sets such a stack, agents request no stacks of the
// process.
#pragma once

namespace rollcall {

// Stores what the handlers need of the new segment. Called by the thread that makes the segment,
// before other threads use it.
void PrepareStackSignals(const char* segment_path);

// Installs the handlers, once in a process, except for a signal that the program handles.
void InstallStackSignals();

// Restores the earlier handlers, in a child of fork, which has no communicator.
void RemoveStackSignals();

}  // namespace rollcall
