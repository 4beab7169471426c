// SPDX-License-Identifier: Apache-2.0
// Healthy: all ranks make no call for $PAUSE_SECONDS, as during a long checkpoint, and go on.
#include "tests/e2e/victims/victim.h"

int main() {
  victim::Rank self;
  self.Train(10);
  const char* pause = getenv("PAUSE_SECONDS");
  sleep(pause == nullptr ? 2 : static_cast<unsigned>(atoi(pause)));
  self.Train(10);
  self.Finish();
}
