// SPDX-License-Identifier: Apache-2.0
// The inputs that reached new code, and new inputs made from them. One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "fuzz_target.h"

namespace rollcall {
namespace fuzz {

class InputPool {
 public:
  InputPool(const Target& target, unsigned seed);

  void Add(std::string_view input) { inputs_.emplace_back(input); }
  // A changed input, valid until the next call.
  std::string_view MakeNext();
  size_t size() const { return inputs_.size(); }

 private:
  const std::string& Choose();
  size_t Change(size_t size);
  size_t TakePiece(size_t size);

  const Target& target_;
  std::minstd_rand random_;
  std::vector<std::string> inputs_;
  std::vector<uint8_t> next_;
};

}  // namespace fuzz
}  // namespace rollcall
