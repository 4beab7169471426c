// SPDX-License-Identifier: Apache-2.0
// The state of a process and its threads from /proc: running, asleep, stopped, traced, CPU time.
//
// The functions do not disturb the process. They are thread-safe, but every read may block: see
// spare_threads.h. A field that cannot be read (another user's wait channel) stays empty; only an
// ended process is an error.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace rollcall {

// The fields of /proc/PID/stat that Rollcall uses.
struct ProcStat {
  pid_t pid = 0;
  std::string name;  // may contain spaces, parentheses, newlines
  char state = '?';  // R running, S asleep, D in the kernel, T stopped, t traced, Z zombie, X dead
  pid_t ppid = 0;
  pid_t session = 0;            // its first process
  uint64_t cpu_ticks = 0;       // user and system time
  uint64_t children_ticks = 0;  // the same of its children that have ended
  uint64_t start_time = 0;      // clock ticks since boot; see process_id.h
  uint64_t resident_bytes = 0;
  uint64_t virtual_bytes = 0;
  bool is_kernel_thread = false;
  uint64_t program = 0;  // changes with each exec; 0 if not permitted
  int wait_status = 0;   // as waitpid() returns it; zombies only; 0 if not permitted
};

struct ProcThread {
  pid_t tid = 0;
  pid_t own_tid = 0;  // in its own pid namespace; 0 if unknown
  std::string name;
  char state = '?';
  std::string wchan;             // kernel function that it waits in; empty if it runs or is hidden
  pid_t tracer = 0;              // tid of the tracer, or 0
  uint64_t start_time = 0;       // clock ticks since boot
  uint64_t cpu_ns = 0;           // time on a CPU so far
  int64_t lacked_ns = -1;        // time so far that it was ready and had no CPU; -1 if unknown
  uint64_t signals_blocked = 0;  // bit n-1: signal n
  uint64_t signals_caught = 0;   // bit n-1: the process has a handler for signal n
  uint64_t switches = 0;         // how often it has slept or lost the CPU; 0 if unknown
};

struct ProcThreads {
  std::vector<ProcThread> threads;  // the main thread first
  bool left_out = false;            // the process has more than the limit
};

inline constexpr size_t kMaxThreadsRead = 16384;

absl::StatusOr<ProcStat> ParseProcStat(absl::string_view text);
absl::StatusOr<ProcStat> ReadProcStat(const std::string& proc_root, pid_t pid);

// Whether a tracer is a thread of this process, or has ended since.
bool IsOwnOrEndedTracer(const std::string& proc_root, pid_t tracer);

absl::StatusOr<ProcThread> ReadProcThread(const std::string& proc_root, pid_t pid, pid_t tid);
absl::StatusOr<ProcThreads> ReadProcThreads(const std::string& proc_root, pid_t pid,
                                            size_t max_threads = kMaxThreadsRead);

// Whether a process or thread in this state has ended.
inline bool IsDead(char state) { return state == 'Z' || state == 'X'; }

}  // namespace rollcall
