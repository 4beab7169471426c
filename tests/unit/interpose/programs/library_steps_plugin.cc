// SPDX-License-Identifier: Apache-2.0
// A plugin that reaches NCCL as frameworks do, for tests of the preloaded
// library. Loaded RTLD_LOCAL by library_loaders.cc, so that neither it nor the
// libnccl it is linked with stand in the global scope. Built without
// optimisation: nothing may depend on a caller's tail calls.
#include <dlfcn.h>
#include <nccl.h>

namespace {

// One communicator and three all-reduces, through functions found somehow.
template <typename GetUniqueId, typename Init, typename AllReduce>
int Calls(GetUniqueId* get_unique_id, Init* init, AllReduce* all_reduce) {
  if (get_unique_id == nullptr || init == nullptr || all_reduce == nullptr) return 10;
  ncclUniqueId id;
  ncclComm_t comm = nullptr;
  float buffer[8] = {};
  if (get_unique_id(&id) != ncclSuccess || init(&comm, 1, id, 0) != ncclSuccess) return 11;
  for (int i = 0; i < 3; ++i) {
    if (all_reduce(buffer, buffer, 8, ncclFloat, ncclSum, comm, nullptr) != ncclSuccess) return 12;
  }
  return 0;
}

int FoundBy(void* handle) {
  return Calls(reinterpret_cast<decltype(&ncclGetUniqueId)>(dlsym(handle, "ncclGetUniqueId")),
               reinterpret_cast<decltype(&ncclCommInitRank)>(dlsym(handle, "ncclCommInitRank")),
               reinterpret_cast<decltype(&ncclAllReduce)>(dlsym(handle, "ncclAllReduce")));
}

}  // namespace

extern "C" int plugin_linked() {
  return Calls(&ncclGetUniqueId, &ncclCommInitRank, &ncclAllReduce);
}
extern "C" int plugin_default() { return FoundBy(RTLD_DEFAULT); }
extern "C" int plugin_handle() { return FoundBy(dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL)); }
extern "C" int plugin_new_namespace() {
  return FoundBy(dlmopen(LM_ID_NEWLM, "libnccl.so.2", RTLD_NOW | RTLD_LOCAL));
}

// What only this object can see: names in its own scope.
extern "C" int plugin_only_symbol() { return 42; }
extern "C" int plugin_sees_itself() {
  return dlsym(RTLD_DEFAULT, "plugin_only_symbol") == reinterpret_cast<void*>(&plugin_only_symbol)
             ? 0
             : 13;
}
