// SPDX-License-Identifier: Apache-2.0
#include "agent/stacks/ptrace_stack_taker.h"

#include <sys/prctl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "agent/processes/proc_files.h"
#include "agent/processes/process_memory.h"
#include "agent/processes/trace_refused.h"
#include "agent/python/interpreter.h"
#include "agent/python/sampler.h"
#include "agent/stacks/sample_parts.h"
#include "agent/stacks/sample_switches.h"
#include "agent/stacks/signal_context.h"
#include "agent/stacks/traced_thread.h"
#include "agent/stacks/wait_channels.h"
#include "base/fair_parts.h"
#include "base/monotonic_clock.h"
#include "base/threads.h"

namespace rollcall {
namespace {

constexpr uint64_t kPageBytes = 4096;
constexpr size_t kMaxStackBytes = 1 << 20;

constexpr int kCopyTries = 3;

// Stacks for signals are small. The search for a signal's frame looks at no more.
constexpr size_t kMaxSignalStackBytes = 64 << 10;

// "232 0x4 ... 0x7ffc1234 0x7f5678": the call, its arguments, stack pointer and instruction
// pointer. False if the thread runs, or the kernel does not show the call.
bool ParseSyscallFile(const std::string& text, ThreadRegisters* registers) {
  const std::string line = text.substr(0, text.find('\n'));
  const std::vector<absl::string_view> words = absl::StrSplit(line, ' ');
  uint64_t stack = 0, instruction = 0;
  if (words.size() < 3 || !absl::SimpleHexAtoi(words[words.size() - 2], &stack) ||
      !absl::SimpleHexAtoi(words[words.size() - 1], &instruction)) {
    return false;
  }
  *registers = {};
  SetInstructionAndStack(instruction, stack, registers);
  return true;
}

// One Take(), on a tracer thread of its own. When that thread ends, the kernel releases every
// thread that is still seized, so no error can leave a thread of the job stopped.
class PtraceTake {
 public:
  PtraceTake(const std::string& proc_root, const TakeLimits& limits, RawSample* sample)
      : proc_root_(proc_root),
        limits_(limits),
        sample_(sample),
        memory_(sample->pid),
        resident_(&memory_, proc_root, sample->pid) {
    buffer_.resize(std::min(limits.stack_bytes, kMaxStackBytes));
    pages_.reserve(buffer_.size() / kPageBytes + 2);
  }

  void Run(PythonSymbols* symbols);

 private:
  void StartPython(PythonSymbols* symbols);
  bool IsWanted(const RawThread& thread) const;
  std::string ReasonNotToTouch() const;
  void TakeThread(RawThread* thread);
  void Refuse(RawThread* thread);
  void CopyWithoutStop(RawThread* thread);
  void StopAndCopy(TracedThread* traced, RawThread* thread);
  absl::Status CopyStopped(const TracedThread& traced, RawThread* thread);
  void CopyStacks(RawThread* thread);
  void KeepCopies(RawThread* thread);
  void SayCut();
  size_t Room() const { return std::min(buffer_.size(), parts_.most()); }
  size_t CopyMemory(uint64_t address, size_t size, size_t at);
  size_t StackSize(uint64_t stack_pointer) const;
  void ReleaseLate();

