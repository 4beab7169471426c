// SPDX-License-Identifier: Apache-2.0
// A healthy job with everything in it: several communicators by split, groups,
// sends and receives in a ring, all collectives, ranks that run ahead of each
// other, and a slow rank. Ends with exit code 0.
//
//   healthy_mix [STEPS]     6, of some five milliseconds each
#include "tests/e2e/victims/victim.h"

namespace {

void Ring(victim::Rank* self) {
  const int next = (self->rank + 1) % self->world;
  const int before = (self->rank + self->world - 1) % self->world;
  CHECK_NCCL(ncclGroupStart());
  CHECK_NCCL(
      ncclSend(self->send.data(), victim::kCount, ncclFloat, next, self->comm, self->stream));
  CHECK_NCCL(
      ncclRecv(self->recv.data(), victim::kCount, ncclFloat, before, self->comm, self->stream));
  CHECK_NCCL(ncclGroupEnd());
}

void EveryCollective(victim::Rank* self) {
  const size_t part = victim::kCount / static_cast<size_t>(self->world);
  float* send = self->send.data();
  float* recv = self->recv.data();
  CHECK_NCCL(ncclAllGather(send, recv, part, ncclFloat, self->comm, self->stream));
  CHECK_NCCL(ncclReduceScatter(send, recv, part, ncclFloat, ncclSum, self->comm, self->stream));
  CHECK_NCCL(ncclReduce(send, recv, part, ncclFloat, ncclMax, 0, self->comm, self->stream));
  CHECK_NCCL(ncclBcast(recv, part, ncclFloat, 1, self->comm, self->stream));
  CHECK_NCCL(ncclAlltoAll(send, recv, part, ncclFloat, self->comm, self->stream));
}

}  // namespace

int main(int argc, char** argv) {
  const int steps = argc > 1 ? atoi(argv[1]) : 6;
  victim::Rank self;
  ncclComm_t half = nullptr;
  CHECK_NCCL(ncclCommSplit(self.comm, self.rank % 2, self.rank, &half, nullptr));
  for (int step = 0; step < steps; ++step) {
    if (self.rank == step % self.world) usleep(5000);
    EveryCollective(&self);
    CHECK_NCCL(ncclAllReduce(self.send.data(), self.recv.data(), 64, ncclFloat, ncclAvg, half,
                             self.stream));
    if (step % 2 == 0) Ring(&self);
    for (int bucket = 0; bucket < 4; ++bucket) self.AllReduce();
    self.Wait();
  }
  CHECK_NCCL(ncclCommDestroy(half));
  self.Finish();
}
