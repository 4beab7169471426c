// SPDX-License-Identifier: Apache-2.0
// The last rank stops making calls and does something else for ever.
#include "tests/e2e/victims/victim.h"

__attribute__((noinline)) void Validate() {
  for (;;) pause();
}

int main() {
  victim::Rank self;
  self.Train(10);
  if (self.rank == self.world - 1) Validate();
  victim::SayEntered();
  self.Train(10);
  self.Finish();
}