  const std::string& proc_root_;
  const TakeLimits& limits_;
  RawSample* sample_;
  TracerMemory memory_;
  ResidentMemory resident_;                // of memory_
  std::unique_ptr<PythonSampler> python_;  // nullptr if the process has no Python
  int64_t deadline_ns_ = 0;
  bool refused_ = false;
  size_t of_program_ = 0;           // threads so far: the main one, and those with Python frames
  std::vector<TracedThread> late_;  // seized, and did not stop in time
  std::vector<uint8_t> buffer_;     // allocated before a thread is stopped, as pages_ is
  FairParts parts_ = {0, 0};        // of the limit for all stacks, by threads
  size_t cut_ = 0;                  // threads whose stacks have met that limit
  size_t copied_ = 0;               // bytes of the stack in buffer_, and behind it:
  size_t interrupted_ = 0;          // bytes of the stack that a signal interrupted
  std::vector<iovec> pages_;
};

void PtraceTake::Run(PythonSymbols* symbols) {
  prctl(PR_SET_TIMERSLACK, 1);  // so that this thread's sleep of 50 us does not take 100
  const int64_t start = MonotonicNs();
  if (!BeginSample(proc_root_, limits_, sample_)) return;
  deadline_ns_ = start + limits_.TotalTimeoutNs(sample_->threads.size());
  parts_ = FairParts(limits_.all_stack_bytes, sample_->threads.size());
  StartPython(symbols);
  const int64_t begun = MonotonicNs();
  for (RawThread& thread : sample_->threads) {
    if (thread.error.empty() && !IsWanted(thread)) thread.error = "not asked for";
    if (thread.error.empty()) thread.error = ReasonNotToTouch();
    if (thread.error.empty()) TakeThread(&thread);
    if (thread.is_main || HasPythonFrames(thread)) ++of_program_;
    ReleaseLate();
  }
  sample_->copying_ns = MonotonicNs() - begun;
  if (python_ != nullptr) python_->ReadCode(sample_);
  KeepThreadsOfProgram(limits_, sample_);
  CountSampleSwitches(proc_root_, sample_);
  SayCut();
  sample_->duration_ns = MonotonicNs() - start;
}

void PtraceTake::StartPython(PythonSymbols* symbols) {
  auto interpreter = FindPython(*sample_, symbols, &memory_, &resident_, &sample_->python.note);
  if (!interpreter.has_value()) return;
  ProcessMemory* memory = &memory_;
  if (interpreter->only_resident) memory = &resident_;
  python_ = std::make_unique<PythonSampler>(*std::move(interpreter), memory);
  python_->ListThreads();
}

bool PtraceTake::IsWanted(const RawThread& thread) const {
  if (limits_.program_threads == 0 || thread.is_main) return true;
  return of_program_ < limits_.program_threads && python_ != nullptr && python_->MayRun(thread);
}

std::string PtraceTake::ReasonNotToTouch() const {
  if (refused_) return "see the error of the process";
  if (MonotonicNs() > deadline_ns_) return "not reached in the time allowed for this process";
  return "";
}

void PtraceTake::TakeThread(RawThread* thread) {
  // A thread in an uninterruptible wait does not stop.
  if (thread->state == 'D' || (thread->state == 'S' && EndsWhenStopped(thread->wchan))) {
    CopyWithoutStop(thread);
    return;
  }
  TracedThread traced(thread->tid);
  absl::Status status = traced.Seize();
  if (absl::IsPermissionDenied(status)) return Refuse(thread);
  if (!status.ok()) {
    thread->how = HowTaken::kFailed;
    thread->error = absl::IsNotFound(status) ? "it has ended" : std::string(status.message());
    return;
  }
  StopAndCopy(&traced, thread);
}

void PtraceTake::Refuse(RawThread* thread) {
  refused_ = true;
  sample_->refused = true;
  sample_->error = TraceRefusedMessage(proc_root_, sample_->pid);
  thread->error = "see the error of the process";
}

// Copies a sleeping thread without a stop, which would end its system call. The copy counts if the
// thread did not run meanwhile: the kernel shows the same call, and as many turns on a CPU.
void PtraceTake::CopyWithoutStop(RawThread* thread) {
  const std::string task = absl::StrCat(ProcPath(proc_root_, sample_->pid, "task/"), thread->tid);
  const auto activity = [&task] {
    return absl::StrCat(ReadProcFile(task + "/syscall", 256).value_or("no call"),
                        ReadProcFile(task + "/schedstat", 128).value_or(""));
  };
  if (absl::IsPermissionDenied(ReadProcFile(task + "/syscall", 256).status())) {
    return Refuse(thread);
  }
  for (int i = 0; i < kCopyTries; ++i) {
    const std::string before = activity();
    if (!ParseSyscallFile(before, &thread->registers)) break;
    CopyStacks(thread);
    if (python_ != nullptr) python_->ReadFrames(thread);
    if (activity() != before) continue;
    thread->how = HowTaken::kWatched;
    KeepCopies(thread);
    if (python_ != nullptr) python_->KeepFrames(thread);
    return;
  }
  thread->error = thread->state == 'D'
                      ? "left alone: in an uninterruptible wait in the kernel"
                      : "left alone: a stop would end the system call that it is in";
}

void PtraceTake::StopAndCopy(TracedThread* traced, RawThread* thread) {
  const int64_t start = MonotonicNs();
  const int64_t left = std::max<int64_t>(deadline_ns_ - start, 0);
  absl::Status status = traced->Stop(std::min(limits_.thread_timeout_ns, left));
  thread->how = HowTaken::kFailed;
  if (status.ok()) {
    thread->how = traced->how();
    status = CopyStopped(*traced, thread);
  }
  if (!traced->Release()) late_.push_back(*traced);
  thread->stopped_ns = MonotonicNs() - start;
  if (status.ok()) {
    KeepCopies(thread);
    if (python_ != nullptr) python_->KeepFrames(thread);
  } else {
    thread->error = std::string(status.message());
    thread->how = HowTaken::kFailed;
  }
}

// Copies to buffer_ from `at` on, until `size` or the first unreadable page, which may come before
// the end of the mapping. Uses one element for each page, because the kernel does not promise to
// split an element.
size_t PtraceTake::CopyMemory(uint64_t address, size_t size, size_t at) {
  size = std::min(size, Room() - at);
  pages_.clear();
  for (size_t done = 0; done < size;) {
    const size_t in_page = kPageBytes - (address + done) % kPageBytes;
    const size_t count = std::min<size_t>(in_page, size - done);
    pages_.push_back({reinterpret_cast<void*>(address + done), count});
    done += count;
  }
  const iovec local = {buffer_.data() + at, size};
  const ssize_t count = process_vm_readv(sample_->pid, &local, 1, pages_.data(), pages_.size(), 0);
  return count < 0 ? 0 : static_cast<size_t>(count);
}

// Runs while the thread is stopped, so it allocates nothing and reads no other files.
absl::Status PtraceTake::CopyStopped(const TracedThread& traced, RawThread* thread) {
  const absl::Status status = traced.ReadRegisters(&thread->registers);
  if (!status.ok()) return status;
  CopyStacks(thread);
  if (python_ != nullptr) python_->ReadFrames(thread);
  return absl::OkStatus();
}

// Copies the stack that the thread is on, and, if that is one for signals, the interrupted one.
void PtraceTake::CopyStacks(RawThread* thread) {
  thread->stack_base = StackPointer(thread->registers);
  copied_ = CopyMemory(thread->stack_base, StackSize(thread->stack_base), 0);
  interrupted_ = 0;
  const InterruptedStack found = FindInterruptedStack(
      buffer_.data(), std::min(copied_, kMaxSignalStackBytes), thread->stack_base);
  thread->interrupted_base = found.stack_pointer;
  if (found.stack_pointer == 0) return;
  const size_t size = StackSize(found.stack_pointer);
  // A stack that the program has in a large mapping has filled the buffer with other data.
  if (size > Room() - copied_) copied_ = std::min(copied_, found.handler_bytes);
  interrupted_ = CopyMemory(found.stack_pointer, size, copied_);
}

void PtraceTake::KeepCopies(RawThread* thread) {
  if (copied_ + interrupted_ == parts_.most()) ++cut_;
  parts_.Take(copied_ + interrupted_);
  const auto end = buffer_.begin() + copied_;
  thread->stack.assign(buffer_.begin(), end);
  thread->interrupted_stack.assign(end, end + interrupted_);
}

size_t PtraceTake::StackSize(uint64_t stack_pointer) const {
  const ProcMap* map = FindMap(sample_->maps, stack_pointer);
  if (map == nullptr) return resident_.CountResident(stack_pointer, Room());
  const size_t size = std::min<uint64_t>(Room(), map->end - stack_pointer);
  // The server of a mapped file may not answer, and the thread is stopped meanwhile. Memory of no
  // file may have pages that the thread has not used so far, in the midst of its stack.
  return map->inode == 0 ? size : resident_.CountResident(stack_pointer, size);
}

void PtraceTake::SayCut() {
  if (cut_ == 0) return;
  absl::StrAppend(&sample_->error, sample_->error.empty() ? "" : "\n", "the stacks of ", cut_,
                  " threads are cut: the copies of one process take at most ",
                  limits_.all_stack_bytes >> 20, " MiB");
}

void PtraceTake::ReleaseLate() {
  const auto gone = [](TracedThread& thread) { return thread.Release(); };
  late_.erase(std::remove_if(late_.begin(), late_.end(), gone), late_.end());
}

}  // namespace

RawSample PtraceStackTaker::Take(pid_t pid, const TakeLimits& limits) {
  RawSample sample;
  sample.pid = pid;
  sample.method = "ptrace";
  if (pid == getpid()) {
    sample.error = "a process cannot trace itself; ask another agent for its stacks";
    return sample;
  }
  PtraceTake take(proc_root_, limits, &sample);
  std::optional<std::thread> tracer = TryThread([&] { take.Run(symbols_.get()); });
  if (tracer.has_value()) {
    tracer->join();
  } else {
    sample.error = "the system gives this program no thread to trace with";
  }
  return sample;
}

}  // namespace rollcall
