// Reads the Python frames of one process's threads out of its memory.
//
//   PythonSampler python(interpreter, &memory);
//   python.ListThreads();                      // before any thread is held
//   python.ReadFrames(&thread);                // while that thread is held
//   thread.python_frames = python.frames();    // when it runs again
//   python.ReadCode(&sample);                  // when all have run on
//
// Never calls the interpreter and needs none of its locks, so it works where that is stuck. What is
// read from a thread that moves may be inconsistent: every address is checked by reading, every
// code object by its type, every length by a limit.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "agent/process_memory.h"
#include "agent/python/interpreter.h"
#include "agent/stack_sample.h"

namespace rollcall {

// A copy of the pages that were read since Forget(): frames lie close together, and a system call
// for each would hold the thread for longer.
class PageCopies {
 public:
  explicit PageCopies(ProcessMemory* memory);
  bool Read(uint64_t address, void* to, size_t size);
  void Forget();

 private:
  static constexpr size_t kPageBytes = 4096;
  static constexpr size_t kSlots = 64;
  const uint8_t* Page(uint64_t number);

  ProcessMemory* const memory_;
  std::array<uint64_t, kSlots> numbers_;
  std::unique_ptr<uint8_t[]> bytes_;
};

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

  void ListThreadsOf(uint64_t interpreter);
  const Thread* FindThread(const RawThread& thread) const;
  const Thread* FindByStack(const RawThread& thread) const;
  bool IsStill(const Thread& thread);
  bool HoldsGil(const Thread& thread);
  uint64_t InnermostFrame(const Thread& thread);
  uint64_t AddFrame(uint64_t address);
  bool ReadCodeObject(uint64_t address, PythonCode* code);
  bool ReadString(uint64_t address, size_t most, std::string* text);
  bool ReadBytes(uint64_t address, std::string* bytes);
  bool HasType(const uint8_t* object, uint64_t type) const;

  const PythonInterpreter interpreter_;
  const PythonLayout& layout_;
  ProcessMemory* const memory_;
  PageCopies pages_;
  std::vector<Thread> threads_;
  std::vector<RawPythonFrame> frames_;  // room for one thread's, made beforehand
};

}  // namespace rollcall
