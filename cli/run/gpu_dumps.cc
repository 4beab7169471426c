// SPDX-License-Identifier: Apache-2.0
#include "cli/run/gpu_dumps.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "agent/processes/proc_files.h"
#include "agent/processes/rank_environment.h"
#include "base/clean_text.h"
#include "base/cut_text.h"
#include "base/durations.h"
#include "base/monotonic_clock.h"
#include "cli/diagnose/ask_for_dump.h"
#include "cli/gpu_dump/cuda_gdb.h"
#include "cli/gpu_dump/cuda_gdb_text.h"
#include "cli/gpu_dump/dump_variables.h"
#include "cli/run/recorder_files.h"

namespace rollcall {
namespace {

constexpr char kProc[] = "/proc";
constexpr size_t kMostRequests = 8;  // that wait
// The stacks of the incident are taken first: they stop threads, also the driver's.
constexpr int64_t kAfterStacksNs = 2 * kSecond;
constexpr int64_t kLookEveryNs = kSecond / 10;
constexpr int64_t kFileWithinNs = 15 * kSecond;
constexpr int64_t kRestsNs = kSecond;  // a file that has not grown for so long is complete
constexpr int64_t kAskedWithinNs = kSecond;
constexpr int64_t kEndWaitsNs = 60 * kSecond;
constexpr uint64_t kMostGpuDumpBytes = uint64_t{512} << 20;
constexpr uint64_t kLeastRoom = 2 * kMostGpuDumpBytes;  // free, before a dump is asked for

uint64_t FreeBytes(const std::string& folder) {
  struct statvfs about;
  if (statvfs(folder.c_str(), &about) != 0) return 0;
  return uint64_t{about.f_bavail} * about.f_frsize;
}

struct FileSize {
  uint64_t bytes = 0;
  int64_t changed_ns = 0;
  bool is_ours = false;  // a regular file of this user

