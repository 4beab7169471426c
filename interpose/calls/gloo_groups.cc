// SPDX-License-Identifier: Apache-2.0
#include "interpose/calls/gloo_groups.h"

#include <string.h>

#include "interpose/copy_text.h"
#include "interpose/record/creations.h"
#include "interpose/recorder.h"

namespace rollcall {
namespace {

using segment::Mix;

constexpr uint64_t kGloo = 0x676c6f6f00000000;       // keeps these ids apart from other ones
constexpr uint64_t kRecreated = 0x7265637265617465;  // keeps ids of a group made again apart
constexpr size_t kPrefixBytes = 48;
constexpr char kDefaultGroup[] = "default_pg";  // PyTorch's prefix around the stores of all groups

// An object of PyTorch by its address: a store with the hash of its chain of prefixes, or a
// c10d::ProcessGroup with the hash of its store.
struct Object {
  std::atomic<uintptr_t> address;  // 0 if free; kBusy: being written
  uint64_t hash;
  uintptr_t inner;
  char prefix[kPrefixBytes];
};
constexpr uintptr_t kBusy = 1;
constexpr uint32_t kSets = 64;
constexpr uint32_t kWays = 8;  // objects of a set; the address chooses the set
struct Set {
  Object objects[kWays];
  std::atomic<uint32_t> next;  // the one to overwrite
};
Set sets[kSets];

std::atomic<uint64_t> owners[segment::kCommCapacity];

Set* SetOf(uintptr_t address) { return &sets[Mix(0, address) % kSets]; }

Object* FindObject(uintptr_t address) {
  if (address <= kBusy) return nullptr;
  for (Object& object : SetOf(address)->objects) {
    if (object.address.load(std::memory_order_acquire) == address) return &object;
  }
  return nullptr;
}

// The object at this address, or the slot to overwrite. The caller stores the address last.
Object* ClaimObject(uintptr_t address) {
  Set* set = SetOf(address);
  Object* object = FindObject(address);
  if (object == nullptr) object = &set->objects[set->next.fetch_add(1) % kWays];
  uintptr_t seen = object->address.load(std::memory_order_relaxed);
  const bool claimed = seen != kBusy && object->address.compare_exchange_strong(seen, kBusy);
  return claimed ? object : nullptr;
}

void AddObject(const void* address, uint64_t hash, const void* inner, TextView prefix) {
  const auto key = reinterpret_cast<uintptr_t>(address);
  Object* object = ClaimObject(key);
  if (object == nullptr) return;
  object->hash = hash;
  object->inner = reinterpret_cast<uintptr_t>(inner);
  const size_t size = prefix.size < kPrefixBytes ? prefix.size : kPrefixBytes - 1;
  memcpy(object->prefix, prefix.data, size);
  object->prefix[size] = '\0';
  object->address.store(key, std::memory_order_release);
}

// A copy, for an object that another thread may overwrite. False if the object is not known.
bool CopyObject(uintptr_t address, uint64_t* hash, uintptr_t* inner, char (&prefix)[kPrefixBytes]) {
  const Object* object = FindObject(address);
  if (object == nullptr) return false;
  *hash = object->hash;
  *inner = object->inner;
  memcpy(prefix, object->prefix, sizeof(prefix));
  return object->address.load(std::memory_order_acquire) == address;
}

uint64_t HashOf(const void* address) {
  const Object* object = FindObject(reinterpret_cast<uintptr_t>(address));
  return object == nullptr ? 0 : object->hash;
}

// PyTorch's number of the group ("3/" is "3"). The first group is the default one.
void NameByPrefix(const char* prefix, uintptr_t around, char* name, size_t size) {
  CopyText(name, size, prefix);
  char* slash = strrchr(name, '/');
  if (slash != nullptr && slash[1] == '\0') *slash = '\0';
  uint64_t hash = 0;
  uintptr_t inner = 0;
  char outer[kPrefixBytes];
  const bool is_first = strcmp(name, "0") == 0 && CopyObject(around, &hash, &inner, outer) &&
                        strncmp(outer, kDefaultGroup, sizeof(kDefaultGroup) - 1) == 0;
  if (is_first) CopyText(name, size, kDefaultGroup);
}

}  // namespace

void RecordPrefixStore(const void* store, TextView prefix, const void* inner) {
  const uint64_t hash = Mix(HashOf(inner), segment::HashBytes(prefix.data, prefix.size));
  AddObject(store, hash, inner, prefix);
}

void RecordProcessGroup(const void* group, const void* store) {
  AddObject(group, HashOf(store), store, {"", 0});
}

void DescribeGlooGroup(const void* store, int32_t rank, int32_t size, GlooGroup* group) {
  char prefix[kPrefixBytes] = "";
  uint64_t hash = 0;
  uintptr_t outer = 0;
  CopyObject(reinterpret_cast<uintptr_t>(store), &hash, &outer, prefix);
  NewComm* what = &group->what;
  what->base_id = Mix(Mix(kGloo, hash), static_cast<uint32_t>(size));
  const uint32_t times = TimesCreated(what->base_id, rank);
  what->id = times == 0 ? what->base_id : Mix(what->base_id ^ kRecreated, times);
  what->rank = rank;
  what->size = size;
  uintptr_t around = 0;
  char outer_prefix[kPrefixBytes] = "";
  // A program that makes a group by hand puts one prefix around its store, and that is the name.
  const bool has_outer = CopyObject(outer, &group->owner, &around, outer_prefix);
  NameByPrefix(has_outer ? outer_prefix : prefix, around, group->name, sizeof(group->name));
  what->name = group->name;
}

void SetOwner(const LocalComm* comm, uint64_t owner) {
  owners[comm->index].store(owner, std::memory_order_relaxed);
}

void NameProcessGroup(const void* group, TextView name) {
  const uint64_t owner = HashOf(group);
  if (owner == 0 || name.size == 0) return;
  char text[sizeof(segment::CommEntry::name)];
  const size_t size = name.size < sizeof(text) ? name.size : sizeof(text) - 1;
  memcpy(text, name.data, size);
  text[size] = '\0';
  if (strcmp(text, "undefined") == 0) return;  // PyTorch's description of a group without a name
  ForEachComm([owner, &text](LocalComm* comm) {
    const bool is_owned = comm->handle.load(std::memory_order_relaxed) != nullptr &&
                          owners[comm->index].load(std::memory_order_relaxed) == owner;
    if (is_owned) CopyText(comm->entry->name, sizeof(comm->entry->name), text);
  });
}

}  // namespace rollcall
