// SPDX-License-Identifier: Apache-2.0
// A rank that checks the data of every collective, for every data type and
// reduction, in place and not, small and in many rounds. Started by `ranks`;
// exits with 1 at the first wrong element.
#include <string.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <vector>

#include "tests/support/job.h"

namespace {

// The bytes of `value` as an element of a type.
template <typename T>
void Store(double value, char* to) {
  T element;
  if constexpr (std::is_integral_v<T>) {
    element = static_cast<T>(static_cast<int64_t>(value));
  } else if constexpr (std::is_floating_point_v<T>) {
    element = static_cast<T>(value);
  } else {
    element = T(static_cast<float>(value));
  }
  memcpy(to, &element, sizeof(T));
}

struct Type {
  ncclDataType_t dtype;
  const char* name;
  size_t size;
  bool integer;
  void (*store)(double, char*);
};
const Type kTypes[] = {
    {ncclInt8, "int8", 1, true, Store<int8_t>},
    {ncclUint8, "uint8", 1, true, Store<uint8_t>},
    {ncclInt32, "int32", 4, true, Store<int32_t>},
    {ncclUint32, "uint32", 4, true, Store<uint32_t>},
    {ncclInt64, "int64", 8, true, Store<int64_t>},
    {ncclUint64, "uint64", 8, true, Store<uint64_t>},
    {ncclFloat16, "half", 2, false, Store<__half>},
    {ncclFloat32, "float", 4, false, Store<float>},
    {ncclFloat64, "double", 8, false, Store<double>},
    {ncclBfloat16, "bfloat16", 2, false, Store<__nv_bfloat16>},
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 24, 0)
    {ncclFloat8e4m3, "e4m3", 1, false, Store<__nv_fp8_e4m3>},
    {ncclFloat8e5m2, "e5m2", 1, false, Store<__nv_fp8_e5m2>},
#endif
};

struct Reduction {
  ncclRedOp_t op;
  const char* name;
};
const Reduction kReductions[] = {
    {ncclSum, "sum"}, {ncclProd, "prod"}, {ncclMax, "max"}, {ncclMin, "min"}, {ncclAvg, "avg"}};

// Element `i` of `rank`: 1 or 2, so that results are exact for all types.
double Input(int rank, size_t i) {
  return 1 + static_cast<double>((i + rank) * (rank + 3) % 7 / 4);
}

struct Job {
  const int rank = JobRank();
  const int size = JobSize();
  ncclComm_t comm = nullptr;
  cudaStream_t stream = nullptr;
  int checks = 0;
} job;

double Expected(ncclRedOp_t op, bool integer, size_t i) {
  double result = Input(0, i);
  for (int rank = 1; rank < job.size; ++rank) {
    const double next = Input(rank, i);
    if (op == ncclProd) {
      result *= next;
    } else if (op == ncclMax || op == ncclMin) {
      result = op == ncclMax ? std::max(result, next) : std::min(result, next);
    } else {
      result += next;
    }
  }
  if (op != ncclAvg) return result;
  return integer ? static_cast<double>(static_cast<int64_t>(result) / job.size) : result / job.size;
}

// A buffer of elements of a type, in pinned memory so that the host can read it.
class Elements {
 public:
  Elements(const Type& type, size_t count) : type_(type), count_(count) {
    CHECK_CUDA(cudaMallocHost(reinterpret_cast<void**>(&data_), count * type.size));
    memset(data_, 0x5a, count * type.size);
  }
  ~Elements() { cudaFreeHost(data_); }
  char* at(size_t i) const { return data_ + i * type_.size; }

  void Fill(size_t first, size_t count, const std::function<double(size_t)>& value) {
    for (size_t i = 0; i < count; ++i) type_.store(value(i), at(first + i));
  }

