// SPDX-License-Identifier: Apache-2.0
// The values between the two steps of a stack sample: taking a process's stacks and unwinding them.
//
// The stack taker (ptrace from outside, or a signal handler inside the process) copies the
// registers and the top of each stack into a RawSample and lets the thread continue. The expensive
// work (unwinding, names, lines) then uses only the RawSample and files.
#pragma once

#include <sys/types.h>
#include <sys/user.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "agent/processes/proc_maps.h"
#include "agent/processes/source_block.h"

namespace rollcall {

using ThreadRegisters = user_regs_struct;

#if defined(__x86_64__)
inline uint64_t InstructionPointer(const ThreadRegisters& registers) { return registers.rip; }
inline uint64_t StackPointer(const ThreadRegisters& registers) { return registers.rsp; }
inline void SetInstructionAndStack(uint64_t instruction, uint64_t stack,
                                   ThreadRegisters* registers) {
  registers->rip = instruction;
  registers->rsp = stack;
}
// The first argument of the function or system call that has just begun.
inline uint64_t FirstArgument(const ThreadRegisters& registers) { return registers.rdi; }
#elif defined(__aarch64__)
inline uint64_t InstructionPointer(const ThreadRegisters& registers) { return registers.pc; }
inline uint64_t StackPointer(const ThreadRegisters& registers) { return registers.sp; }
inline void SetInstructionAndStack(uint64_t instruction, uint64_t stack,
                                   ThreadRegisters* registers) {
  registers->pc = instruction;
  registers->sp = stack;
}
inline uint64_t FirstArgument(const ThreadRegisters& registers) { return registers.regs[0]; }
#else
#error "Rollcall takes stacks on x86-64 and aarch64 only"
#endif

enum class HowTaken {
  kNotTouched,   // skipped on purpose, or not permitted; `error` has the reason
  kInterrupted,  // stopped for the copy
  kStopped,      // was already stopped (SIGSTOP, Ctrl-Z) and stays stopped
  kWatched,      // copied while it slept, never stopped: only stack and instruction pointer valid
  kAnswered,     // the library's signal handler made the copy
  kAtSignal,     // stopped when a signal arrived, which the taker delivered afterwards
  kFailed,       // did not stop in time, or ended; `error` has the reason
};

// One Python frame of a thread, as copied from its interpreter's memory.
struct RawPythonFrame {
  uint64_t code = 0;  // address of its code object; 0 means an entry into the C evaluator
  // Address of the instruction; before 3.11, its offset in bytes. For an entry into the evaluator:
  // an address within its native frame, from 3.12 on.
  int64_t instruction = 0;
};

enum class PythonLock {
  kNone,  // neither holds nor waits, or not known
  kHolds,
  kWaits,
};

// An exception of Python.
struct PythonException {
  std::string type;  // "ValueError"; empty without an exception
  std::string text;  // of its arguments, as far as these are strings and numbers
  // The innermost line of the program that it came through; empty and 0 if unknown.
  std::string function, file;
  int line = 0;
};

struct RawThread {
  pid_t tid = 0;
  pid_t own_tid = 0;  // in its own pid namespace; 0 if unknown
  bool is_main = false;
  std::string name;
  char state = '?';   // from /proc, before the copy
  std::string wchan;  // kernel function that it waited in; empty if there is none, or not permitted
  uint64_t cpu_ns = 0;
  uint64_t signals_blocked = 0;  // bit n-1: signal n
  uint64_t signals_caught = 0;
  uint64_t switches = 0;         // how often it had slept or lost the CPU before; 0 if unknown
  uint64_t sample_switches = 0;  // how often it has since, because of the sample
  HowTaken how = HowTaken::kNotTouched;
  std::string error;  // empty if registers and stack are valid
  ThreadRegisters registers = {};
  uint64_t stack_base = 0;     // address of stack.front()
  std::vector<uint8_t> stack;  // from the stack pointer upwards, bounded
  // If the thread is in a signal handler on a stack of its own: the copy of the interrupted stack.
  uint64_t interrupted_base = 0;
  std::vector<uint8_t> interrupted_stack;
  int64_t stopped_ns = 0;  // time for which the taker stopped it
  bool is_python = false;  // the interpreter has a state for it
  bool holds_gil = false;
  bool waits_gil = false;
  uint64_t python_first_local = 0;  // first argument of the outermost frame: address of an object
  uint64_t python_state = 0;        // address of the interpreter's state for it
  std::string python_name;          // its name in Python's threading; empty if started elsewhere
  bool keeps_process = false;       // Python does not end before it: it is not a daemon
  PythonException exception;        // that it is handling
  // Innermost first. A frame without code ends each group of frames that one activation of the C
  // evaluator runs.
  std::vector<RawPythonFrame> python_frames;

  bool taken() const { return error.empty(); }
};

// The contents of a code object: names and lines, never values.
struct PythonCode {
  std::string name;  // qualified from 3.11 on
  std::string file;
  int first_line = 0;
  uint64_t instructions = 0;  // address of the first; 0 before 3.11
  std::string lines;          // the line table
};

struct PythonSample {
  std::string module;  // path of the file with the interpreter; empty if there is no Python process
  int minor = 0;       // 11 for 3.11
  std::map<uint64_t, PythonCode> code;  // by address
  std::string note;                     // the parts that could not be read, or empty
};

struct RawSample {
  pid_t pid = 0;
  std::string method;    // "ptrace" or "signal"
  bool refused = false;  // the kernel did not permit it; `error` has the reason
  std::vector<ProcMap> maps;
  std::vector<RawThread> threads;  // the main thread first
  PythonSample python;
  int64_t taken_unix_ns = 0;
  int64_t duration_ns = 0;
  int64_t copying_ns = 0;  // part of duration_ns: from the first thread to the last copy
  std::string error;       // the reason why stacks are missing, and a remedy
};

struct Frame {
  std::string function;        // demangled; empty if unknown
  std::string module;          // file name, "[vdso]", or "[JIT code]"
  uint64_t module_offset = 0;  // address within the file, for addr2line -e
  std::string build_id;        // hexadecimal; empty if the file has none
  std::string source_file;     // empty if there is no DWARF
  int line = 0;                // 0 if there is no DWARF
  uint64_t address = 0;        // in the process
  uint64_t stack_pointer = 0;  // of a native frame, in the process
  bool inlined = false;        // has the `address` of its caller, the next frame
  bool python = false;         // a Python function; `module` is empty
  bool interpreter = false;    // C code of the Python interpreter itself
  // The blocks of the program's source around the line, outermost first, if it could be read.
  bool has_source = false;
  std::vector<SourceBlock> blocks = {};
  int32_t returns_at = 0;  // the last line with `return` before this one in its function; 0: none
};

struct ThreadStack {
  pid_t tid = 0;
  std::string name;
  char state = '?';
  std::string wchan;
  uint64_t cpu_ns = 0;
  uint64_t switches = 0;  // as in RawThread
  uint64_t sample_switches = 0;
  PythonLock gil = PythonLock::kNone;
  bool keeps_process = false;  // as in RawThread
  PythonException exception;
  std::string awaited_key;    // of a store, as FindNotedKey(); empty if there is none, or unknown
  std::vector<Frame> frames;  // innermost first
  std::string note;           // the reason why frames are missing or uncertain, or empty
};

struct ProcessStack {
  pid_t pid = 0;
  std::vector<ThreadStack> threads;  // the main thread first
  std::string method;
  int64_t taken_unix_ns = 0;
  std::string error;
};

}  // namespace rollcall
