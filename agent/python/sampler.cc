#include "agent/python/sampler.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "agent/python/text.h"

namespace rollcall {
namespace {

constexpr size_t kMaxInterpreters = 256;
constexpr size_t kMaxThreads = 16384;
constexpr size_t kMaxFrames = 32768;
constexpr size_t kMaxName = 512;
constexpr size_t kMaxFile = 4096;
constexpr size_t kMaxTableBytes = 1 << 20;
constexpr size_t kMaxCodeBytes = 64 << 20;  // of one process, in all
constexpr size_t kMaxObjectBytes = 512;
constexpr uint64_t kNoPage = ~uint64_t{0};
// From 3.14 on the low bits of references are marks.
constexpr uint64_t kReferenceMask = ~uint64_t{7};

template <typename Value>
Value FieldOf(const uint8_t* object, uint32_t offset) {
  Value value;
  std::memcpy(&value, object + offset, sizeof(value));
  return value;
}

uint64_t ThreadPointer(const ThreadRegisters& registers) {
#if defined(__x86_64__)
  return registers.fs_base;
#else
  static_cast<void>(registers);
  return 0;
#endif
}

}  // namespace

PageCopies::PageCopies(ProcessMemory* memory)
    : memory_(memory), bytes_(new uint8_t[kSlots * kPageBytes]) {
  Forget();
}

void PageCopies::Forget() { numbers_.fill(kNoPage); }

const uint8_t* PageCopies::Page(uint64_t number) {
  const size_t slot = number % kSlots;
  uint8_t* bytes = &bytes_[slot * kPageBytes];
  if (numbers_[slot] == number) return bytes;
  numbers_[slot] = kNoPage;
  if (!memory_->Read(number * kPageBytes, bytes, kPageBytes)) return nullptr;
  numbers_[slot] = number;
  return bytes;
}

bool PageCopies::Read(uint64_t address, void* to, size_t size) {
  auto* out = static_cast<uint8_t*>(to);
  while (size > 0) {
    const uint8_t* page = Page(address / kPageBytes);
    if (page == nullptr) return false;
    const size_t at = address % kPageBytes;
    const size_t count = std::min(size, kPageBytes - at);
    std::memcpy(out, page + at, count);
    out += count;
    address += count;
    size -= count;
  }
  return true;
}

PythonSampler::PythonSampler(PythonInterpreter interpreter, ProcessMemory* memory)
    : interpreter_(std::move(interpreter)),
      layout_(interpreter_.layout),
      memory_(memory),
      pages_(memory) {
  frames_.reserve(kMaxFrames);
}

void PythonSampler::ListThreads() {
  threads_.clear();
  uint64_t interpreter = 0;
  memory_->ReadValue(interpreter_.runtime + layout_.runtime_interpreters, &interpreter);
  for (size_t i = 0; i < kMaxInterpreters && interpreter != 0; ++i) {
    ListThreadsOf(interpreter);
    if (!memory_->ReadValue(interpreter + layout_.interpreter_next, &interpreter)) return;
  }
}

void PythonSampler::ListThreadsOf(uint64_t interpreter) {
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

// Without its own pointer and without its number: a thread's descriptor lies at the top of its
// stack, but for the main thread's, which is the first to be registered and so the last of the
// list.
const PythonSampler::Thread* PythonSampler::FindByStack(const RawThread& thread) const {
  if (thread.is_main) return threads_.empty() ? nullptr : &threads_.back();
  const Thread* nearest = nullptr;
  for (const Thread& known : threads_) {
    if (thread.stack_base == 0 || known.pthread <= thread.stack_base) continue;
    if (nearest == nullptr || known.pthread < nearest->pthread) nearest = &known;
  }
  return nearest;
}

// A thread that is in several interpreters has several states: the one with frames is its own.
const PythonSampler::Thread* PythonSampler::FindThread(const RawThread& thread) const {
  const uint64_t pointer = ThreadPointer(thread.registers);
  if (pointer == 0 && layout_.thread_native_id == 0) return FindByStack(thread);
  for (const Thread& known : threads_) {
    if (pointer != 0 ? known.pthread == pointer : known.tid == static_cast<uint64_t>(thread.tid)) {
      return &known;
    }
  }
  return nullptr;
}

bool PythonSampler::HoldsGil(const Thread& thread) {
  uint64_t locked_at = interpreter_.runtime + layout_.runtime_gil_locked;
  uint64_t holder_at = interpreter_.runtime + layout_.runtime_gil_holder;
  if (layout_.runtime_gil_locked == 0) {
    if (thread.gil == 0) return false;
    locked_at = thread.gil + layout_.gil_locked;
    holder_at = thread.gil + layout_.gil_holder;
  }
  int32_t locked = 0;
  uint64_t holder = 0;
  return memory_->ReadValue(locked_at, &locked) && locked == 1 &&
         memory_->ReadValue(holder_at, &holder) && holder == thread.address;
}

// A state that was made for a new thread has its maker's pointer until that thread runs.
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

// The next outer frame; 0: this was the last, or it could not be read.
uint64_t PythonSampler::AddFrame(uint64_t address) {
  uint8_t object[kMaxObjectBytes];
  if (!pages_.Read(address, object, layout_.frame_bytes)) return 0;
  const uint64_t previous = FieldOf<uint64_t>(object, layout_.frame_previous);
  if (layout_.frames == PythonFrames::kEntryFrames &&
      object[layout_.frame_owner] >= kFirstForeignOwner) {
    frames_.push_back({});
    return previous;
  }
  RawPythonFrame frame;
  frame.code = FieldOf<uint64_t>(object, layout_.frame_code) & kReferenceMask;
  if (layout_.frames == PythonFrames::kObjects) {
    const int unit = layout_.lines == PythonLines::kLnotab ? 1 : 2;
    frame.instruction = int64_t{FieldOf<int32_t>(object, layout_.frame_instruction)} * unit;
  } else {
    frame.instruction = FieldOf<int64_t>(object, layout_.frame_instruction);
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
  pages_.Forget();
  uint64_t frame = 0;
  // Its states in sub-interpreters have no frames while it is not in them.
  for (const Thread* known = found; known != threads_.data() + threads_.size(); ++known) {
    if (known->pthread != found->pthread || !IsStill(*known)) continue;
    if (frame == 0) frame = InnermostFrame(*known);
    thread->holds_gil = thread->holds_gil || HoldsGil(*known);
  }
  thread->is_python = true;
  while (frame != 0 && frames_.size() + 2 <= kMaxFrames) frame = AddFrame(frame);
}

void PythonSampler::ReadCode(RawSample* sample) {
  sample->python.module = interpreter_.module;
  sample->python.minor = layout_.minor;
  pages_.Forget();
  size_t bytes = 0;
  for (const RawThread& thread : sample->threads) {
    for (const RawPythonFrame& frame : thread.python_frames) {
      if (frame.code == 0 || sample->python.code.count(frame.code) > 0) continue;
      if (bytes > kMaxCodeBytes) {
        sample->python.note = "too much Python code; the rest of the names is left out";
        return;
      }
      PythonCode code;
      if (!ReadCodeObject(frame.code, &code)) continue;
      bytes += sizeof(code) + code.name.size() + code.file.size() + code.lines.size();
      sample->python.code[frame.code] = std::move(code);
    }
  }
}

bool PythonSampler::HasType(const uint8_t* object, uint64_t type) const {
  return type == 0 || FieldOf<uint64_t>(object, layout_.object_type) == type;
}

bool PythonSampler::ReadCodeObject(uint64_t address, PythonCode* code) {
  uint8_t object[kMaxObjectBytes];
  if (!pages_.Read(address, object, layout_.code_bytes)) return false;
  if (!HasType(object, interpreter_.code_type)) return false;
  const uint32_t name = layout_.code_qualname != 0 ? layout_.code_qualname : layout_.code_name;
  if (!ReadString(FieldOf<uint64_t>(object, name), kMaxName, &code->name)) return false;
  ReadString(FieldOf<uint64_t>(object, layout_.code_filename), kMaxFile, &code->file);
  code->first_line = FieldOf<int32_t>(object, layout_.code_first_line);
  if (layout_.code_instructions != 0) code->instructions = address + layout_.code_instructions;
  ReadBytes(FieldOf<uint64_t>(object, layout_.code_lines), &code->lines);
  return true;
}

bool PythonSampler::ReadString(uint64_t address, size_t most, std::string* text) {
  uint8_t object[kMaxObjectBytes];
  if (!pages_.Read(address, object, layout_.string_state + sizeof(uint32_t))) return false;
  if (!HasType(object, interpreter_.string_type)) return false;
  const auto form = PythonStringFormOf(FieldOf<uint32_t>(object, layout_.string_state));
  if (!form.has_value()) return false;
  const auto length = FieldOf<int64_t>(object, layout_.string_length);
  if (length < 0) return false;
  const size_t count = std::min(static_cast<size_t>(length), most);
  std::string bytes(count * form->bytes_per_character, '\0');
  const uint32_t data = form->ascii ? layout_.string_ascii_bytes : layout_.string_compact_bytes;
  if (!pages_.Read(address + data, bytes.data(), bytes.size())) return false;
  *text = Utf8OfPythonString(bytes, form->bytes_per_character);
  return true;
}

bool PythonSampler::ReadBytes(uint64_t address, std::string* bytes) {
  uint8_t object[kMaxObjectBytes];
  if (!pages_.Read(address, object, layout_.bytes_data)) return false;
  if (!HasType(object, interpreter_.bytes_type)) return false;
  const auto size = FieldOf<int64_t>(object, layout_.bytes_size);
  if (size < 0 || static_cast<size_t>(size) > kMaxTableBytes) return false;
  bytes->resize(static_cast<size_t>(size));
  return pages_.Read(address + layout_.bytes_data, bytes->data(), bytes->size());
}

}  // namespace rollcall
