// SPDX-License-Identifier: Apache-2.0
#include "agent/python/sampler.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "base/monotonic_clock.h"

namespace rollcall {
namespace {

constexpr size_t kMaxInterpreters = 256;
constexpr size_t kMaxThreads = 16384;
constexpr size_t kMaxFrames = 32768;
constexpr size_t kMaxFramesOfAll = 512 << 10;
constexpr size_t kMaxCodeBytes = 16 << 20;  // of one process, with what it handles
constexpr int64_t kMaxCodeNs = 2'000'000'000;
constexpr size_t kMaxObjectBytes = 512;
// From the holder field to the end of struct _gil_runtime_state, 3.8 to 3.14.
constexpr uint64_t kGilBytes = 200;

uint64_t ThreadPointer(const ThreadRegisters& registers) {
#if defined(__x86_64__)
  return registers.fs_base;
#else
  static_cast<void>(registers);
  return 0;
#endif
}

}  // namespace

PythonSampler::PythonSampler(PythonInterpreter interpreter, ProcessMemory* memory)
    : interpreter_(std::move(interpreter)),
      layout_(interpreter_.layout),
      memory_(memory),
      pages_(memory),
      objects_(interpreter_, &pages_),
      thread_objects_(layout_, &objects_),
      exceptions_(layout_, &objects_) {
  frames_.reserve(kMaxFrames);
}

void PythonSampler::ListThreads() {
  threads_.clear();
  uint64_t interpreter = 0;
  memory_->ReadValue(interpreter_.runtime + layout_.runtime_interpreters, &interpreter);
  for (size_t i = 0; i < kMaxInterpreters && interpreter != 0; ++i) {
    ListInterpreterThreads(interpreter);
    if (!memory_->ReadValue(interpreter + layout_.interpreter_next, &interpreter)) break;
  }
  parts_ = FairParts(kMaxFramesOfAll, threads_.size());
}

void PythonSampler::ListInterpreterThreads(uint64_t interpreter) {
  uint64_t gil = 0;
  if (layout_.interpreter_gil != 0) {
    memory_->ReadValue(interpreter + layout_.interpreter_gil, &gil);
  }
  Thread thread;
  thread.gil = gil;
  if (!memory_->ReadValue(interpreter + layout_.interpreter_threads, &thread.address)) return;
  while (thread.address != 0 && threads_.size() < kMaxThreads) {
    thread.tid = 0;
    if (!memory_->ReadValue(thread.address + layout_.thread_id, &thread.pthread)) return;
    if (layout_.thread_native_id != 0) {
      memory_->ReadValue(thread.address + layout_.thread_native_id, &thread.tid);
    }
    threads_.push_back(thread);
    if (!memory_->ReadValue(thread.address + layout_.thread_next, &thread.address)) return;
  }
}

// Finds a thread without its thread pointer and its tid. A thread's descriptor lies at the top of
// its stack. The main thread is the exception: it registers first, so it is the last of the list.
const PythonSampler::Thread* PythonSampler::FindByStack(const RawThread& thread) const {
  if (thread.is_main) return threads_.empty() ? nullptr : &threads_.back();
  const Thread* nearest = nullptr;
  for (const Thread& known : threads_) {
    if (thread.stack_base == 0 || known.pthread <= thread.stack_base) continue;
    if (nearest == nullptr || known.pthread < nearest->pthread) nearest = &known;
  }
  return nearest;
}

// Returns the first state of the thread. A thread in several interpreters has several states.
const PythonSampler::Thread* PythonSampler::FindThread(const RawThread& thread) const {
  const uint64_t pointer = ThreadPointer(thread.registers);
  if (pointer == 0 && layout_.thread_native_id == 0) return FindByStack(thread);
  for (const Thread& known : threads_) {
    if (pointer != 0 ? known.pthread == pointer
                     : known.tid == static_cast<uint64_t>(thread.own_tid)) {
      return &known;
    }
  }
  return nullptr;
}

bool PythonSampler::MayRun(const RawThread& thread) const {
  return std::any_of(threads_.begin(), threads_.end(), [&](const Thread& known) {
    return known.tid == 0 || known.tid == static_cast<uint64_t>(thread.own_tid);
  });
}

// 0 if the address is not known.
uint64_t PythonSampler::GilHolderAddress(const Thread& thread) const {
  if (layout_.runtime_gil_holder != 0) return interpreter_.runtime + layout_.runtime_gil_holder;
  return thread.gil == 0 ? 0 : thread.gil + layout_.gil_holder;
}

uint64_t PythonSampler::GilLockedAddress(const Thread& thread) const {
  if (layout_.runtime_gil_locked != 0) return interpreter_.runtime + layout_.runtime_gil_locked;
  return thread.gil == 0 ? 0 : thread.gil + layout_.gil_locked;
}

bool PythonSampler::HoldsGil(const Thread& thread) {
  int32_t locked = 0;
  uint64_t holder = 0;
  return GilHolderAddress(thread) != 0 && memory_->ReadValue(GilLockedAddress(thread), &locked) &&
         locked == 1 && memory_->ReadValue(GilHolderAddress(thread), &holder) &&
         holder == thread.address;
}

// A waiting thread waits on a futex word, which lies inside the lock behind the holder field.
bool PythonSampler::WaitsForGil(const Thread& thread, const RawThread& raw) const {
  const uint64_t holder = GilHolderAddress(thread);
  const uint64_t waits_for = FirstArgument(raw.registers);
  return holder != 0 && waits_for > holder && waits_for < holder + kGilBytes;
}

// Whether the state still belongs to this thread: a state for a new thread has the pointer of the
// thread that created it until the new thread runs.
bool PythonSampler::IsStill(const Thread& thread) {
  uint64_t pthread = 0;
  return pages_.Read(thread.address + layout_.thread_id, &pthread, sizeof(pthread)) &&
         pthread == thread.pthread;
}

uint64_t PythonSampler::InnermostFrame(const Thread& thread) {
  uint64_t address = 0;
  if (!pages_.Read(thread.address + layout_.thread_frame, &address, sizeof(address))) return 0;
  if (!layout_.frame_indirect || address == 0) return address;
  uint64_t frame = 0;
  if (!pages_.Read(address + layout_.cframe_frame, &frame, sizeof(frame))) return 0;
  return frame;
}

// Returns the address of the next outer frame; 0 if there is no outer frame, or it could not be
// read.
uint64_t PythonSampler::AddFrame(uint64_t address) {
  uint8_t object[kMaxObjectBytes];
  if (!pages_.Read(address, object, layout_.frame_bytes)) return 0;
  const uint64_t previous = ReadField<uint64_t>(object, layout_.frame_previous);
  if (layout_.frames == PythonFrames::kEntryFrames &&
      object[layout_.frame_owner] >= kFirstForeignOwner) {
    RawPythonFrame entered;
    entered.instruction = static_cast<int64_t>(address);
    frames_.push_back(entered);
    return previous;
  }
  RawPythonFrame frame;
  frame.code = ReadField<uint64_t>(object, layout_.frame_code) & kReferenceMask;
  if (layout_.frames == PythonFrames::kObjects) {
    const int unit = layout_.lines == PythonLines::kLnotab ? 1 : 2;
    frame.instruction = int64_t{ReadField<int32_t>(object, layout_.frame_instruction)} * unit;
  } else {
    frame.instruction = ReadField<int64_t>(object, layout_.frame_instruction);
  }
  if (frame.code != 0) frames_.push_back(frame);
  const bool entered =
      layout_.frames == PythonFrames::kObjects ||
      (layout_.frames == PythonFrames::kEntryFlag && object[layout_.frame_is_entry] != 0);
  if (entered) frames_.push_back({});
  return previous;
}

void PythonSampler::ReadFrames(RawThread* thread) {
  frames_.clear();
  const Thread* found = FindThread(*thread);
  if (found == nullptr) return;
  pages_.Clear();
  uint64_t frame = 0;
  // A state in a sub-interpreter that the thread is not in has no frames.
  for (const Thread* known = found; known != threads_.data() + threads_.size(); ++known) {
    if (known->pthread != found->pthread || !IsStill(*known)) continue;
    if (frame == 0) {
      frame = InnermostFrame(*known);
      thread->python_state = known->address;
    }
    thread->holds_gil = thread->holds_gil || HoldsGil(*known);
    thread->waits_gil = thread->waits_gil || WaitsForGil(*known, *thread);
  }
  thread->is_python = true;
  uint64_t outermost = 0;
  const size_t most = std::min(kMaxFrames, parts_.most());
  while (frame != 0 && frames_.size() + 2 <= most) {
    const size_t before = frames_.size();
    const uint64_t next = AddFrame(frame);
    if (frames_.size() > before && frames_[before].code != 0) outermost = frame;
    frame = next;
  }
  ReadFirstLocal(outermost, thread);
}

void PythonSampler::KeepFrames(RawThread* thread) {
  parts_.Take(frames_.size());
  thread->python_frames = frames_;
}

void PythonSampler::ReadFirstLocal(uint64_t frame, RawThread* thread) {
  thread->python_first_local = 0;
  uint64_t value = 0;
  if (frame == 0 || !pages_.Read(frame + layout_.frame_first_local, &value, sizeof(value))) return;
  thread->python_first_local = value & kReferenceMask;
}

void PythonSampler::ReadCode(RawSample* sample) {
  sample->python.module = interpreter_.module;
  sample->python.minor = layout_.minor;
  pages_.Clear();
  size_t bytes = 0;
  const int64_t deadline_ns = MonotonicNs() + kMaxCodeNs;
  for (const RawThread& thread : sample->threads) {
    for (const RawPythonFrame& frame : thread.python_frames) {
      if (frame.code == 0 || sample->python.code.count(frame.code) > 0) continue;
      if (bytes > kMaxCodeBytes || MonotonicNs() > deadline_ns) {
        sample->python.note = "too much Python code; the rest of the names is left out";
        return;
      }
      PythonCode code;
      if (!objects_.ReadCodeNames(frame.code, &code)) continue;
      bytes += sizeof(code) + code.name.size() + code.file.size() + code.lines.size();
      sample->python.code[frame.code] = std::move(code);
    }
  }
  for (RawThread& thread : sample->threads) {
    if (bytes > kMaxCodeBytes || MonotonicNs() > deadline_ns) return;
    ReadThreadObject(sample->python, &thread);
    thread.exception = exceptions_.ReadHandled(thread.python_state);
    bytes += thread.exception.file.size() + thread.exception.function.size();
  }
}

// Finds the Thread object as the first argument of the outermost frame, Thread._bootstrap(self).
void PythonSampler::ReadThreadObject(const PythonSample& python, RawThread* thread) {
  const auto& frames = thread->python_frames;
  const auto outermost = std::find_if(frames.rbegin(), frames.rend(),
                                      [](const RawPythonFrame& frame) { return frame.code != 0; });
  if (outermost == frames.rend() || thread->python_first_local == 0) return;
  const auto code = python.code.find(outermost->code);
  if (code == python.code.end() || !absl::EndsWith(code->second.name, "_bootstrap") ||
      !absl::EndsWith(code->second.file, "threading.py")) {
    return;
  }
  thread->python_name = thread_objects_.ReadName(thread->python_first_local);
  thread->keeps_process = thread_objects_.KeepsProcess(thread->python_first_local);
}

}  // namespace rollcall
