// SPDX-License-Identifier: Apache-2.0
// Searches a stack for the return address of a function whose frame cannot be computed, because the
// frame pointer is not known or the function has no unwind information.
//
// A word of the stack is a candidate if it is the address behind a call instruction. Earlier calls
// leave such words behind, so the search ranks the candidates, and the unwinder tries them. Wrong
// or hostile input gives wrong candidates, never a failure. The work is bounded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace rollcall {

// The memory that the search reads. The unwinder implements it on the copy of the stack and the
// mapped files.
class SearchedMemory {
 public:
  virtual ~SearchedMemory() = default;
  virtual bool ReadStackWord(uint64_t address, uint64_t* word) = 0;
  virtual bool IsCode(uint64_t address) = 0;
  // Reads `size` bytes of code. False if a part of them is in no mapped file.
  virtual bool ReadCode(uint64_t address, void* to, size_t size) = 0;
};

// The function whose caller is wanted.
struct SearchedFunction {
  uint64_t address = 0;        // of an instruction in it
  uint64_t start = 0;          // its first instruction; 0 if unknown: the search looks for it
  uint64_t stack_pointer = 0;  // the search begins here
};

// What the code shows about a candidate, from weak to strong.
enum class CallerRank {
  kCallsOther,      // it calls another function, which may have jumped to this one
  kMayCallIt,       // it calls through a pointer
  kFitsFrame,       // the return address is where the function's prologue puts it
  kCallsIt,         // it calls this function
  kCallsItAndFits,  // both
};

struct CallerCandidate {
  uint64_t slot = 0;  // address of the word on the stack
  uint64_t return_address = 0;
  CallerRank rank = CallerRank::kCallsOther;
  // The caller's frame pointer, if the word below the slot is one: it points to the same two words
  // of an outer frame.
  std::optional<uint64_t> frame_pointer;
};

// Whether the call that ends at `return_address` can have led to the function that begins at
// `start`: it calls the function, or calls through a pointer. False if another function jumped
// there.
bool CanHaveCalled(uint64_t return_address, uint64_t start, SearchedMemory* memory);

// Ranks one slot. nullopt if it has no return address.
std::optional<CallerCandidate> RankSlot(const SearchedFunction& function, uint64_t slot,
                                        SearchedMemory* memory);

// Returns the best candidates within `bytes` above the stack pointer, the best first: by rank, then
// by address.
std::vector<CallerCandidate> FindCallers(const SearchedFunction& function, uint64_t bytes,
                                         SearchedMemory* memory);

}  // namespace rollcall
