// SPDX-License-Identifier: Apache-2.0
#include "interpose/record/call_tags.h"

#include <stddef.h>
#include <stdint.h>

#include <atomic>

#include "interpose/python/shapes.h"
#include "interpose/thread_state.h"

namespace rollcall {
namespace {

// The beginning of an ncclCollConfig_t, which has been the same since NCCL 2.31: later versions add
// members at the end.
struct CollConfig {
  size_t size;
  uint32_t magic, version;
  const void* ext;
  int32_t ctas[4];
  const char* algorithms;
  int32_t forces_algorithm, policy;
  uint64_t tag;  // 0: none
};
constexpr uint32_t kMagic = 0xcafebeef;
constexpr int kMostTags = 64;
std::atomic<uint64_t> tags[kMostTags];

// Returns false if there are too many others.
bool HasRoom(uint64_t tag) {
  for (std::atomic<uint64_t>& slot : tags) {
    uint64_t seen = slot.load(std::memory_order_relaxed);
    if (seen == tag) return true;
    if (seen == 0 && (slot.compare_exchange_strong(seen, tag) || seen == tag)) return true;
  }
  return false;
}

// Writes "tag 42".
void WriteTag(uint64_t tag, char (&text)[32]) {
  char digits[20];
  int count = 0;
  for (; tag != 0; tag /= 10) digits[count++] = static_cast<char>('0' + tag % 10);
  int at = 0;
  for (const char letter : {'t', 'a', 'g', ' '}) text[at++] = letter;
  while (count > 0) text[at++] = digits[--count];
  text[at] = '\0';
}

}  // namespace

void NoteTag(const void* config) {
  const auto* given = static_cast<const CollConfig*>(config);
  if (given == nullptr || given->size < sizeof(*given) || given->magic != kMagic) return;
  ThreadState* thread = &this_thread;
  if (given->tag == 0 || thread->inside || thread->next_shape != 0 || !HasRoom(given->tag)) return;
  char text[32];
  WriteTag(given->tag, text);
  thread->next_shape = FindShape(kNameOnly, nullptr, text);
}

}  // namespace rollcall
