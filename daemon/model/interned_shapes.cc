// SPDX-License-Identifier: Apache-2.0
#include "daemon/model/interned_shapes.h"

#include <unordered_set>

#include "base/mutex.h"
#include "daemon/model/client_limits.h"

namespace rollcall {

const std::string* InternShape(const std::string& text, ShapeShare* share) {
  static Mutex* const mutex = new Mutex;
  static auto* const shapes = new std::unordered_set<std::string>;
  if (text.empty()) return nullptr;
  if (text.size() <= limits::kShape) {
    const MutexLock lock(*mutex);
    const auto known = shapes->find(text);
    if (known != shapes->end()) return &*known;
    const bool has_room = share == nullptr || share->added < limits::kShapesOfJob;
    if (has_room && shapes->size() < limits::kShapes) {
      if (share != nullptr) ++share->added;
      return &*shapes->insert(text).first;
    }
  }
  if (share != nullptr) ++share->dropped;
  return nullptr;
}

}  // namespace rollcall
