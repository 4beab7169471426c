// SPDX-License-Identifier: Apache-2.0
#include "interpose/record/message_counts.h"

namespace rollcall {
namespace {

using segment::HalfWord;
using segment::MessageEntry;
using segment::MessageTable;

MessageTable* TableOf(LocalComm* comm) {
  static_assert(sizeof(segment::MarkerLane) * segment::kMarkerLanes <= sizeof(MessageTable));
  return reinterpret_cast<MessageTable*>(comm->lanes);
}

// The entry with this key. A free one becomes it, while fewer than `most` are used. nullptr if
// there is none.
MessageEntry* FindEntry(MessageTable* table, uint64_t key, uint32_t most) {
  auto at = static_cast<uint32_t>(segment::Mix(0, key) % segment::kMessageEntries);
  for (uint32_t i = 0; i < segment::kMessageEntries; ++i) {
    MessageEntry* entry = &table->entries[at];
    uint64_t seen = entry->key.load(std::memory_order_relaxed);
    if (seen == key) return entry;
    if (seen == 0) {
      if (table->used.load(std::memory_order_relaxed) >= most) return nullptr;
      if (entry->key.compare_exchange_strong(seen, key, std::memory_order_release)) {
        table->used.fetch_add(1, std::memory_order_relaxed);
        return entry;
      }
      if (seen == key) return entry;
    }
    if (++at == segment::kMessageEntries) at = 0;
  }
  return nullptr;
}

// Sets the flag with the first message, so that a reader finds the table in use.
MessageTable* UsedTable(LocalComm* comm) {
  HalfWord* flags = &comm->entry->flags;
  if ((flags->load(std::memory_order_relaxed) & segment::kFlagMessages) == 0) {
    flags->fetch_or(segment::kFlagMessages);
  }
  return TableOf(comm);
}

MessageEntry* FindOrAdd(LocalComm* comm, int32_t peer, int32_t tag) {
  MessageTable* table = UsedTable(comm);
  MessageEntry* entry = FindEntry(table, segment::MessageKey(peer, tag), segment::kMessageTags);
  if (__builtin_expect(entry != nullptr, 1)) return entry;
  const int32_t rest = tag == segment::kAnyTag ? tag : segment::kMixedTags;
  entry = FindEntry(table, segment::MessageKey(peer, rest), segment::kMessagePeers);
  if (entry == nullptr) table->lost.fetch_add(1, std::memory_order_relaxed);
  return entry;
}

HalfWord* AwaitedOf(const IssuedMessage& message) {
  return message.end == MessageEnd::kSend ? &message.entry->sends_awaited
                                          : &message.entry->receives_awaited;
}

}  // namespace

IssuedMessage CountMessage(LocalComm* comm, MessageEnd end, int32_t peer, int32_t tag) {
  IssuedMessage message = {};
  message.end = end;
  message.is_open_choice = peer == segment::kAnySource || tag == segment::kAnyTag;
  message.entry = FindOrAdd(comm, peer, tag);
  if (message.entry == nullptr) return message;
  HalfWord* count = end == MessageEnd::kSend ? &message.entry->sends : &message.entry->receives;
  message.number = count->fetch_add(1, std::memory_order_relaxed) + 1;
  return message;
}

IssuedMessage NextMessage(LocalComm* comm, int32_t peer, int32_t tag) {
  IssuedMessage message = {};
  message.end = MessageEnd::kReceive;
  message.entry = FindOrAdd(comm, peer, tag);
  if (message.entry == nullptr) return message;
  message.number = message.entry->receives.load(std::memory_order_relaxed) + 1;
  return message;
}

void EndChoice(const IssuedMessage& message) {
  if (message.entry == nullptr || !message.is_open_choice) return;
  message.entry->receives.fetch_sub(1, std::memory_order_relaxed);
}

void NoteCancelled(LocalComm* comm) {
  UsedTable(comm)->cancelled.store(1, std::memory_order_relaxed);
}

// Of several messages of one entry that threads wait for, the last one is done last.
void AwaitMessage(const IssuedMessage& message) {
  if (message.entry == nullptr) return;
  HalfWord* awaited = AwaitedOf(message);
  const uint32_t other = awaited->load(std::memory_order_relaxed);
  const bool is_later = static_cast<int32_t>(message.number - other) > 0;
  if (other == 0 || is_later) awaited->store(message.number, std::memory_order_relaxed);
}

void EndAwait(const IssuedMessage& message) {
  if (message.entry == nullptr) return;
  HalfWord* awaited = AwaitedOf(message);
  if (awaited->load(std::memory_order_relaxed) != message.number) return;  // another thread's
  awaited->store(0, std::memory_order_release);
}

}  // namespace rollcall
