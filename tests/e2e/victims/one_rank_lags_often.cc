// SPDX-License-Identifier: Apache-2.0
// Flaps: the last rank works longer than the others, $LAG_SECONDS, again and again, and all go on.
// After $LAGS of these the ranks end in good order.
#include "tests/e2e/victims/victim.h"

namespace {

int Setting(const char* name, int usual) {
  const char* text = getenv(name);
  return text == nullptr ? usual : atoi(text);
}

__attribute__((noinline)) void Validate() {
  sleep(static_cast<unsigned>(Setting("LAG_SECONDS", 6)));
}

}  // namespace

int main() {
  victim::Rank self;
  for (int lag = 0; lag < Setting("LAGS", 6); ++lag) {
    self.Train(10);
    if (self.rank == self.world - 1) Validate();
  }
  self.Train(10);
  self.Finish();
}
