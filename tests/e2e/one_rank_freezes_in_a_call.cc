// All ranks enter the call; rank 1 is stopped before its part of it is done.
#include "tests/e2e/victim.h"

int main() {
  victim::Rank self;
  self.Train(4);
  self.AllReduce();
  if (self.rank == 1) raise(SIGSTOP);
  self.Wait();
  self.Finish();
}
