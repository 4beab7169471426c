// SPDX-License-Identifier: Apache-2.0
// Reads the Python frames of one process's threads from its memory.
//
//   PythonSampler python(interpreter, &memory);
//   python.ListThreads();                      // before any thread is stopped
//   python.ReadFrames(&thread);                // while that thread is stopped
//   python.KeepFrames(&thread);                // after that thread continues
//   python.ReadCode(&sample);                  // after all threads continue
//
// The sampler never calls the interpreter and needs none of its locks, so it works on an
// interpreter that is stuck. Reads of a running thread may be inconsistent. So every read of an
// address may fail, every code object must have the right type, and every length has a limit.
#pragma once

#include <cstdint>
#include <vector>

#include "agent/processes/process_memory.h"
#include "agent/processes/stack_sample.h"
#include "agent/python/exceptions.h"
#include "agent/python/interpreter.h"
#include "agent/python/objects.h"
#include "agent/python/thread_objects.h"
#include "base/fair_parts.h"

namespace rollcall {

class PythonSampler {
 public:
  // `memory` must outlive this object.
  PythonSampler(PythonInterpreter interpreter, ProcessMemory* memory);

  void ListThreads();
  // Whether the interpreter may have a state for the thread, before its registers are known.
  bool MayRun(const RawThread& thread) const;

  // Finds the thread by the thread pointer in its registers (x86-64), else by its tid. Does not
  // allocate memory. frames() returns the result until the next call.
  void ReadFrames(RawThread* thread);
  const std::vector<RawPythonFrame>& frames() const { return frames_; }
  // Gives the thread its frames. Those of all threads together have a limit.
  void KeepFrames(RawThread* thread);

  void ReadCode(RawSample* sample);

 private:
  struct Thread {
    uint64_t address = 0;
    uint64_t pthread = 0;
    uint64_t tid = 0;  // in the process's pid namespace; 0 if unknown
    uint64_t gil = 0;  // address of its interpreter's lock; 0 means the runtime's
  };

  void ListInterpreterThreads(uint64_t interpreter);
  const Thread* FindThread(const RawThread& thread) const;
  const Thread* FindByStack(const RawThread& thread) const;
  bool IsStill(const Thread& thread);
  bool HoldsGil(const Thread& thread);
  bool WaitsForGil(const Thread& thread, const RawThread& raw) const;
  uint64_t GilHolderAddress(const Thread& thread) const;
  uint64_t GilLockedAddress(const Thread& thread) const;
  uint64_t InnermostFrame(const Thread& thread);
  uint64_t AddFrame(uint64_t address);
  void ReadFirstLocal(uint64_t frame, RawThread* thread);
  void ReadThreadObject(const PythonSample& python, RawThread* thread);

  const PythonInterpreter interpreter_;
  const PythonLayout& layout_;
  ProcessMemory* const memory_;
  PageCopies pages_;
  PythonObjects objects_;
  PythonThreadObjects thread_objects_;
  PythonExceptions exceptions_;
  std::vector<Thread> threads_;
  std::vector<RawPythonFrame> frames_;  // reserved for one thread's frames
  FairParts parts_ = {0, 0};            // of the limit for the frames of all threads
};

}  // namespace rollcall
