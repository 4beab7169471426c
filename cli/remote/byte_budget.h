// SPDX-License-Identifier: Apache-2.0
// Memory that the looks at all hosts may take together. Thread-safe: many hosts answer at once, and
// each takes before it uses.
#pragma once

#include <atomic>
#include <cstdint>

namespace rollcall {

class ByteBudget {
 public:
  explicit ByteBudget(uint64_t most) : left_(most) {}
  ByteBudget(const ByteBudget&) = delete;
  ByteBudget& operator=(const ByteBudget&) = delete;

  // False, and nothing is taken: there are fewer left.
  bool Take(uint64_t bytes) {
    uint64_t left = left_.load();
    while (left >= bytes) {
      if (left_.compare_exchange_weak(left, left - bytes)) return true;
    }
    return false;
  }
  void GiveBack(uint64_t bytes) { left_ += bytes; }

 private:
  std::atomic<uint64_t> left_;
};

// Bytes taken for a time. Only one thread uses an object.
class ByteShare {
 public:
  explicit ByteShare(ByteBudget* budget) : budget_(*budget) {}
  ~ByteShare() { budget_.GiveBack(taken_); }
  ByteShare(const ByteShare&) = delete;
  ByteShare& operator=(const ByteShare&) = delete;

  bool Take(uint64_t bytes) {
    if (!budget_.Take(bytes)) return false;
    taken_ += bytes;
    return true;
  }

 private:
  ByteBudget& budget_;
  uint64_t taken_ = 0;
};

}  // namespace rollcall
