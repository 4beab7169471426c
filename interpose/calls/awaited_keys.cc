// SPDX-License-Identifier: Apache-2.0
#include "interpose/calls/awaited_keys.h"

#include "interpose/key_number.h"
#include "interpose/record/blocked_threads.h"

namespace rollcall {
namespace {

using segment::AwaitedKey;
using segment::BlockedEntry;

constexpr size_t kLongestKey = 1 << 20;  // a longer text is not a key

constexpr size_t kMostHashed = 4096;  // bytes of a long key, for its number

// Writes the number of the key and returns its length. Another key has another one, as a rule.
size_t WriteKeyNumber(TextView key, char* out) {
  const uint64_t hash =
      segment::HashBytes(key.data, key.size < kMostHashed ? key.size : kMostHashed);
  out[0] = kKeyNumberMark;
  for (size_t i = 0; i < kKeyNumberDigits; ++i) {
    out[1 + i] = "0123456789abcdef"[hash >> (4 * i) & 0xf];
  }
  return 1 + kKeyNumberDigits;
}

// Copies the text, and of one that is too long a number and the end. As CopyText(), it calls no
// function of the C library.
template <size_t size>
void CopyKey(TextView text, char (&out)[size]) {
  const size_t known = text.size > kLongestKey ? 0 : text.size;
  const size_t begin = known < size ? 0 : WriteKeyNumber(text, out);
  const size_t length = known < size ? known : size - 1 - begin;
  const char* from = text.data + (known - length);
  for (size_t i = 0; i < length; ++i) {
    const char c = from[i];
    out[begin + i] = c == '\0' || c == '\n' ? '?' : c;
  }
  out[begin + length] = '\0';
}

AwaitedKey* ClaimKey(uint32_t tid) {
  segment::SegmentHeader* header = recorder.mapping.load(std::memory_order_acquire);
  for (AwaitedKey& key : header->awaited_keys) {
    uint32_t owner = 0;
    if (key.tid.compare_exchange_strong(owner, tid)) return &key;
  }
  return nullptr;
}

uint32_t NumberOf(const AwaitedKey* key) {
  const segment::SegmentHeader* header = recorder.mapping.load(std::memory_order_acquire);
  return 1 + static_cast<uint32_t>(key - header->awaited_keys);
}

AwaitedKey* WriteKey(const WantedKeys& keys, uint32_t tid) {
  AwaitedKey* key = ClaimKey(tid);
  if (key == nullptr) return nullptr;
  CopyKey(keys.first, key->text);
  key->keys.store(static_cast<uint32_t>(keys.count), std::memory_order_relaxed);
  key->timeout_ms.store(keys.timeout_ms, std::memory_order_relaxed);
  return key;
}

void EnterEntry(BlockedEntry* entry) {
  entry->op.store(static_cast<uint32_t>(Op::kstore_wait), std::memory_order_relaxed);
  entry->comm.store(segment::kNoComm, std::memory_order_relaxed);
  entry->stream.store(0, std::memory_order_relaxed);
  entry->since.store(Now(), std::memory_order_release);
}

struct OpenWait : InnerCall {
  BlockedEntry* entry;   // nullptr if the thread has none
  AwaitedKey* key;       // nullptr if all are in use
  uint64_t outer_since;  // of the call that the wait is inside of; 0 if it is a call of its own
};

void EndWait(OpenCall* open) {
  const auto* wait = static_cast<OpenWait*>(open);
  if (wait->entry != nullptr) {
    wait->entry->since.store(wait->outer_since, std::memory_order_release);
    wait->entry->key.store(0, std::memory_order_release);
  }
  if (wait->key != nullptr) wait->key->tid.store(0, std::memory_order_release);
}

void EnterWait(const WantedKeys& keys, OpenWait* wait) {
  AwaitedKey* key = WriteKey(keys, this_thread.thread_id);
  wait->key = key;
  wait->entry->key.store(key == nullptr ? 0 : NumberOf(key), std::memory_order_release);
  if (wait->outer_since == 0) EnterEntry(wait->entry);
}

// In the child of a fork from inside a call, this thread is not inside the open one.
OpenWait* BeginWait(const WantedKeys& keys) {
  ThreadState* thread = &this_thread;
  auto* wait = InnerCallRoom<OpenWait>();
  wait->thrown = &EndWait;
  wait->outer = thread->inside ? open_call : nullptr;
  wait->entry = ClaimedEntry(thread);
  wait->key = nullptr;
  wait->outer_since = 0;
  if (wait->outer != nullptr)
    wait->outer_since = wait->entry->since.load(std::memory_order_relaxed);
  if (wait->entry != nullptr) EnterWait(keys, wait);
  thread->inside = true;
  return wait;
}

}  // namespace

StoreWait::StoreWait(const WantedKeys& keys) : may_throw_(BeginWait(keys)) {}

StoreWait::~StoreWait() {
  if (!may_throw_.IsOpen()) return;
  EndWait(open_call);
  this_thread.inside = OuterOf(open_call) != nullptr;
}

// The empty statement makes the compiler write the note, which nothing here reads.
KeyOnStack::KeyOnStack(const WantedKeys& keys) {
  CopyKey(keys.first, note_.first);
  if (keys.count > 1) CopyKey(keys.last, note_.last);
  note_.keys = keys.count;
  for (size_t i = 0; i < 2; ++i) note_.magic[i] = kKeyNoteMagic[i];
  __asm__ volatile("" : : "r"(&note_) : "memory");
}

KeyOnStack::~KeyOnStack() {
  note_.magic[0] = 0;
  __asm__ volatile("" : : "r"(&note_) : "memory");
}

}  // namespace rollcall