  void Check(const char* what, size_t first, size_t count,
             const std::function<double(size_t)>& value) {
    char expected[8];
    for (size_t i = 0; i < count; ++i) {
      type_.store(value(i), expected);
      if (memcmp(expected, at(first + i), type_.size) == 0) continue;
      fprintf(stderr, "rank %d: %s of %zu %s: element %zu should be %g\n", job.rank, what, count_,
              type_.name, first + i, value(i));
      exit(1);
    }
    ++job.checks;
  }

 private:
  const Type& type_;
  const size_t count_;
  char* data_ = nullptr;
};

double Own(size_t i) { return Input(job.rank, i); }

void Wait() { CHECK_CUDA(cudaStreamSynchronize(job.stream)); }

void CheckReductions(const Type& type, const Reduction& reduction, size_t count, bool in_place) {
  const auto expected = [&](size_t i) { return Expected(reduction.op, type.integer, i); };
  const size_t all = count * job.size;
  Elements send(type, all), other(type, all);
  Elements& recv = in_place ? send : other;
  send.Fill(0, count, Own);
  CHECK_NCCL(
      ncclAllReduce(send.at(0), recv.at(0), count, type.dtype, reduction.op, job.comm, job.stream));
  Wait();
  recv.Check(reduction.name, 0, count, expected);

  const int root = job.size - 1;
  send.Fill(0, count, Own);
  CHECK_NCCL(ncclReduce(send.at(0), job.rank == root ? recv.at(0) : nullptr, count, type.dtype,
                        reduction.op, root, job.comm, job.stream));
  Wait();
  if (job.rank == root) recv.Check("reduce", 0, count, expected);

  send.Fill(0, all, Own);
  const size_t mine = job.rank * count;
  CHECK_NCCL(ncclReduceScatter(send.at(0), recv.at(in_place ? mine : 0), count, type.dtype,
                               reduction.op, job.comm, job.stream));
  Wait();
  recv.Check("reduce-scatter", in_place ? mine : 0, count,
             [&](size_t i) { return expected(mine + i); });
}

void CheckGathering(const Type& type, size_t count, bool in_place) {
  const size_t mine = job.rank * count;
  Elements gathered(type, count * job.size), own(type, count);
  own.Fill(0, count, Own);
  gathered.Fill(mine, count, Own);
  const char* send = in_place ? gathered.at(mine) : own.at(0);
  CHECK_NCCL(ncclAllGather(send, gathered.at(0), count, type.dtype, job.comm, job.stream));
  Wait();
  for (int rank = 0; rank < job.size; ++rank) {
    gathered.Check("all-gather", rank * count, count, [&](size_t i) { return Input(rank, i); });
  }
}

void CheckBroadcast(const Type& type, size_t count, bool in_place) {
  const int root = 1 % job.size;
  Elements send(type, count), recv(type, count);
  send.Fill(0, count, Own);
  if (in_place) {
    CHECK_NCCL(ncclBcast(send.at(0), count, type.dtype, root, job.comm, job.stream));
  } else {
    CHECK_NCCL(ncclBroadcast(job.rank == root ? send.at(0) : nullptr, recv.at(0), count, type.dtype,
                             root, job.comm, job.stream));
  }
  Wait();
  (in_place ? send : recv).Check("broadcast", 0, count, [&](size_t i) { return Input(root, i); });
}

#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 28, 0)
void CheckRooted(const Type& type, size_t count) {
  const int root = 0;
  const size_t all = count * job.size;
  Elements one(type, count), many(type, all);
  one.Fill(0, count, Own);
  CHECK_NCCL(ncclGather(one.at(0), job.rank == root ? many.at(0) : nullptr, count, type.dtype, root,
                        job.comm, job.stream));
  Wait();
  for (int rank = 0; rank < job.size && job.rank == root; ++rank) {
    many.Check("gather", rank * count, count, [&](size_t i) { return Input(rank, i); });
  }
  many.Fill(0, all, Own);
  CHECK_NCCL(ncclScatter(job.rank == root ? many.at(0) : nullptr, one.at(0), count, type.dtype,
                         root, job.comm, job.stream));
  Wait();
  one.Check("scatter", 0, count, [&](size_t i) { return Input(root, job.rank * count + i); });
}

