// SPDX-License-Identifier: Apache-2.0
// Reads the Python frames of one process's threads out of its memory.
//
//   PythonSampler python(interpreter, &memory);
//   python.ListThreads();                      // before any thread is stopped
//   python.ReadFrames(&thread);                // while that thread is stopped
//   thread.python_frames = python.frames();    // when it runs again
//   python.ReadCode(&sample);                  // when all have run on
//
// Never calls the interpreter and needs none of its locks, so it works where that is stuck. What is
// read from a thread that moves may be inconsistent: every address is checked by reading, every
// code object by its type, every length by a limit.
#pragma once

#include <cstdint>
#include <vector>

#include "agent/processes/process_memory.h"
#include "agent/processes/stack_sample.h"
#include "agent/python/interpreter.h"
#include "agent/python/objects.h"
#include "agent/python/thread_names.h"

namespace rollcall {

class PythonSampler {
 public:
  // `memory` must outlive this object.
  PythonSampler(PythonInterpreter interpreter, ProcessMemory* memory);

  void ListThreads();

  // Finds the thread by its own pointer where the registers have it, else by its number. Allocates
  // nothing; frames() then has the frames, until the next call.
  void ReadFrames(RawThread* thread);
  const std::vector<RawPythonFrame>& frames() const { return frames_; }

  void ReadCode(RawSample* sample);

 private:
  struct Thread {
    uint64_t address = 0;
    uint64_t pthread = 0;
    uint64_t tid = 0;  // in the process's own pid namespace; 0: not known
    uint64_t gil = 0;  // address of its interpreter's lock; 0: the runtime's
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
  bool ReadCodeObject(uint64_t address, PythonCode* code);
  void ReadThreadName(const PythonSample& python, RawThread* thread);

  const PythonInterpreter interpreter_;
  const PythonLayout& layout_;
  ProcessMemory* const memory_;
  PageCopies pages_;
  PythonObjects objects_;
  PythonThreadNames thread_names_;
  std::vector<Thread> threads_;
  std::vector<RawPythonFrame> frames_;  // room for one thread's, made beforehand
};

}  // namespace rollcall
