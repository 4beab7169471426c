// SPDX-License-Identifier: Apache-2.0
// Changes bytes at random, for programs without libFuzzer and for texts within messages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>

namespace rollcall {
namespace fuzz {

// Makes one change to a buffer of `most` bytes, of which `size` are in use. Returns the new size.
size_t MutateBytes(uint8_t* data, size_t size, size_t most, std::minstd_rand* random);

// A number that code often mishandles: 0, -1, a power of two, a limit of a type, or any other.
uint64_t UnusualNumber(std::minstd_rand* random);

}  // namespace fuzz
}  // namespace rollcall