void CheckAlltoAll(const Type& type, size_t count) {
  const size_t all = count * job.size;
  Elements send(type, all), recv(type, all);
  send.Fill(0, all, Own);
  CHECK_NCCL(ncclAlltoAll(send.at(0), recv.at(0), count, type.dtype, job.comm, job.stream));
  Wait();
  for (int rank = 0; rank < job.size; ++rank) {
    recv.Check("all-to-all", rank * count, count,
               [&](size_t i) { return Input(rank, job.rank * count + i); });
  }
}
#endif

// Each rank sends two messages to each rank, itself included. No message may overtake another.
void CheckSendRecv(const Type& type, size_t count) {
  const size_t all = count * job.size;
  Elements send(type, 2 * all), recv(type, 2 * all);
  send.Fill(0, 2 * all, Own);
  CHECK_NCCL(ncclGroupStart());
  for (int turn = 0; turn < 2; ++turn) {
    for (int peer = 0; peer < job.size; ++peer) {
      const size_t at = turn * all + peer * count;
      CHECK_NCCL(ncclSend(send.at(at), count, type.dtype, peer, job.comm, job.stream));
      CHECK_NCCL(ncclRecv(recv.at(at), count, type.dtype, peer, job.comm, job.stream));
    }
  }
  CHECK_NCCL(ncclGroupEnd());
  Wait();
  for (int turn = 0; turn < 2; ++turn) {
    for (int peer = 0; peer < job.size; ++peer) {
      recv.Check("send and receive", turn * all + peer * count, count,
                 [&](size_t i) { return Input(peer, turn * all + job.rank * count + i); });
    }
  }
}

// Each rank's input is scaled by its own factor before the sum.
void CheckPreMulSum(const Type& type, size_t count) {
  if (type.size == 1 && !type.integer) return;  // too narrow for these sums
  char factor[8];
  type.store(job.rank + 1, factor);
  ncclRedOp_t op;
  CHECK_NCCL(ncclRedOpCreatePreMulSum(&op, factor, type.dtype, ncclScalarHostImmediate, job.comm));
  Elements data(type, count);
  data.Fill(0, count, Own);
  CHECK_NCCL(ncclAllReduce(data.at(0), data.at(0), count, type.dtype, op, job.comm, job.stream));
  CHECK_NCCL(ncclRedOpDestroy(op, job.comm));
  Wait();
  data.Check("premulsum", 0, count, [&](size_t i) {
    double sum = 0;
    for (int rank = 0; rank < job.size; ++rank) sum += (rank + 1) * Input(rank, i);
    return sum;
  });
}

void CheckType(const Type& type, size_t count) {
  for (const bool in_place : {false, true}) {
    for (const Reduction& reduction : kReductions) {
      CheckReductions(type, reduction, count, in_place);
    }
    CheckGathering(type, count, in_place);
    CheckBroadcast(type, count, in_place);
  }
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 28, 0)
  CheckRooted(type, count);
  CheckAlltoAll(type, count);
#endif
  CheckSendRecv(type, count);
  CheckPreMulSum(type, count);
}

}  // namespace

int main() {
  CHECK_CUDA(cudaSetDevice(job.rank));
  CHECK_CUDA(cudaStreamCreate(&job.stream));
  CHECK_NCCL(ncclCommInitRank(&job.comm, job.size, ShareUniqueId(), job.rank));
  for (const Type& type : kTypes) {
    for (const size_t count : {1, 5, 1021}) CheckType(type, count);
  }
  // Floats in many rounds, also of collectives that share a slot among the ranks.
  CheckType(kTypes[7], 1200007 / static_cast<size_t>(job.size));
  CHECK_NCCL(ncclCommFinalize(job.comm));
  CHECK_NCCL(ncclCommDestroy(job.comm));
  printf("rank %d: %d checks\n", job.rank, job.checks);
}
