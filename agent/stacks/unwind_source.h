// SPDX-License-Identifier: Apache-2.0
// What libunwind and the search for callers read about one thread: its registers, the copies of its
// stacks, and the mapped files. Only the files of the unwinder include it, because it needs
// libunwind's headers.
#pragma once

#include <libunwind.h>

#include <cstddef>
#include <cstdint>

#include "agent/processes/stack_sample.h"
#include "agent/stacks/caller_search.h"
#include "agent/stacks/unwind_registers.h"
#include "agent/symbols/module_files.h"

namespace rollcall {

// The work that unwinding a sample may take. One frame reads some hundred words. Hostile unwind
// information could make libunwind read without end, and a hostile stack could make the search read
// the same code for each of its words.
class UnwindBudget {
 public:
  explicit UnwindBudget(size_t threads);
  bool is_spent() const { return words_ == 0; }
  // False if there is no budget left, so the caller must not read.
  bool Spend(size_t words);

 private:
  size_t words_;
};

class UnwindSource : public SearchedMemory {
 public:
  // What a failed step lacked.
  struct Lacks {
    bool unwind_information = false;  // of the function
    bool stack = false;               // more of it than was copied
    bool frame_pointer = false;       // its value
  };

  // All must outlive this object.
  UnwindSource(const RawThread& thread, SampleModules* modules, UnwindBudget* budget)
      : registers(thread), thread_(thread), modules_(modules), budget_(budget) {}

  bool ReadWord(uint64_t address, uint64_t* word);
  int FindProcInfo(unw_addr_space_t space, unw_word_t ip, unw_proc_info_t* info, int details);
  bool IsSignalTrampoline(uint64_t address);
  // How many bytes of the copied stack lie at `address` and above.
  uint64_t StackBytesAbove(uint64_t address) const;
  // Whether a call can have pushed this return address. True for code without a file: generated
  // code may push any address.
  bool IsReturnAddress(uint64_t address);

  bool ReadStackWord(uint64_t address, uint64_t* word) override;
  bool IsCode(uint64_t address) override;
  bool ReadCode(uint64_t address, void* to, size_t size) override;

  UnwindRegisters registers;
  Lacks lacks;  // the callbacks set it; the walk clears it before a step

 private:
  bool ReadFile(uint64_t address, uint64_t* word);

  const RawThread& thread_;
  SampleModules* modules_;
  UnwindBudget* budget_;
};

// Creates libunwind's view of an UnwindSource, which is the argument of unw_init_remote(). The
// caller destroys it. nullptr if there is no memory.
unw_addr_space_t NewUnwindSpace();

}  // namespace rollcall
