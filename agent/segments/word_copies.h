// SPDX-License-Identifier: Apache-2.0
// Copies of a segment's words: the memory that a read fills, and the values in it. For the readers
// of this folder.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "agent/segments/printable.h"
#include "interpose/segment.h"
#include "interpose/segment_words.h"

namespace rollcall {

// Raw memory for a struct of atomics, filled by pread.
template <typename T>
struct Copy {
  alignas(T) unsigned char bytes[sizeof(T)];
  const T& operator*() const { return *reinterpret_cast<const T*>(bytes); }
  const T* operator->() const { return reinterpret_cast<const T*>(bytes); }
};

inline uint32_t Get(const segment::HalfWord& word) { return word.load(std::memory_order_relaxed); }
inline int32_t Signed(const segment::HalfWord& word) { return static_cast<int32_t>(Get(word)); }

template <size_t N>
std::string Text(const char (&text)[N]) {
  return Printable(text, N);
}

}  // namespace rollcall
