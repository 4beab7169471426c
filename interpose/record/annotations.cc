// SPDX-License-Identifier: Apache-2.0
#include "interpose/old_glibc.h"

#include "interpose/record/annotations.h"

#include <string.h>

#include "interpose/python/shapes.h"
#include "interpose/real.h"
#include "interpose/record/handle_table.h"
#include "interpose/recorder.h"
#include "interpose/rollcall.h"
#include "interpose/thread_state.h"

namespace rollcall {
namespace {

segment::Annotations before_segment;

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
void SetAnnotation(Change change) {
  change(&before_segment);
  segment::SegmentHeader* header = recorder.header.load(std::memory_order_acquire);
  if (header != nullptr) change(&header->annotations);
}

}  // namespace

void CopyAnnotations(segment::Annotations* to) {
  to->step.store(before_segment.step.load(std::memory_order_relaxed), std::memory_order_relaxed);
  for (size_t i = 0; i < segment::kPhaseWords; ++i) {
    to->phase[i].store(before_segment.phase[i].load(std::memory_order_relaxed),
                       std::memory_order_relaxed);
  }
}

}  // namespace rollcall

// Always this copy's function. The public name may resolve to the function of another copy.
extern "C" __attribute__((visibility("hidden"), alias("rollcall_set_step"))) void own_set_step(
    uint64_t step);

bool rollcall::AnotherCopyIsFirst() {
  void (*volatile first)(uint64_t) = &rollcall_set_step;  // volatile: no constant folding
  return first != &own_set_step;
}

extern "C" ROLLCALL_EXPORT void rollcall_set_step(uint64_t step) {
  rollcall::SetAnnotation([step](rollcall::segment::Annotations* to) {
    to->step.store(step + 1, std::memory_order_relaxed);
  });
}

extern "C" ROLLCALL_EXPORT void rollcall_set_phase(const char* name) {
  rollcall::SetAnnotation([name](rollcall::segment::Annotations* to) {
    rollcall::CopyWords(name, to->phase, rollcall::segment::kPhaseWords);
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
