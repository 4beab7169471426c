// SPDX-License-Identifier: Apache-2.0
// A training program as a plugin (plugin_host.cc). WRONG in the environment is the fault of its
// last rank: "stops" making calls, or reduces "less" than the others.
#include <string.h>

#include "tests/e2e/victims/victim.h"

extern "C" int RunTraining() {
  victim::Rank self;
  self.Train(10);
  const bool last = self.rank == self.world - 1;
  while (last && strcmp(getenv("WRONG"), "stops") == 0) pause();
  self.AllReduce(last ? victim::kCount / 2 : victim::kCount);
  self.Wait();
  self.Finish();
  return 0;
}
