// SPDX-License-Identifier: Apache-2.0
// Reads the arguments of PyTorch's functions: tensors, lists of them, strings, options.
//
// The wrappers of c10d's functions use this, on the thread that makes the call, while the call's
// arguments live. PyTorch's C interface for compiled models (aoti_torch_*) returns the size of a
// tensor, so the library needs no layout of tensors. It reads the layouts of std::vector and
// std::string, which the C++ ABI fixes, and the first word of options. Nothing here allocates,
// locks or changes errno.
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace rollcall {

struct TensorFacts {
  uint64_t count;  // elements of all tensors
  uint8_t dtype;   // of the first one
};

// Finds the functions of PyTorch's C interface. Calls the loader, so it is for calls off the hot
// path. Until then, and if PyTorch has no such interface, all tensors look empty.
void FindTorchTensors();

TensorFacts NoTensors();
TensorFacts OneTensor(const void* tensor);
// Returns the facts of a std::vector<at::Tensor>.
TensorFacts InVector(const void* tensors);

// The root in options that begin with it; kNoPeer: not a rank.
int32_t RootIn(const void* options);

// The number of an element's type in records; kNoDtype: unknown. `scalar_type`: c10::ScalarType.
uint8_t TorchDtype(int32_t scalar_type);

// A text in memory that PyTorch owns.
struct TextView {
  const char* data;
  size_t size;
};
// A std::string of the ABI with short strings inside, and of the one before ("Ss").
TextView NewString(const void* string);
TextView OldString(const void* string);

}  // namespace rollcall
