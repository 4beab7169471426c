// SPDX-License-Identifier: Apache-2.0
// Gives libFuzzer the one target of this program.
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "fuzz_target.h"

extern "C" {
// Of libFuzzer.
size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t most);

int LLVMFuzzerInitialize(int* argc, char*** argv);
int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t most, unsigned seed);
}

using rollcall::fuzz::RunChecked;
using rollcall::fuzz::Target;
using rollcall::fuzz::Targets;

// libFuzzer makes no longer inputs than the target takes.
int LLVMFuzzerInitialize(int* argc, char*** argv) {
  static auto& limit = *new std::string("-max_len=" + std::to_string(Targets().at(0).most_bytes));
  static auto& all = *new std::vector<char*>(*argv, *argv + *argc);
  all.push_back(limit.data());
  all.push_back(nullptr);
  *argv = all.data();
  ++*argc;
  return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const Target& target = Targets().at(0);
  if (size <= target.most_bytes) RunChecked(target, data, size);
  return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t most, unsigned seed) {
  static const Target& target = Targets().at(0);
  return target.mutate == nullptr ? LLVMFuzzerMutate(data, size, most)
                                  : target.mutate(data, size, most, seed);
}
