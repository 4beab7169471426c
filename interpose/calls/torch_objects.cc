// SPDX-License-Identifier: Apache-2.0
#include "interpose/calls/torch_objects.h"

#include <string.h>

#include <atomic>

#include "interpose/ops.h"
#include "interpose/real.h"

namespace rollcall {
namespace {

using GetNumel = int32_t (*)(const void* tensor, int64_t* numel);
using GetDtype = int32_t (*)(const void* tensor, int32_t* dtype);
std::atomic<GetNumel> get_numel{nullptr};
std::atomic<GetDtype> get_dtype{nullptr};

constexpr size_t kTensorBytes = sizeof(void*);  // at::Tensor is one pointer
constexpr size_t kMostTensors = 256;            // of a list; a longer one counts as these

template <typename Function>
void Find(const char* symbol, std::atomic<Function>* out) {
  out->store(reinterpret_cast<Function>(FindRealByName(symbol)), std::memory_order_release);
}

uint64_t CountElements(const void* tensor) {
  const GetNumel numel = get_numel.load(std::memory_order_acquire);
  int64_t count = 0;
  if (numel == nullptr || numel(tensor, &count) != 0 || count < 0) return 0;
  return static_cast<uint64_t>(count);
}

uint8_t FindDtype(const void* tensor) {
  const GetDtype dtype = get_dtype.load(std::memory_order_acquire);
  int32_t type = -1;
  return dtype == nullptr || dtype(tensor, &type) != 0 ? kNoDtype : TorchDtype(type);
}

}  // namespace

void FindTorchTensors() {
  if (get_numel.load(std::memory_order_relaxed) != nullptr) return;
  Find("aoti_torch_get_dtype", &get_dtype);
  Find("aoti_torch_get_numel", &get_numel);
}

TensorFacts NoTensors() { return {0, kNoDtype}; }

TensorFacts OneTensor(const void* tensor) { return {CountElements(tensor), FindDtype(tensor)}; }

TensorFacts InVector(const void* tensors) {
  const char* bounds[2];  // of the elements: begin, end
  memcpy(bounds, tensors, sizeof(bounds));
  TensorFacts facts = NoTensors();
  const auto count = static_cast<size_t>(bounds[1] - bounds[0]) / kTensorBytes;
  if (count == 0) return facts;
  facts.dtype = FindDtype(bounds[0]);
  for (size_t i = 0; i < count && i < kMostTensors; ++i) {
    facts.count += CountElements(bounds[0] + i * kTensorBytes);
  }
  return facts;
}

int32_t RootIn(const void* options) {
  int64_t root = kNoPeer;
  memcpy(&root, options, sizeof(root));
  return root >= 0 && root <= INT32_MAX ? static_cast<int32_t>(root) : kNoPeer;
}

uint8_t TorchDtype(int32_t scalar_type) {
  // c10::ScalarType, in its order, as ncclDataType_t.
  constexpr uint8_t kKnown[] = {1,        0,        kNoDtype, 2,        4,        6,
                                7,        8,        kNoDtype, kNoDtype, kNoDtype, kNoDtype,
                                kNoDtype, kNoDtype, kNoDtype, 9};
  const auto type = static_cast<uint32_t>(scalar_type);
  if (type < sizeof(kKnown) && kKnown[type] != kNoDtype) return kKnown[type];
  // NCCL has no number for it.
  return type < kNoDtype - kTorchDtypes ? static_cast<uint8_t>(kTorchDtypes + type) : kNoDtype;
}

TextView NewString(const void* string) {
  TextView text;
  static_assert(sizeof(text) == 2 * sizeof(void*) && offsetof(TextView, size) == sizeof(void*));
  memcpy(&text, string, sizeof(text));
  return text;
}

TextView OldString(const void* string) {
  TextView text = {nullptr, 0};
  memcpy(&text.data, string, sizeof(text.data));
  // Before the text stand its length, its capacity and the number of its owners.
  memcpy(&text.size, text.data - 3 * sizeof(size_t), sizeof(text.size));
  return text;
}

}  // namespace rollcall
