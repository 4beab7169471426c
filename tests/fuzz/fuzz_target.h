// SPDX-License-Identifier: Apache-2.0
// A fuzz target: a function that gives an input to code that strangers or damaged files can reach.
//
// A file in targets/ holds one target and registers it:
//
//   void Run(Input input) { ... Promise(!name.empty(), "a token has a name"); }
//   const Registered kTarget({"tokens", 4096, &Run});
//
// A target touches no disk and keeps nothing from one input to the next. The engine (libFuzzer in a
// build with clang, replay_test.cc in all others) calls RunChecked().
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "fuzz_input.h"

namespace rollcall {
namespace fuzz {

struct Target {
  std::string name;       // also of its folder in corpus/
  size_t most_bytes = 0;  // of an input
  void (*run)(Input input) = nullptr;
  // Changes an input of `size` bytes, at most to `most` bytes, and returns the new size. nullptr if
  // the engine changes bytes.
  size_t (*mutate)(uint8_t* data, size_t size, size_t most, unsigned seed) = nullptr;
};

// The targets in this program, by name.
const std::vector<Target>& Targets();

struct Registered {
  explicit Registered(Target target);
};

// Aborts with the text if `kept` is false: the code under test has broken a promise.
void Promise(bool kept, const char* text);

// Runs the target. Aborts if the input takes more than a second of CPU time.
void RunChecked(const Target& target, const uint8_t* data, size_t size);

}  // namespace fuzz
}  // namespace rollcall
