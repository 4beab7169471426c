// SPDX-License-Identifier: Apache-2.0
// A program that calls a stub of oneCCL's C interface, as rank 1 of 3, for tests of the preloaded
// library.
#include <unistd.h>

#include "interpose/oneccl_api.h"

int main() {
  constexpr int kFloat = 7, kInt32 = 2, kAvg = 4;
  const onecclUniqueId id = {"the id"};
  void *world = nullptr, *part = nullptr, *none = nullptr;
  onecclCommInitRank(&world, 3, id, 1);
  onecclAllReduce(nullptr, nullptr, 24, kFloat, kAvg, world, nullptr);
  onecclAllToAll(nullptr, nullptr, 6, kInt32, world, nullptr);
  onecclGroupStart();
  onecclSend(nullptr, 7, kFloat, 2, world, nullptr);
  onecclRecv(nullptr, 7, kFloat, 0, world, nullptr);
  onecclGroupEnd();
  onecclCommSplit(world, 5, 0, &part, nullptr);
  onecclBroadcast(nullptr, nullptr, 8, kFloat, 2, part, nullptr);
  onecclCommSplit(world, -1, 0, &none, nullptr);
  onecclCommDestroy(world);
  _exit(0);
}
