// SPDX-License-Identifier: Apache-2.0
#include "agent/stacks/stack_reader.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "agent/python/interleave.h"
#include "agent/stacks/barrier_name.h"
#include "agent/stacks/key_note_search.h"
#include "agent/stacks/stack_unwinder.h"
#include "agent/symbols/jit_names.h"
#include "agent/symbols/source_files.h"
#include "base/fair_parts.h"
#include "interpose/python/python_files.h"

namespace rollcall {
namespace {

// gdb's name: in most libraries the trampoline has no symbol.
constexpr const char* kSignalFrameName = "<signal handler called>";

constexpr const char* kJitModule = "[JIT code]";

Frame LocatedFrame(const LocatedAddress& located, uint64_t address) {
  Frame frame;
  frame.address = address;
  if (located.map == nullptr) return frame;
  frame.module = located.map->path;
  if (frame.module.empty() && located.map->executable) frame.module = kJitModule;
  frame.module_offset = located.file_address.value_or(located.file_offset);
  if (located.file != nullptr) frame.build_id = located.file->build_id();
  return frame;
}

void AppendFrames(const UnwoundFrame& unwound, SampleModules* modules, Symbolizer* symbolizer,
                  std::vector<Frame>* frames) {
  const LocatedAddress located = modules->Locate(unwound.address);
  Frame frame = LocatedFrame(located, unwound.address);
  frame.stack_pointer = unwound.stack_pointer;
  if (located.file == nullptr || !located.file_address.has_value()) {
    frames->push_back(std::move(frame));
    return;
  }
  // A call at the very end of a function returns into the next function: look up the call itself.
  const uint64_t address = *located.file_address - (unwound.is_return_address ? 1 : 0);
  const std::vector<SymbolName>& names = symbolizer->Resolve(located.file, address);
  for (size_t i = 0; i < names.size(); ++i) {
    frame.function = names[i].function;
    if (unwound.is_signal_trampoline) frame.function = kSignalFrameName;
    frame.source_file = names[i].source_file;
    frame.line = names[i].line;
    frame.inlined = i + 1 < names.size();
    frames->push_back(frame);
  }
}

// Reads the names only if a frame needs one.
void NameJitCode(const std::string& proc_root, pid_t pid, std::optional<JitNames>* names,
                 std::vector<Frame>* frames) {
  for (Frame& frame : *frames) {
    if (frame.module != kJitModule || !frame.function.empty()) continue;
    if (!names->has_value()) *names = JitNames::ReadForProcess(proc_root, pid);
    frame.function = (*names)->Find(frame.address);
  }
}

// Python's name of the thread, which the program gave; with the kernel's name if it differs.
std::string ThreadName(const RawThread& thread, const std::string& main_name) {
  const std::string& name = thread.python_name;
  if (name.empty()) return thread.name;
  // From 3.14 on Python sets the kernel's name too, which the kernel cuts.
  if (thread.name == main_name || absl::StartsWith(name, thread.name)) return name;
  return absl::StrCat(name, " (", thread.name, ")");
}

void AddPython(const RawThread& raw, const PythonSample& python, ThreadStack* thread) {
  if (!raw.is_python) return;
  thread->keeps_process = raw.keeps_process;
  thread->exception = raw.exception;
  if (raw.holds_gil) {
    thread->gil = PythonLock::kHolds;
  } else if (raw.waits_gil) {
    thread->gil = PythonLock::kWaits;
  }
  for (Frame& frame : thread->frames) frame.interpreter = frame.module == python.module;
  thread->frames = InterleavePython(thread->frames, raw, python, &thread->note);
}

void AddSource(SourceFiles* sources, std::vector<Frame>* frames) {
  for (Frame& frame : *frames) {
    if (!frame.python || IsPythonLibraryFile(frame.source_file.c_str())) continue;
    frame.has_source =
        sources->FindBlocks(frame.source_file, frame.line, &frame.blocks, &frame.returns_at);
  }
}

// Cuts a deep recursion in the middle: its outer and inner frames are worth more.
void CutMiddle(size_t most, ThreadStack* thread) {
  std::vector<Frame>& frames = thread->frames;
  if (frames.size() <= most) return;
  const size_t outer = most / 4;
  const size_t inner = most - outer;
  const size_t cut = frames.size() - inner - outer;
  Frame mark;
  mark.function = absl::StrCat("<", cut, " frames left out>");
  frames[inner] = std::move(mark);
  frames.erase(frames.begin() + inner + 1, frames.begin() + inner + cut);
  absl::StrAppend(&thread->note, thread->note.empty() ? "" : "; ", cut,
                  " frames in the middle are left out");
}

size_t BytesOf(const std::vector<Frame>& frames) {
  size_t bytes = 0;
  for (const Frame& frame : frames) {
    bytes += sizeof(frame) + frame.function.size() + frame.module.size() + frame.build_id.size() +
             frame.source_file.size() + frame.blocks.size() * sizeof(SourceBlock);
  }
  return bytes;
}

// A program chooses how many threads it has, how deep they are, and how long its names are.
void CutToPart(size_t kept_frames, FairParts* parts, ThreadStack* thread) {
  const size_t bytes = BytesOf(thread->frames);
  const size_t part = parts->most();
  const size_t most = bytes <= part ? kept_frames : thread->frames.size() * part / bytes;
  CutMiddle(std::min(kept_frames, most), thread);
  if (BytesOf(thread->frames) > part) thread->frames.clear();
  parts->Take(BytesOf(thread->frames));
}

// ", holds Python's lock (GIL)" or similar; "" for kNone.
const char* GilWords(PythonLock gil) {
  switch (gil) {
    case PythonLock::kHolds:
      return ", holds Python's lock (GIL)";
    case PythonLock::kWaits:
      return ", waits for Python's lock (GIL)";
    case PythonLock::kNone:
      break;
  }
  return "";
}

}  // namespace

ProcessStack StackReader::TakeAndUnwind(StackTaker* taker, pid_t pid, const TakeLimits& limits) {
  return Unwind(taker->Take(pid, limits), limits);
}

ProcessStack StackReader::Unwind(const RawSample& sample, const TakeLimits& limits) {
  SampleModules modules(sample, has_files_ ? &files_ : nullptr);
  StackUnwinder unwinder(sample, &modules);
  std::optional<JitNames> jit_names;
  SourceFiles sources(proc_root_, sample.pid, files_);
  FairParts parts(limits.all_frame_bytes, sample.threads.size());
  ProcessStack process;
  process.pid = sample.pid;
  process.method = sample.method;
  process.taken_unix_ns = sample.taken_unix_ns;
  process.error = sample.error;
  for (const RawThread& raw : sample.threads) {
    UnwoundStack unwound = unwinder.Unwind(raw, limits.max_frames);
    ThreadStack thread;
    thread.tid = raw.tid;
    thread.name = ThreadName(raw, sample.threads.front().name);
    thread.state = raw.state;
    thread.wchan = raw.wchan;
    thread.cpu_ns = raw.cpu_ns;
    thread.switches = raw.switches;
    thread.sample_switches = raw.sample_switches;
    thread.note = raw.taken() ? std::move(unwound.note) : raw.error;
    for (const UnwoundFrame& frame : unwound.frames) {
      AppendFrames(frame, &modules, &symbolizer_, &thread.frames);
    }
    thread.awaited_key = FindNotedKey(raw, thread.frames);
    if (thread.awaited_key.empty()) thread.awaited_key = FindBarrierName(raw, thread.frames);
    if (has_files_) NameJitCode(proc_root_, sample.pid, &jit_names, &thread.frames);
    AddPython(raw, sample.python, &thread);
    CutToPart(limits.kept_frames, &parts, &thread);
    if (has_files_) AddSource(&sources, &thread.frames);
    process.threads.push_back(std::move(thread));
  }
  if (!sample.python.note.empty()) {
    absl::StrAppend(&process.error, process.error.empty() ? "" : "\n", sample.python.note);
  }
  return process;
}

std::string FormatProcessStack(const ProcessStack& stack, int rank) {
  std::string text = absl::StrCat("process ", stack.pid, ", ");
  if (rank >= 0) absl::StrAppend(&text, "rank ", rank, ", ");
  absl::StrAppend(&text, stack.threads.size(), stack.threads.size() == 1 ? " thread" : " threads",
                  ", taken by ", stack.method, "\n");
  for (const ThreadStack& thread : stack.threads) {
    absl::StrAppend(&text, FormatThreadStack(thread));
  }
  if (!stack.error.empty()) absl::StrAppend(&text, stack.error, "\n");
  return text;
}

std::string FormatThreadStack(const ThreadStack& thread) {
  std::string text =
      absl::StrFormat("thread %d \"%s\" %c%s%s%s\n", thread.tid, thread.name, thread.state,
                      thread.wchan.empty() ? "" : " in ", thread.wchan, GilWords(thread.gil));
  if (!thread.exception.type.empty()) {
    const PythonException& exception = thread.exception;
    absl::StrAppend(&text, "  handles ", exception.type, exception.text.empty() ? "" : ": ",
                    exception.text);
    if (exception.line > 0) absl::StrAppend(&text, "  at ", exception.file, ":", exception.line);
    absl::StrAppend(&text, "\n");
  }
  int number = 0;
  for (const Frame& frame : thread.frames) {
    absl::StrAppendFormat(&text, "  #%-2d %s", number++,
                          frame.function.empty() ? "??" : frame.function);
    if (frame.inlined) absl::StrAppend(&text, "  [inlined]");
    if (frame.line > 0) absl::StrAppend(&text, "  at ", frame.source_file, ":", frame.line);
    if (frame.python) {
      absl::StrAppend(&text, "  [Python]\n");
    } else if (frame.address == 0 && frame.module.empty()) {
      absl::StrAppend(&text, "\n");
    } else {
      absl::StrAppendFormat(&text, "  (%s+0x%x)\n", frame.module, frame.module_offset);
    }
  }
  if (!thread.note.empty()) absl::StrAppend(&text, "  note: ", thread.note, "\n");
  return text;
}

}  // namespace rollcall
