// SPDX-License-Identifier: Apache-2.0
// The two signals that a process with a communicator answers, like a JVM its
// SIGQUIT: one by which an agent asks a thread for its registers and the top of
// its stack (segment::StackSlot), and SIGQUIT, by which a person asks the host's
// agent for all stacks of the process on its stderr.
//
// The handlers copy, or pass a descriptor on, and return: they do not unwind,
// allocate, lock, wait, or touch errno, and use system calls only through
// syscall(), which is no cancellation point. A thread stuck in malloc or dlopen
// answers all the same.
//
// They run on the stack that a thread has for signals, for the one that it runs on may be too small
// or not the system's (Go's). Some threads have too little of the former: so sigaltstack() is
// wrapped, and where it is told of such a stack, agents ask none of the process's threads.
#pragma once

namespace rollcall {

// What the handlers need of the new segment. By the thread that makes it, before others know it.
void PrepareStackSignals(const char* segment_path);

// Once a process; a signal that the program has a handler for is left alone.
void InstallStackSignals();

// In a child of fork, which has no communicator: gives the signals back.
void RemoveStackSignals();

}  // namespace rollcall
