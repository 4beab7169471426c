// SPDX-License-Identifier: Apache-2.0
#include "fast/input_pool.h"

#include <algorithm>
#include <cstring>

#include "byte_mutator.h"

namespace rollcall {
namespace fuzz {
namespace {

constexpr unsigned kMostChanges = 4;  // of one input
constexpr size_t kMostPiece = 128;    // bytes of another input

}  // namespace

InputPool::InputPool(const Target& target, unsigned seed)
    : target_(target), random_(seed), next_(target.most_bytes) {
  inputs_.emplace_back();
}

// The shorter one of two: short inputs take less time and change more with each byte.
const std::string& InputPool::Choose() {
  const std::string& one = inputs_[random_() % inputs_.size()];
  const std::string& other = inputs_[random_() % inputs_.size()];
  return one.size() < other.size() ? one : other;
}

// Puts a piece of another input over a piece of this one, or between.
size_t InputPool::TakePiece(size_t size) {
  const std::string& from = inputs_[random_() % inputs_.size()];
  if (from.empty()) return size;
  const size_t begin = random_() % from.size();
  const size_t at = random_() % (size + 1);
  size_t count = std::min({1 + random_() % kMostPiece, from.size() - begin, next_.size() - at});
  if (random_() % 2 == 0) {
    count = std::min(count, next_.size() - size);
    std::memmove(next_.data() + at + count, next_.data() + at, size - at);
    size += count;
  }
  std::memcpy(next_.data() + at, from.data() + begin, count);
  return std::max(size, at + count);
}

size_t InputPool::Change(size_t size) {
  if (target_.mutate != nullptr) {
    return target_.mutate(next_.data(), size, next_.size(), static_cast<unsigned>(random_()));
  }
  return random_() % 4 == 0 ? TakePiece(size)
                            : MutateBytes(next_.data(), size, next_.size(), &random_);
}

std::string_view InputPool::MakeNext() {
  const std::string& chosen = Choose();
  size_t size = std::min(chosen.size(), next_.size());
  if (size > 0) std::memcpy(next_.data(), chosen.data(), size);
  for (auto changes = 1 + random_() % kMostChanges; changes > 0; --changes) size = Change(size);
  return {reinterpret_cast<const char*>(next_.data()), size};
}

}  // namespace fuzz
}  // namespace rollcall
