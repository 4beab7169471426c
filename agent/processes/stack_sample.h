// SPDX-License-Identifier: Apache-2.0
// The seam between TAKING a process's stacks and UNWINDING them: plain values.
//
// Whoever takes (by ptrace from outside; a signal handler inside the process can give the same
// value) copies registers and the top of each stack into a RawSample and lets the thread run on.
// Everything costly (unwinding, names, lines) then works on the RawSample and on files alone.
#pragma once

#include <sys/types.h>
#include <sys/user.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "agent/processes/proc_maps.h"

namespace rollcall {

using ThreadRegisters = user_regs_struct;

#if defined(__x86_64__)
inline uint64_t InstructionPointer(const ThreadRegisters& registers) { return registers.rip; }
inline uint64_t StackPointer(const ThreadRegisters& registers) { return registers.rsp; }
inline void SetPlace(uint64_t instruction, uint64_t stack, ThreadRegisters* registers) {
  registers->rip = instruction;
  registers->rsp = stack;
}
// Of the function or system call that has just begun.
inline uint64_t FirstArgument(const ThreadRegisters& registers) { return registers.rdi; }
#elif defined(__aarch64__)
inline uint64_t InstructionPointer(const ThreadRegisters& registers) { return registers.pc; }
inline uint64_t StackPointer(const ThreadRegisters& registers) { return registers.sp; }
inline void SetPlace(uint64_t instruction, uint64_t stack, ThreadRegisters* registers) {
  registers->pc = instruction;
  registers->sp = stack;
}
inline uint64_t FirstArgument(const ThreadRegisters& registers) { return registers.regs[0]; }
#else
#error "Rollcall takes stacks on x86-64 and aarch64 only"
#endif

enum class HowTaken {
  kNotTouched,   // left alone on purpose, or not permitted; `error` says why
  kInterrupted,  // stopped for the copy
  kStopped,      // was stopped already (SIGSTOP, Ctrl-Z) and still is
  kWatched,      // copied while it slept, never stopped: only stack and instruction pointer known
  kAnswered,     // its handler of our signal made the copy
  kAtSignal,     // stopped as a signal arrived, which was passed on
  kFailed,       // did not stop in time, or ended; `error` says which
};

// One Python function that a thread is in, as its interpreter's memory had it.
struct RawPythonFrame {
  uint64_t code = 0;  // address of its code object; 0: the C evaluator was entered here
  // Address of the instruction, or its offset in bytes before 3.11. Where the evaluator was
  // entered: an address within its native frame, from 3.12 on.
  int64_t instruction = 0;
};

enum class PythonLock {
  kNone,  // neither, or not known
  kHolds,
  kWaits,
};

struct RawThread {
  pid_t tid = 0;
  pid_t own_tid = 0;  // as the thread itself sees it, in its pid namespace; 0: not known
  bool is_main = false;
  std::string name;
  char state = '?';   // as /proc gave it before the thread was touched
  std::string wchan;  // kernel function it waited in; empty if none or not permitted
  uint64_t cpu_ns = 0;
  uint64_t signals_blocked = 0;  // bit n-1: signal n
  uint64_t signals_caught = 0;
  HowTaken how = HowTaken::kNotTouched;
  std::string error;  // empty if registers and stack are there
  ThreadRegisters registers = {};
  uint64_t stack_base = 0;     // address of stack.front()
  std::vector<uint8_t> stack;  // from the stack pointer upwards, bounded
  int64_t stopped_ns = 0;      // how long taking kept it from running
  bool is_python = false;      // the interpreter knows it
  bool holds_gil = false;
  bool waits_gil = false;
  uint64_t python_first_local = 0;  // of the outermost frame: its first argument, an object
  std::string python_name;          // what threading calls it; empty if it did not start it
  // Innermost first. A frame without code stands after each group that one activation of the C
  // evaluator runs.
  std::vector<RawPythonFrame> python_frames;

  bool taken() const { return error.empty(); }
};

// What a code object says: names and lines, never values.
struct PythonCode {
  std::string name;  // qualified from 3.11 on
  std::string file;
  int first_line = 0;
  uint64_t instructions = 0;  // address of the first; 0 before 3.11
  std::string lines;          // its table of lines
};

struct PythonSample {
  std::string module;  // path of the file that holds the interpreter; empty: no Python here
  int minor = 0;       // 11 for 3.11
  std::map<uint64_t, PythonCode> code;  // by address
  std::string note;                     // what of it could not be read; empty if all could
};

struct RawSample {
  pid_t pid = 0;
  std::string method;    // "ptrace" or "signal"
  bool refused = false;  // the kernel did not permit it; `error` says why
  std::vector<ProcMap> maps;
  std::vector<RawThread> threads;  // the main thread first
  PythonSample python;
  int64_t taken_unix_ns = 0;
  int64_t duration_ns = 0;
  int64_t copying_ns = 0;  // of it, from the first thread touched to the last one copied
  std::string error;       // why threads are missing or untaken, and what to do
};

struct Frame {
  std::string function;        // demangled; empty if unknown
  std::string module;          // file name, "[vdso]", or "[JIT code]"
  uint64_t module_offset = 0;  // address within the file, as addr2line -e wants it
  std::string build_id;        // hex; empty if the file has none
  std::string source_file;     // empty without DWARF
  int line = 0;                // 0 without DWARF
  uint64_t address = 0;        // in the process
  uint64_t stack_pointer = 0;  // of a native frame, in the process
  bool inlined = false;        // shares `address` with its caller, the next frame
  bool python = false;         // a Python function; no module then
  bool interpreter = false;    // C code of the Python interpreter itself
};

struct ThreadStack {
  pid_t tid = 0;
  std::string name;
  char state = '?';
  std::string wchan;
  uint64_t cpu_ns = 0;
  PythonLock gil = PythonLock::kNone;
  std::vector<Frame> frames;  // innermost first
  std::string note;           // why frames are missing or uncertain; empty if all is well
};

struct ProcessStack {
  pid_t pid = 0;
  std::vector<ThreadStack> threads;  // the main thread first
  std::string method;
  int64_t taken_unix_ns = 0;
  std::string error;
};

}  // namespace rollcall
