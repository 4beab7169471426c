// SPDX-License-Identifier: Apache-2.0
// Records in the segment what a Python program dies of: the last line of the traceback
// of an exception that nobody caught, and the line of the program that raised it.
//
// sys.excepthook is wrapped, with what was there called behind it; it costs nothing
// until an exception is printed. The wrapping is left to the interpreter
// (Py_AddPendingCall), which does it at a safe point of its main thread.
//
// StartPythonErrors() is for calls that create communicators, from any thread, with or without
// Python's lock. It must not run Python.
#pragma once

namespace rollcall {

// Where a communicator is created; the first time in a process with Python.
void StartPythonErrors();

}  // namespace rollcall
