// SPDX-License-Identifier: Apache-2.0
#include "interpose/old_glibc.h"

#include "interpose/annotations.h"

#include <string.h>

#include "interpose/handle_table.h"
#include "interpose/real.h"
#include "interpose/recorder.h"
#include "interpose/rollcall.h"
#include "interpose/shapes.h"
#include "interpose/thread_state.h"

namespace rollcall {
namespace {

segment::Annotations said;

void CopyWords(const char* text, segment::Word* words, size_t count) {
  const size_t most = count * sizeof(uint64_t) - 1;
  size_t left = text == nullptr ? 0 : strnlen(text, most);
  for (size_t i = 0; i < count; ++i) {
    uint64_t word = 0;
    const size_t bytes = left < sizeof(word) ? left : sizeof(word);
    if (bytes != 0) memcpy(&word, text, bytes);
    words[i].store(word, std::memory_order_relaxed);
    text = bytes == 0 ? text : text + bytes;
    left -= bytes;
  }
}

template <typename Change>
void Tell(Change change) {
  change(&said);
  segment::SegmentHeader* header = recorder.header.load(std::memory_order_acquire);
  if (header != nullptr) change(&header->annotations);
}

}  // namespace

void CopyAnnotations(segment::Annotations* to) {
  to->step.store(said.step.load(std::memory_order_relaxed), std::memory_order_relaxed);
  for (size_t i = 0; i < segment::kPhaseWords; ++i) {
    to->phase[i].store(said.phase[i].load(std::memory_order_relaxed), std::memory_order_relaxed);
  }
}

}  // namespace rollcall

// This copy's own, whichever the name stands for in the process.
extern "C" __attribute__((visibility("hidden"), alias("rollcall_set_step"))) void own_set_step(
    uint64_t step);

bool rollcall::AnotherCopyIsFirst() {
  void (*volatile first)(uint64_t) = &rollcall_set_step;  // else the compiler knows the answer
  return first != &own_set_step;
}

extern "C" ROLLCALL_EXPORT void rollcall_set_step(uint64_t step) {
  rollcall::Tell([step](rollcall::segment::Annotations* place) {
    place->step.store(step + 1, std::memory_order_relaxed);
  });
}

extern "C" ROLLCALL_EXPORT void rollcall_set_phase(const char* name) {
  rollcall::Tell([name](rollcall::segment::Annotations* place) {
    rollcall::CopyWords(name, place->phase, rollcall::segment::kPhaseWords);
  });
}

extern "C" ROLLCALL_EXPORT void rollcall_set_shape(int dims, const int64_t* sizes) {
  rollcall::this_thread.next_shape = rollcall::FindShape(dims, sizes);
}

extern "C" ROLLCALL_EXPORT void rollcall_name_comm(const void* comm, const char* name) {
  if (!rollcall::Recording()) return;
  const rollcall::LocalComm* known = rollcall::FindComm(comm);
  if (known == nullptr) return;
  rollcall::CopyWords(name, reinterpret_cast<rollcall::segment::Word*>(known->entry->name),
                      sizeof(known->entry->name) / sizeof(uint64_t));
}
