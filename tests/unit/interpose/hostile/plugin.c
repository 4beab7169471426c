// SPDX-License-Identifier: Apache-2.0
// A library linked with NCCL, as PyTorch's is; it may call when it is unloaded.
#include "hostile.h"

static int at_end;

int hostile_work(void) {
  int copy = 0;
  join_job();
  CHECK(ncclAllReduce(0, &copy, 8, ncclFloat, ncclSum, comm, 0) == ncclSuccess);
  return copy;
}
int hostile_work_at_end(void) {
  at_end = 1;
  return 0;
}
__attribute__((destructor)) static void end(void) {
  if (!at_end) return;
  join_job();
  printf("worked at the end\n");
  fflush(stdout);
}
