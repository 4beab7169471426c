// SPDX-License-Identifier: Apache-2.0
#include "agent/processes/proc_stat.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "agent/processes/proc_files.h"
#include "security/whole_words.h"

namespace rollcall {
namespace {

// Field numbers of proc(5): the state, the first field after the name, is field 3.
constexpr int kFirstFieldAfterName = 3;
constexpr size_t kPpidField = 4;
constexpr size_t kSessionField = 6;
constexpr size_t kFlagsField = 9;
constexpr uint64_t kKernelThreadFlag = 0x200000;  // PF_KTHREAD
constexpr size_t kUserTimeField = 14;
constexpr size_t kSystemTimeField = 15;
constexpr size_t kChildrensUserTimeField = 16;
constexpr size_t kChildrensSystemTimeField = 17;
constexpr size_t kStartTimeField = 22;
constexpr size_t kVirtualBytesField = 23;
constexpr size_t kResidentPagesField = 24;
constexpr size_t kStartCodeField = 26;
constexpr size_t kStartStackField = 28;
constexpr size_t kExitCodeField = 52;
constexpr size_t kStatusBytes = 64 << 10;  // the groups of a user may be many

template <typename T>
T NumberAt(const std::vector<absl::string_view>& fields, size_t field) {
  T value = 0;
  const size_t index = field - kFirstFieldAfterName;
  if (index < fields.size() && !absl::SimpleAtoi(fields[index], &value)) return 0;
  return value;
}

uint64_t TickNs() {
  static const uint64_t ns = 1'000'000'000ull / static_cast<uint64_t>(sysconf(_SC_CLK_TCK));
  return ns;
}

std::string ReadWchan(const std::string& directory) {
  const absl::StatusOr<std::string> text = ReadProcFile(absl::StrCat(directory, "/wchan"), 256);
  if (!text.ok()) return "";
  const absl::string_view name = absl::StripAsciiWhitespace(*text);
  return name == "0" ? "" : std::string(name);
}

pid_t LastNumber(absl::string_view line) {
  pid_t number = 0;
  const size_t blank = line.find_last_of(" \t");
  if (blank != absl::string_view::npos) line.remove_prefix(blank + 1);
  return absl::SimpleAtoi(line, &number) ? number : 0;
}

uint64_t NumberIn(absl::string_view text) {
  uint64_t number = 0;
  return absl::SimpleAtoi(text, &number) ? number : 0;
}

// Reads the tracer, the signals, the context switches, and the tid in the thread's own pid
// namespace (the last of NSpid).
void ReadStatus(const std::string& directory, ProcThread* thread) {
  const absl::StatusOr<std::string> text =
      ReadProcFile(absl::StrCat(directory, "/status"), kStatusBytes);
  if (!text.ok()) return;
  for (absl::string_view line : absl::StrSplit(*text, '\n')) {
    if (absl::ConsumePrefix(&line, "TracerPid:")) {
      thread->tracer = absl::SimpleAtoi(line, &thread->tracer) ? thread->tracer : 0;
    } else if (absl::ConsumePrefix(&line, "NSpid:")) {
      thread->own_tid = LastNumber(line);
    } else if (absl::ConsumePrefix(&line, "SigBlk:\t")) {
      static_cast<void>(absl::SimpleHexAtoi(line, &thread->signals_blocked));
    } else if (absl::ConsumePrefix(&line, "SigCgt:\t")) {
      static_cast<void>(absl::SimpleHexAtoi(line, &thread->signals_caught));
    } else if (absl::ConsumePrefix(&line, "voluntary_ctxt_switches:") ||
               absl::ConsumePrefix(&line, "nonvoluntary_ctxt_switches:")) {
      thread->switches += NumberIn(line);
    }
  }
}

// Reads the times from schedstat if the kernel has it, else converts `ticks`.
void ReadTimes(const std::string& directory, uint64_t ticks, ProcThread* thread) {
  const absl::StatusOr<std::string> text = ReadProcFile(absl::StrCat(directory, "/schedstat"), 128);
  thread->cpu_ns = ticks * TickNs();
  if (!text.ok()) return;
  const std::vector<absl::string_view> fields = absl::StrSplit(*text, ' ');
  uint64_t ns = 0;
  int64_t lacked_ns = 0;
  // Some sandboxes have the file and write no more than zeros.
  if (!absl::SimpleAtoi(fields[0], &ns) || ns == 0) return;
  thread->cpu_ns = ns;
  if (fields.size() > 1 && absl::SimpleAtoi(fields[1], &lacked_ns)) thread->lacked_ns = lacked_ns;
}

absl::StatusOr<ProcStat> ReadStatIn(const std::string& directory) {
  const absl::StatusOr<std::string> text = ReadProcFile(absl::StrCat(directory, "/stat"), 4096);
  if (!text.ok()) return text.status();
  return ParseProcStat(*text);
}

}  // namespace

absl::StatusOr<ProcStat> ParseProcStat(absl::string_view text) {
  // The name may contain ") R 1", so the last parenthesis is the closing one.
  const size_t open = text.find('(');
  const size_t close = text.rfind(')');
  ProcStat stat;
  if (open == absl::string_view::npos || close == absl::string_view::npos || close < open ||
      !absl::SimpleAtoi(absl::StripAsciiWhitespace(text.substr(0, open)), &stat.pid)) {
    return absl::InvalidArgumentError("not the text of a /proc/PID/stat");
  }
  stat.name = WithoutCutName(std::string(text.substr(open + 1, close - open - 1)));
  const std::vector<absl::string_view> fields =
      absl::StrSplit(absl::StripAsciiWhitespace(text.substr(close + 1)), ' ');
  if (fields.size() <= kStartTimeField - kFirstFieldAfterName || fields[0].size() != 1) {
    return absl::InvalidArgumentError("/proc/PID/stat has too few fields");
  }
  stat.state = fields[0][0];
  stat.ppid = NumberAt<pid_t>(fields, kPpidField);
  stat.session = NumberAt<pid_t>(fields, kSessionField);
  stat.cpu_ticks =
      NumberAt<uint64_t>(fields, kUserTimeField) + NumberAt<uint64_t>(fields, kSystemTimeField);
  stat.children_ticks = NumberAt<uint64_t>(fields, kChildrensUserTimeField) +
                        NumberAt<uint64_t>(fields, kChildrensSystemTimeField);
  stat.start_time = NumberAt<uint64_t>(fields, kStartTimeField);
  stat.virtual_bytes = NumberAt<uint64_t>(fields, kVirtualBytesField);
  stat.resident_bytes =
      NumberAt<uint64_t>(fields, kResidentPagesField) * static_cast<uint64_t>(getpagesize());
  stat.is_kernel_thread = (NumberAt<uint64_t>(fields, kFlagsField) & kKernelThreadFlag) != 0;
  // The kernel changes both addresses with each exec.
  stat.program =
      NumberAt<uint64_t>(fields, kStartCodeField) ^ NumberAt<uint64_t>(fields, kStartStackField);
  stat.wait_status = NumberAt<int>(fields, kExitCodeField);
  return stat;
}

absl::StatusOr<ProcStat> ReadProcStat(const std::string& proc_root, pid_t pid) {
  return ReadStatIn(absl::StrCat(proc_root, "/", pid));
}

bool IsOwnOrEndedTracer(const std::string& proc_root, pid_t tracer) {
  const std::string own = absl::StrCat(proc_root, "/self/task/", tracer);
  return access(own.c_str(), F_OK) == 0 ||
         access(absl::StrCat(proc_root, "/", tracer).c_str(), F_OK) != 0;
}

absl::StatusOr<ProcThread> ReadProcThread(const std::string& proc_root, pid_t pid, pid_t tid) {
  const std::string directory = absl::StrCat(proc_root, "/", pid, "/task/", tid);
  absl::StatusOr<ProcStat> stat = ReadStatIn(directory);
  if (!stat.ok()) return stat.status();
  ProcThread thread;
  thread.tid = tid;
  thread.name = std::move(stat->name);
  thread.state = stat->state;
  thread.start_time = stat->start_time;
  thread.wchan = ReadWchan(directory);
  ReadStatus(directory, &thread);
  ReadTimes(directory, stat->cpu_ticks, &thread);
  return thread;
}

absl::StatusOr<ProcThreads> ReadProcThreads(const std::string& proc_root, pid_t pid,
                                            size_t max_threads) {
  const std::string directory = absl::StrCat(proc_root, "/", pid);
  const absl::Status status = ReadStatIn(directory).status();
  if (!status.ok()) return status;
  ProcThreads found;
  std::vector<pid_t> tids =
      ListNumbers(absl::StrCat(directory, "/task")).value_or(std::vector<pid_t>{});
  // The main thread comes first, even if its tid is not the lowest (the tid counter wraps).
  std::stable_partition(tids.begin(), tids.end(), [pid](pid_t tid) { return tid == pid; });
  for (const pid_t tid : tids) {
    if (found.threads.size() == max_threads) {
      found.left_out = true;
      break;
    }
    absl::StatusOr<ProcThread> thread = ReadProcThread(proc_root, pid, tid);
    if (thread.ok()) found.threads.push_back(*std::move(thread));
  }
  return found;
}

}  // namespace rollcall
