// SPDX-License-Identifier: Apache-2.0
// A program that calls a stub of HCCL, as rank RANK of 4, for tests of the preloaded library. Its
// arguments are its steps: calls, batch, asked, parts, file, all, wait, destroy.
#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "interpose/hccl_api.h"

namespace {

constexpr int kInt16 = 1, kFloat = 4, kMax = 2;
void* const kStream = reinterpret_cast<void*>(0x5000);

uint32_t Rank() { return static_cast<uint32_t>(atoi(getenv("RANK"))); }

void* MakeWorld() {
  HcclRootInfo id = {"the root"};
  char config[32 + 128] = {};
  const size_t size = sizeof(config);
  memcpy(config, &size, sizeof(size));
  strcpy(config + 32, "world");
  void* comm = nullptr;
  HcclCommInitRootInfoConfig(4, &id, Rank(), config, &comm);
  return comm;
}

void Calls(void* comm) {
  HcclAllReduce(nullptr, nullptr, 24, kFloat, kMax, comm, kStream);
  HcclBroadcast(nullptr, 5, kInt16, 2, comm, kStream);
  HcclGroupStart();
  HcclSend(nullptr, 7, kFloat, 3, comm, kStream);
  HcclRecv(nullptr, 7, kFloat, 3, comm, kStream);
  HcclGroupEnd();
  HcclBarrier(comm, kStream);
}

void Batch(void* comm) {
  HcclSendRecvItem items[] = {{0, nullptr, 9, kFloat, 2}, {1, nullptr, 9, kFloat, 3}};
  HcclBatchSendRecv(items, 2, comm, kStream);
}

void Parts(void* comm) {
  uint32_t ranks[] = {1, 3};
  void* part = nullptr;
  HcclCreateSubCommConfig(&comm, 2, ranks, 7, Rank() / 2, nullptr, &part);
  HcclAllGather(nullptr, nullptr, 1, kFloat, part, kStream);
}

void File() {
  void* comm = nullptr;
  HcclCommInitClusterInfo("ranks.json", Rank(), &comm);
}

// Two ranks in this process.
void All() {
  int32_t devices[] = {0, 1};
  void* comms[2] = {};
  HcclCommInitAll(2, devices, comms);
  for (void* comm : comms) HcclBarrier(comm, kStream);
}

// As frameworks do that load the library themselves.
void AskForBarrier(void* comm) {
  void* library = dlopen("libstub_hccl.so", RTLD_NOW);
  const auto barrier = reinterpret_cast<decltype(&HcclBarrier)>(dlsym(library, "HcclBarrier"));
  barrier(comm, kStream);
}

}  // namespace

int main(int count, char** steps) {
  void* comm = MakeWorld();
  for (int i = 1; i < count; ++i) {
    const auto is = [&](const char* step) { return strcmp(steps[i], step) == 0; };
    if (is("calls")) Calls(comm);
    if (is("batch")) Batch(comm);
    if (is("parts")) Parts(comm);
    if (is("asked")) AskForBarrier(comm);
    if (is("file")) File();
    if (is("all")) All();
    if (is("wait")) aclrtSynchronizeStream(kStream);
    if (is("destroy")) HcclCommDestroy(comm);
  }
  _exit(0);
}
