// Rank 1 is killed, as by the kernel when memory is short.
#include "tests/e2e/victim.h"

int main() {
  victim::Rank self;
  self.Train(7);
  if (self.rank == 1) kill(getpid(), SIGKILL);
  self.Train(7);
  self.Finish();
}
