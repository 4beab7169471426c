// SPDX-License-Identifier: Apache-2.0
#include "daemon/model/shapes.h"

#include <unordered_set>

#include "absl/synchronization/mutex.h"

namespace rollcall {
namespace {

constexpr size_t kLongest = 160;
constexpr size_t kMostShapes = 65536;  // an agent may send anything

}  // namespace

const std::string* InternShape(const std::string& text) {
  static absl::Mutex* const mutex = new absl::Mutex;
  static auto* const shapes = new std::unordered_set<std::string>;
  if (text.empty() || text.size() > kLongest) return nullptr;
  const absl::MutexLock lock(mutex);
  const auto known = shapes->find(text);
  if (known != shapes->end()) return &*known;
  return shapes->size() < kMostShapes ? &*shapes->insert(text).first : nullptr;
}

}  // namespace rollcall
