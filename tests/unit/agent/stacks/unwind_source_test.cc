// SPDX-License-Identifier: Apache-2.0
#include "agent/stacks/unwind_source.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstdint>

#include "agent/processes/proc_files.h"
#include "agent/processes/proc_maps.h"

namespace rollcall {
namespace {

// The search for a caller reads up to a page of code for each word of the stack.
TEST(UnwindSourceTest, CodeThatASearchReadsCountsToTheBudget) {
  RawSample sample;
  sample.pid = getpid();
  sample.maps = ParseProcMaps(*ReadProcFile("/proc/self/maps", 1 << 20));
  ModuleFiles files;
  SampleModules modules(sample, &files);
  UnwindBudget budget(1);
  const RawThread thread;
  UnwindSource source(thread, &modules, &budget);
  const auto code = reinterpret_cast<uint64_t>(&getpid);
  std::array<uint8_t, 4096> page;
  ASSERT_TRUE(source.ReadCode(code, page.data(), page.size()));
  constexpr int kMostReads = 100'000;
  int reads = 1;
  while (reads < kMostReads && source.ReadCode(code, page.data(), page.size())) ++reads;
  EXPECT_LT(reads, kMostReads);
  EXPECT_GT(reads, 10'000) << "an honest search reads some hundred";
  EXPECT_TRUE(budget.is_spent());
  uint64_t word = 0;
  EXPECT_FALSE(source.ReadWord(code, &word));
}

}  // namespace
}  // namespace rollcall
