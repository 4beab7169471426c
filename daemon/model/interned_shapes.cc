// SPDX-License-Identifier: Apache-2.0
#include "daemon/model/interned_shapes.h"

#include <atomic>
#include <unordered_set>

#include "absl/synchronization/mutex.h"

namespace rollcall {
namespace {

constexpr size_t kLongest = 160;
constexpr size_t kMostShapes = 65536;  // an agent may send anything
std::atomic<uint64_t> dropped{0};

}  // namespace

const std::string* InternShape(const std::string& text) {
  static absl::Mutex* const mutex = new absl::Mutex;
  static auto* const shapes = new std::unordered_set<std::string>;
  if (text.empty() || text.size() > kLongest) return nullptr;
  const absl::MutexLock lock(mutex);
  const auto known = shapes->find(text);
  if (known != shapes->end()) return &*known;
  if (shapes->size() < kMostShapes) return &*shapes->insert(text).first;
  ++dropped;
  return nullptr;
}

uint64_t TakeDroppedShapes() { return dropped == 0 ? 0 : dropped.exchange(0); }

}  // namespace rollcall
