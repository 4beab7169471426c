// SPDX-License-Identifier: Apache-2.0
// Records the exception that ends a Python program in the segment, and the newest one that ended a
// thread: the last line of the traceback, and the program's line that raised it.
//
// Wraps sys.excepthook and threading.excepthook, and calls the previous hook afterwards. This costs
// nothing until Python prints an exception. The interpreter does the wrapping at a safe point of
// its main thread (Py_AddPendingCall).
//
// StartPythonErrors() is for calls that create communicators, from any thread, with or without
// Python's lock. It must not run Python.
//
// A main thread that only waits for others has no safe point. Such programs fetch NCCL's functions
// by ctypes, which holds Python's lock meanwhile: WatchPythonThreads() then wraps the hook of
// threads at once.
#pragma once

namespace rollcall {

// Called for each new communicator. The first call in a process with Python does the work.
void StartPythonErrors();

// Called when the program looks up a function of NCCL. Does nothing unless the caller holds
// Python's lock and Python has no exception set.
void WatchPythonThreads();

}  // namespace rollcall
