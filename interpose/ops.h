// SPDX-License-Identifier: Apache-2.0
// What a wrapped call is: codes, names and kinds, from calls.def. Used by the
// library, the agent, the rules and the reports; includes nothing of NCCL.
#pragma once

#include <cstdint>

namespace rollcall {

enum class Op : uint8_t {
  kNone = 0,
#define CALL(symbol, op, code, kind) k##op = code,
#include "interpose/calls.def"
#undef CALL
};

enum class CallKind : uint8_t {
  kUnknown,
  kCollective,
  kP2p,
  kGroup,
  kCreate,
  kTeardown,
  kQuery,
  kLocal,
  kWait,
  kHostWait,
};

// The name people read ("AllReduce"); "op <n>" is the caller's business where
// this returns nullptr: codes from a newer library are not in our table.
constexpr const char* OpName(Op op) {
  switch (op) {
#define CALL(symbol, op, code, kind) \
  case Op::k##op:                    \
    return #op;
#include "interpose/calls.def"
#undef CALL
    case Op::kNone:
      break;
  }
  return nullptr;
}

constexpr CallKind KindOf(Op op) {
  switch (op) {
#define CALL(symbol, op, code, kind) \
  case Op::k##op:                    \
    return CallKind::k##kind;
#include "interpose/calls.def"
#undef CALL
    case Op::kNone:
      break;
  }
  return CallKind::kUnknown;
}

// ncclBcast is ncclBroadcast in place: ranks may mix the two.
constexpr Op Canonical(Op op) { return op == Op::kBcast ? Op::kBroadcast : op; }

// Of a P2p call: whether it is the end that gives. A signal is matched by the peer's
// wait for it as a send is by the peer's receive.
constexpr bool Gives(Op op) { return op == Op::kSend || op == Op::kPutSignal || op == Op::kSignal; }

// It gives without waiting for the end that takes.
constexpr bool IsSignal(Op op) { return op == Op::kPutSignal || op == Op::kSignal; }

// A collective of MPI's that returns before it is done.
constexpr bool ReturnsEarly(Op op) {
  return op >= Op::kMPI_Ibarrier && op <= Op::kMPI_Ineighbor_alltoallw;
}

// Call arguments that a call does not have are recorded as these.
inline constexpr uint8_t kNoDtype = 0xff;
inline constexpr uint8_t kNoReduction = 0xff;
inline constexpr uint8_t kDynamicReduction =
    0xfe;  // ncclRedOpCreatePreMulSum: numbers differ by rank
inline constexpr int32_t kNoPeer = -1;

// ncclDataType_t as PyTorch spells it; nullptr for a number that is not known.
constexpr const char* DtypeName(uint8_t dtype) {
  constexpr const char* kNames[] = {"int8",    "uint8",    "int32",       "uint32",
                                    "int64",   "uint64",   "float16",     "float32",
                                    "float64", "bfloat16", "float8_e4m3", "float8_e5m2"};
  return dtype < sizeof(kNames) / sizeof(kNames[0]) ? kNames[dtype] : nullptr;
}

// ncclRedOp_t; nullptr for a number that is not known.
constexpr const char* ReductionName(uint8_t reduction) {
  constexpr const char* kNames[] = {"sum", "prod", "max", "min", "avg"};
  if (reduction == kDynamicReduction) return "premulsum";
  return reduction < sizeof(kNames) / sizeof(kNames[0]) ? kNames[reduction] : nullptr;
}

}  // namespace rollcall
