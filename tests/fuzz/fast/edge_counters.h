// SPDX-License-Identifier: Apache-2.0
// How often an input has passed each edge of the code under test. The compiler
// (-fsanitize-coverage= inline-8bit-counters) adds one byte for each edge, and code that adds 1 to
// it.
//
// One thread. The code under test may have others; what they count is not exact.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace rollcall {
namespace fuzz {

class EdgeCounters {
 public:
  // Of this process. The compiler's code registers the counters before main().
  static EdgeCounters& Get();
  void Register(uint8_t* begin, uint8_t* end);

  // Before an input.
  void Clear();
  // After it: whether an edge was passed that no input has passed before, or one about twice as
  // often as ever. Remembers it.
  bool FindNew();

  size_t edges() const { return edges_; }  // passed so far
  size_t all() const { return seen_.size(); }

 private:
  struct Part {
    uint8_t* begin;
    size_t size;
    size_t first;  // of its bytes in seen_
  };
  bool IsNew(const Part& part, size_t at);

  std::vector<Part> parts_;
  std::vector<uint8_t> seen_;  // of each edge, a bit for each range of counts
  size_t edges_ = 0;
};

}  // namespace fuzz
}  // namespace rollcall
