// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/nccl/reduce.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace rollcall::sim {
namespace {

// The type in which elements of type T are added up.
template <typename T>
T Widen(T value) {
  return value;
}
float Widen(__half value) { return __half2float(value); }
float Widen(__nv_bfloat16 value) { return __bfloat162float(value); }

template <typename T, typename A>
T Narrow(A value) {
  if constexpr (std::is_same_v<T, __half>) {
    return __float2half(value);
  } else if constexpr (std::is_same_v<T, __nv_bfloat16>) {
    return __float2bfloat16(value);
  } else {
    return static_cast<T>(value);
  }
}

#ifdef __CUDA_FP8_TYPES_EXIST__
float Widen(__nv_fp8_e4m3 value) { return static_cast<float>(value); }
float Widen(__nv_fp8_e5m2 value) { return static_cast<float>(value); }
#endif

// Signed overflow wraps, as on a GPU.
template <typename A>
A Add(A a, A b) {
  if constexpr (std::is_integral_v<A>) {
    return static_cast<A>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  } else {
    return a + b;
  }
}

template <typename A>
A Multiply(A a, A b) {
  if constexpr (std::is_integral_v<A>) {
    return static_cast<A>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
  } else {
    return a * b;
  }
}

template <typename A>
void Combine(ncclRedOp_t op, A* sum, const A* next, size_t count) {
  switch (op) {
    case ncclProd:
      for (size_t i = 0; i < count; ++i) sum[i] = Multiply(sum[i], next[i]);
      break;
    case ncclMax:
      for (size_t i = 0; i < count; ++i) sum[i] = std::max(sum[i], next[i]);
      break;
    case ncclMin:
      for (size_t i = 0; i < count; ++i) sum[i] = std::min(sum[i], next[i]);
      break;
    default:
      for (size_t i = 0; i < count; ++i) sum[i] = Add(sum[i], next[i]);
  }
}

template <typename T>
void Load(const char* from, size_t first, size_t count, decltype(Widen(T()))* to) {
  T element;
  for (size_t i = 0; i < count; ++i) {
    std::memcpy(&element, from + (first + i) * sizeof(T), sizeof(T));
    to[i] = Widen(element);
  }
}

template <typename T>
void Store(const decltype(Widen(T()))* from, size_t first, size_t count, char* to) {
  for (size_t i = 0; i < count; ++i) {
    const T element = Narrow<T>(from[i]);
    std::memcpy(to + (first + i) * sizeof(T), &element, sizeof(T));
  }
}

constexpr size_t kBlock = 1024;

struct ReduceAll {
  ncclRedOp_t op;
  const std::vector<const char*>& sources;
  size_t count;
  char* out;

  template <typename T>
  void Do() const {
    using A = decltype(Widen(T()));
    A sum[kBlock], next[kBlock];
    for (size_t first = 0; first < count; first += kBlock) {
      const size_t size = std::min(kBlock, count - first);
      Load<T>(sources[0], first, size, sum);
      for (size_t s = 1; s < sources.size(); ++s) {
        Load<T>(sources[s], first, size, next);
        Combine(op, sum, next, size);
      }
      if (op == ncclAvg) {
        for (size_t i = 0; i < size; ++i) sum[i] = sum[i] / static_cast<A>(sources.size());
      }
      Store<T>(sum, first, size, out);
    }
  }
};

struct ScaleAll {
  const void* scalar;
  const char* in;
  size_t count;
  char* out;

  template <typename T>
  void Do() const {
    using A = decltype(Widen(T()));
    A factor, block[kBlock];
    Load<T>(static_cast<const char*>(scalar), 0, 1, &factor);
    for (size_t first = 0; first < count; first += kBlock) {
      const size_t size = std::min(kBlock, count - first);
      Load<T>(in, first, size, block);
      for (size_t i = 0; i < size; ++i) block[i] = Multiply(block[i], factor);
      Store<T>(block, first, size, out);
    }
  }
};

struct SizeOf {
  size_t* size;
  template <typename T>
  void Do() const {
    *size = sizeof(T);
  }
};

// Calls action.Do<T>() with the element type that `dtype` stands for.
template <typename Action>
void WithType(ncclDataType_t dtype, const Action& action) {
  switch (dtype) {
    case ncclInt8:
      return action.template Do<int8_t>();
    case ncclUint8:
      return action.template Do<uint8_t>();
    case ncclInt32:
      return action.template Do<int32_t>();
    case ncclUint32:
      return action.template Do<uint32_t>();
    case ncclInt64:
      return action.template Do<int64_t>();
    case ncclUint64:
      return action.template Do<uint64_t>();
    case ncclFloat16:
      return action.template Do<__half>();
    case ncclFloat32:
      return action.template Do<float>();
    case ncclFloat64:
      return action.template Do<double>();
    case ncclBfloat16:
      return action.template Do<__nv_bfloat16>();
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 24, 0) && defined(__CUDA_FP8_TYPES_EXIST__)
    case ncclFloat8e4m3:
      return action.template Do<__nv_fp8_e4m3>();
    case ncclFloat8e5m2:
      return action.template Do<__nv_fp8_e5m2>();
#endif
    default:
      return;
  }
}

}  // namespace

size_t ElementSize(ncclDataType_t dtype) {
  size_t size = 0;
  WithType(dtype, SizeOf{&size});
  return size;
}

void Reduce(ncclDataType_t dtype, ncclRedOp_t op, const std::vector<const char*>& sources,
            size_t count, char* out) {
  WithType(dtype, ReduceAll{op, sources, count, out});
}

void Scale(ncclDataType_t dtype, const void* scalar, const char* in, size_t count, char* out) {
  WithType(dtype, ScaleAll{scalar, in, count, out});
}

}  // namespace rollcall::sim
