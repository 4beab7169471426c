// SPDX-License-Identifier: Apache-2.0
// A kernel that does nothing for a time, for programs that are built without a compiler of kernels.
#pragma once

#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

namespace victim {

// The driver makes a kernel for its GPU of this. %globaltimer counts nanoseconds.
inline constexpr char kSpin[] = R"(
.version 6.0
.target sm_50
.address_size 64
.visible .entry spin(.param .u64 nanoseconds) {
  .reg .u64 %length, %begun, %now, %gone;
  .reg .pred %waits;
  ld.param.u64 %length, [nanoseconds];
  mov.u64 %begun, %globaltimer;
again:
  mov.u64 %now, %globaltimer;
  sub.u64 %gone, %now, %begun;
  setp.lt.u64 %waits, %gone, %length;
  @%waits bra again;
  ret;
}
)";

// Puts it on the stream; the current device's context must be there. Does nothing if the driver
// runs no kernels, as the simulated one.
inline void Spin(cudaStream_t stream, unsigned long long seconds) {
  void* driver = dlopen("libcuda.so.1", RTLD_NOW);
  if (driver == nullptr) return;
  const auto load =
      reinterpret_cast<int (*)(void**, const void*)>(dlsym(driver, "cuModuleLoadData"));
  const auto find =
      reinterpret_cast<int (*)(void**, void*, const char*)>(dlsym(driver, "cuModuleGetFunction"));
  using Launch = int (*)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                         unsigned, cudaStream_t, void**, void**);
  const auto launch = reinterpret_cast<Launch>(dlsym(driver, "cuLaunchKernel"));
  if (load == nullptr || find == nullptr || launch == nullptr) return;
  void* module = nullptr;
  void* kernel = nullptr;
  unsigned long long nanoseconds = seconds * 1'000'000'000;
  void* arguments[] = {&nanoseconds};
  int result = load(&module, kSpin);
  if (result == 0) result = find(&kernel, module, "spin");
  if (result == 0) result = launch(kernel, 1, 1, 1, 1, 1, 1, 0, stream, arguments, nullptr);
  if (result == 0) return;
  fprintf(stderr, "the spinning kernel was not launched: error %d of the driver\n", result);
  exit(1);
}

}  // namespace victim
