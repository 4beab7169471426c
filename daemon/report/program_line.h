// SPDX-License-Identifier: Apache-2.0
// Finds where a process stands in its program: the innermost line, of Python or C++, that is not a
// library's, and the library's function that this line has called. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "daemon/model/stack_place.h"

namespace rollcall {

namespace v1 {
class Frame;
class ProcessStack;
class ThreadStack;
}  // namespace v1

// Of the first calling thread that is in the program's code, else of the main thread if it is, else
// of the first thread that is. Without an
// innermost line, `at` is empty and the functions are the main thread's.
StackPlace FindPlace(const v1::ProcessStack& stack);

// Returns the place of each thread in the program's code, those in a call of a communication
// library first; at most limits::kThreadPlaces.
std::vector<ThreadPlace> FindThreadPlaces(const v1::ProcessStack& stack);

// Where one thread stands.
StackPlace PlaceOfThread(const v1::ThreadStack& thread);

// The threads for whose calls another thread of the process waits: those of PyTorch's backward
// pass.
std::vector<uint32_t> FindAwaitedTids(const v1::ProcessStack& stack);

// Whether the code belongs to the system, a package, a framework or an interpreter, or has no name.
bool IsLibraryFrame(const v1::Frame& frame);

// Whether the thread has a function of the program on its stack.
bool RunsTheProgram(const v1::ThreadStack& thread);

// "Queue.get", "queue.get", "std::condition_variable::wait": without arguments and templates.
std::string ShortFunction(const v1::Frame& frame);

}  // namespace rollcall
