// SPDX-License-Identifier: Apache-2.0
// Keeps the job alive when another process truncates its segment: a write to a page that is gone
// then raises SIGBUS, at once and in the thread that writes.
//
// The handler puts private memory in the place of the segment, has recording stopped, and lets the
// thread write again. Every other SIGBUS does what it did before. The library installs the handler
// with the first communicator, and only where SIGBUS had its default action. A handler that the
// program installs later takes its place.
#pragma once

namespace rollcall {

// Once in a process. The handler calls `stop`, in the thread that wrote.
void InstallBusGuard(void (*stop)());

// In a child of fork, which has no communicator.
void RemoveBusGuard();

}  // namespace rollcall
