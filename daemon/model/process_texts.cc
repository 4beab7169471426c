// SPDX-License-Identifier: Apache-2.0
#include "daemon/model/process_texts.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

namespace rollcall {

// A string has room for a short text inside itself.
size_t HeapBytes(const std::string& text) {
  static const size_t kInside = std::string().capacity();
  return text.capacity() > kInside ? text.capacity() + 1 : 0;
}

namespace {

size_t HeapBytes(const std::vector<BlockedCall>& calls) {
  size_t bytes = calls.capacity() * sizeof(BlockedCall);
  for (const BlockedCall& call : calls) bytes += rollcall::HeapBytes(call.key);
  return bytes;
}

size_t HeapBytes(const std::vector<ProgramFrame>& frames) {
  size_t bytes = frames.capacity() * sizeof(ProgramFrame);
  for (const ProgramFrame& frame : frames) {
    bytes += rollcall::HeapBytes(frame.function) + rollcall::HeapBytes(frame.file) +
             frame.blocks.capacity() * sizeof(CodeBlock);
  }
  return bytes;
}

size_t HeapBytes(const std::vector<CallingThread>& callers) {
  size_t bytes = callers.capacity() * sizeof(CallingThread);
  for (const CallingThread& caller : callers) bytes += rollcall::HeapBytes(caller.name);
  return bytes;
}

size_t HeapBytes(const std::vector<ChildAtWork>& children) {
  size_t bytes = children.capacity() * sizeof(ChildAtWork);
  for (const ChildAtWork& child : children) bytes += rollcall::HeapBytes(child.name);
  return bytes;
}

size_t HeapBytes(const StackPlace& place) {
  size_t bytes = HeapBytes(place.program) + place.other_end.capacity() * sizeof(int32_t);
  for (const std::string* text : {&place.at, &place.inside, &place.functions, &place.handles.type,
                                  &place.handles.text, &place.handles.at}) {
    bytes += rollcall::HeapBytes(*text);
  }
  return bytes;
}

size_t HeapBytes(const std::vector<ThreadPlace>& places) {
  size_t bytes = places.capacity() * sizeof(ThreadPlace);
  for (const ThreadPlace& thread : places) {
    bytes += HeapBytes(thread.place) + rollcall::HeapBytes(thread.name);
  }
  return bytes;
}

size_t HeapBytes(const StandPlace& place) {
  return HeapBytes(static_cast<const StackPlace&>(place)) + rollcall::HeapBytes(place.in.name);
}

size_t HeapBytes(const std::vector<StandThread>& threads) {
  size_t bytes = threads.capacity() * sizeof(StandThread);
  for (const StandThread& thread : threads) {
    bytes += HeapBytes(thread.place) + rollcall::HeapBytes(thread.name);
  }
  return bytes;
}

size_t HeapBytes(const std::vector<StandPlace>& places) {
  size_t bytes = places.capacity() * sizeof(StandPlace);
  for (const StandPlace& place : places) bytes += HeapBytes(place);
  return bytes;
}

size_t HeapBytes(const Standing& standing) {
  constexpr size_t kNode = 64;  // of a map
  size_t bytes = sizeof(Standing) + HeapBytes(standing.place) + HeapBytes(standing.threads) +
                 rollcall::HeapBytes(standing.wait_channel);
  for (const auto* processes : {&standing.children, &standing.others}) {
    for (const StandingChild& child : *processes) {
      bytes += sizeof(child) + rollcall::HeapBytes(child.name) + HeapBytes(child.places);
    }
  }
  for (const FileLockSeen& lock : standing.locks) {
    bytes += sizeof(lock) + rollcall::HeapBytes(lock.path);
  }
  for (const auto& [pid, name] : standing.names) bytes += kNode + rollcall::HeapBytes(name);
  bytes +=
      sizeof(int32_t) * (standing.sockets.with.capacity() + standing.sockets.called.capacity());
  return bytes + kNode * (standing.first.threads.size() + standing.newest.threads.size());
}

template <typename AnyProcess>
auto TextsOf(AnyProcess* process) {
  return std::array{
      &process->stack_words,
      &process->place.at,
      &process->place.inside,
      &process->place.functions,
      &process->error,
      &process->thread_failure.thread,
      &process->thread_failure.error,
      &process->phase,
      &process->wait_channel,
      &process->place.handles.type,
      &process->place.handles.text,
      &process->place.handles.at,
#define PROCESS_TEXT(name) &process->name,
#define PROCESS_PLACE(name) &process->name,
#define PROCESS_DETAIL(name) &process->name,
#include "proto/facts.def"
  };
}

}  // namespace

size_t TextBytes(const Process& process) {
  size_t bytes = HeapBytes(process.blocked) + HeapBytes(process.callers) +
                 HeapBytes(process.place.program) + HeapBytes(process.thread_places) +
                 HeapBytes(process.keepers) + HeapBytes(process.children_at_work) +
                 process.place.other_end.capacity() * sizeof(int32_t) +
                 process.awaited_tids.capacity() * sizeof(uint32_t);
  for (const std::string* text : TextsOf(&process)) bytes += HeapBytes(*text);
  return process.standing == nullptr ? bytes : bytes + HeapBytes(*process.standing);
}

void ShrinkTexts(Process* process) {
  const auto is_loose = [](const auto& values, size_t spare) {
    return values.capacity() > values.size() * 2 + spare;
  };
  for (std::string* text : TextsOf(process)) {
    if (is_loose(*text, 64)) text->shrink_to_fit();
  }
  if (is_loose(process->blocked, 4)) process->blocked.shrink_to_fit();
}

DroppedTexts DropTexts(size_t most, Process* process) {
  DroppedTexts dropped;
  auto texts = TextsOf(process);
  std::sort(texts.begin(), texts.end(), [](const std::string* a, const std::string* b) {
    return a->capacity() > b->capacity();
  });
  // What only adds to the line of the main thread goes first.
  const bool has_more = !process->thread_places.empty() || !process->keepers.empty() ||
                        !process->children_at_work.empty() || process->standing != nullptr;
  if (TextBytes(*process) > most && has_more) {
    std::vector<ThreadPlace>().swap(process->thread_places);
    std::vector<ThreadPlace>().swap(process->keepers);
    std::vector<ChildAtWork>().swap(process->children_at_work);
    process->standing.reset();
    ++dropped.texts;
  }
  size_t bytes = TextBytes(*process);
  if (bytes > most && !process->place.program.empty()) {
    bytes -= HeapBytes(process->place.program);
    std::vector<ProgramFrame>().swap(process->place.program);
    ++dropped.texts;
  }
  for (std::string* text : texts) {
    if (bytes <= most || HeapBytes(*text) == 0) break;
    bytes -= HeapBytes(*text);
    std::string().swap(*text);
    ++dropped.texts;
  }
  if (bytes > most && !process->blocked.empty()) {
    std::vector<BlockedCall>().swap(process->blocked);
    dropped.blocked_calls = true;
    std::vector<CallingThread>().swap(process->callers);
  }
  return dropped;
}

}  // namespace rollcall