  bool operator==(const FileSize& other) const {
    return bytes == other.bytes && changed_ns == other.changed_ns;
  }
};

FileSize LookAtDump(const std::string& path) {
  struct stat about;
  if (lstat(path.c_str(), &about) != 0) return {};
  FileSize size;
  size.is_ours = S_ISREG(about.st_mode) && about.st_uid == geteuid();
  size.bytes = static_cast<uint64_t>(about.st_size);
  size.changed_ns = about.st_mtim.tv_sec * kSecond + about.st_mtim.tv_nsec;
  return size;
}

// Returns the last line of what the debugger printed: its reason for not going on.
std::string LastLine(const std::string& text, const Redactor& redactor) {
  std::string last;
  for (const absl::string_view line : absl::StrSplit(text, '\n', absl::SkipWhitespace())) {
    last = std::string(line);
  }
  return CutText(CleanText(redactor.Redact(last)), kMostGpuText, "...");
}

}  // namespace

GpuDumps::GpuDumps(std::string folder, std::shared_ptr<const Redactor> redactor, Add add)
    : folder_(std::move(folder)),
      redactor_(std::move(redactor)),
      add_(std::move(add)),
      worker_(kMostRequests) {}

GpuDumps::~GpuDumps() { Stop(); }

void GpuDumps::Stop() {
  is_stopping_ = true;
  reads_.Cancel();
  worker_.Finish(SteadyTime::max(), Worker::Waiting::kDrop);
}

void GpuDumps::Ask(const GpuDumpRequest& request) {
  if (is_stopping_ || !worker_.Post([this, request] { Work(request); })) {
    const MutexLock lock(mutex_);
    done_.insert(request.incident);
  }
}

bool GpuDumps::Awaits(const std::string& incident, int64_t now_ns) {
  const MutexLock lock(mutex_);
  if (is_stopping_ || done_.count(incident) != 0) return false;
  const int64_t since_ns = awaited_since_ns_.emplace(incident, now_ns).first->second;
  return now_ns - since_ns < kEndWaitsNs;
}

void GpuDumps::Work(const GpuDumpRequest& request) {
  if (!request.targets.empty()) Sleep(kAfterStacksNs);
  for (const GpuDumpTarget& target : request.targets) {
    if (is_stopping_) break;
    add_(request.job, request.incident, Take(target));
  }
  const MutexLock lock(mutex_);
  done_.insert(request.incident);
}

// If false, the run ends.
bool GpuDumps::Sleep(int64_t ns) const {
  const int64_t until_ns = MonotonicNs() + ns;
  while (!is_stopping_ && MonotonicNs() < until_ns) {
    usleep(static_cast<useconds_t>(std::min(ns, kLookEveryNs) / 1000));
  }
  return !is_stopping_;
}

bool GpuDumps::IsAlive(int32_t pid) const { return kill(pid, 0) == 0 || errno == EPERM; }

v1::GpuDump GpuDumps::Take(const GpuDumpTarget& target) {
  v1::GpuDump dump;
  dump.set_rank(target.rank);
  dump.set_host(target.host);
  dump.set_pid(target.pid);
  dump.set_device(target.device);
  dump.set_is_culprit(target.is_culprit);
  std::string why_not = WhyNotAsked(target);
  if (why_not.empty()) why_not = AwaitFile(target);
  if (why_not.empty()) {
    ReadWithDebugger(target, &dump);
  } else {
    dump.set_note(absl::StrCat("no dump of its GPU: ", why_not));
  }
  return dump;
}

// Asks the process, if it may be asked. Empty if it was.
std::string GpuDumps::WhyNotAsked(const GpuDumpTarget& target) {
  if (!target.why_not.empty()) return target.why_not;
  const std::string pipe = GpuDumpPipe(folder_, target.pid);
  const auto environ = reads_.Get<std::string>(
      absl::StrCat("environ ", target.pid),
      [path = ProcPath(kProc, target.pid, "environ")] {
        return ReadProcFile(path, kMaxEnvironBytes).value_or("");
      },
      kAskedWithinNs);
  if (!environ || !HasGpuDumpVariables(*environ, folder_)) {
    return "its environment is not the one that `rollcall run --gpu-dump` has set";
  }
  const auto has_pipe = reads_.Get<bool>(
      absl::StrCat("pipe ", target.pid),
      [pid = target.pid, pipe] { return HasPipeOpen(kProc, pid, pipe); }, kAskedWithinNs);
  if (!has_pipe || !*has_pipe) {
    return "the CUDA driver in it has made no pipe for that, or it does not use CUDA";
  }
  if (FreeBytes(folder_) < kLeastRoom) {
    return absl::StrCat(folder_, " has less than ", kLeastRoom >> 20, " MiB free");
  }
  unlink(GpuDumpFile(folder_, target.pid).c_str());
  const auto is_asked = reads_.Get<bool>(
      absl::StrCat("ask ", target.pid),
      [root = ProcPath(kProc, target.pid, "root"), pipe] {
        return AskForDump(root, pipe, geteuid());
      },
      kAskedWithinNs);
  return is_asked && *is_asked ? "" : "the CUDA driver in it takes no request";
}

// Empty if the dump is there, and complete.
std::string GpuDumps::AwaitFile(const GpuDumpTarget& target) const {
  const std::string path = GpuDumpFile(folder_, target.pid);
  const int64_t until_ns = MonotonicNs() + kFileWithinNs;
  FileSize newest;
  int64_t rests_since_ns = MonotonicNs();
  while (Sleep(kLookEveryNs)) {
    const FileSize now = LookAtDump(path);
    if (!(now == newest)) rests_since_ns = MonotonicNs();
    newest = now;
    if (now.bytes > kMostGpuDumpBytes) {
      unlink(path.c_str());
      return absl::StrCat("it has more than ", kMostGpuDumpBytes >> 20, " MiB");
    }
    if (now.is_ours && now.bytes > 0 && MonotonicNs() - rests_since_ns >= kRestsNs) return "";
    if (!IsAlive(target.pid)) return "its process ended after it was asked";
    if (MonotonicNs() >= until_ns) {
      return absl::StrCat("none came within ", kFileWithinNs / kSecond, " s");
    }
  }
  return "the run ended first";
}

void GpuDumps::ReadWithDebugger(const GpuDumpTarget& target, v1::GpuDump* dump) const {
  const std::string path = GpuDumpFile(folder_, target.pid);
  const std::string program = FindCudaGdb(getenv("PATH"));
  if (program.empty()) {
    dump->set_note(
        absl::StrCat("its GPU was dumped, and nobody has read the dump: cuda-gdb is not "
                     "installed here; it stays in ",
                     path));
    return;
  }
  const GdbOutput output = RunCudaGdb(program, path, GdbLimits(), is_stopping_);
  unlink(path.c_str());
  const GdbRead read = ReadCudaGdb(output.text, *redactor_, dump);
  if (!output.problem.empty()) {
    dump->set_note(
        absl::StrCat("not all of the dump of its GPU was read: cuda-gdb: ", output.problem));
  } else if (read == GdbRead::kNoKernel) {
    dump->set_note("no kernel is on its GPU");
  } else if (read == GdbRead::kUnreadable) {
    dump->set_note(absl::StrCat("its GPU was dumped, and cuda-gdb shows no kernel: ",
                                LastLine(output.text, *redactor_)));
  }
  if (!IsAlive(target.pid)) {
    dump->set_note(absl::StrCat(dump->note(), dump->note().empty() ? "" : "; ",
                                "its process has ended after its GPU was dumped"));
  }
}

}  // namespace rollcall
