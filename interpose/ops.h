// SPDX-License-Identifier: Apache-2.0
// The codes, names and kinds of wrapped calls, from calls.def. For the library, the agent, the
// rules and the reports; includes nothing of NCCL.
#pragma once

#include <cstdint>

#include "interpose/comm_kind.h"

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
  kTest,
};

// The name of the call in reports ("AllReduce"). nullptr if a newer library wrote a code that is
// not in our table; the caller then writes "op <n>".
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

constexpr CallKind OpKind(Op op) {
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

// One operation for calls that match each other: ncclBcast is an in-place ncclBroadcast.
constexpr Op Canonical(Op op) { return op == Op::kBcast ? Op::kBroadcast : op; }

// Whether a point-to-point call sends. A wait for a signal matches the peer's signal, as a receive
// matches a send.
constexpr bool IsSendSide(Op op) {
  return op == Op::kSend || op == Op::kPutSignal || op == Op::kSignal || op == Op::kMPI_Send;
}

// Whether the root of this collective gives something to the others and gets nothing from them.
constexpr bool RootGivesOnly(Op op) {
  switch (op) {
    case Op::kBroadcast:
    case Op::kBcast:
    case Op::kScatter:
    case Op::kMPI_Bcast:
    case Op::kMPI_Ibcast:
    case Op::kMPI_Scatter:
    case Op::kMPI_Scatterv:
    case Op::kMPI_Iscatter:
    case Op::kMPI_Iscatterv:
      return true;
    default:
      return false;
  }
}

// Whether the call sends without waiting for the receiver.
constexpr bool IsSignal(Op op) { return op == Op::kPutSignal || op == Op::kSignal; }

// Whether the call is a message of MPI: several threads may be inside such calls at once.
constexpr bool IsMpiMessage(Op op) {
  return op == Op::kMPI_Send || op == Op::kMPI_Ssend || op == Op::kMPI_Recv ||
         op == Op::kMPI_Sendrecv || op == Op::kMPI_Probe;
}

// Whether the call looks whether a wait would end. In a loop it is one.
constexpr bool IsTest(Op op) { return OpKind(op) == CallKind::kTest; }

// Whether the call is one of MPI.
constexpr bool IsOfMpi(Op op) {
  const char* name = OpName(op);
  return name != nullptr && name[0] == 'M' && name[1] == 'P' && name[2] == 'I' && name[3] == '_';
}

// Whether the call is a nonblocking collective of MPI.
constexpr bool ReturnsEarly(Op op) {
  return op >= Op::kMPI_Ibarrier && op <= Op::kMPI_Ineighbor_alltoallw;
}

// The values of arguments that a call does not have.
inline constexpr uint8_t kNoDtype = 0xff;
inline constexpr uint8_t kNoReduction = 0xff;
// An operator of ncclRedOpCreatePreMulSum, whose number differs between ranks.
inline constexpr uint8_t kDynamicReduction = 0xfe;
inline constexpr int32_t kNoPeer = -1;

// What is added to PyTorch's number of a type (c10::ScalarType) that NCCL lacks.
inline constexpr uint8_t kTorchDtypes = 0x80;
inline constexpr uint8_t kTorchInt16 = 2, kTorchUint16 = 27;

// PyTorch's name of such a type; nullptr if unknown.
constexpr const char* TorchDtypeName(uint8_t type) {
  switch (type) {
    case kTorchInt16:
      return "int16";
    case 8:
      return "complex32";
    case 9:
      return "complex64";
    case 10:
      return "complex128";
    case 11:
      return "bool";
    case kTorchUint16:
      return "uint16";
    default:
      return nullptr;
  }
}

// PyTorch's name of an ncclDataType_t, or of a type of its own; nullptr if unknown.
constexpr const char* DtypeName(uint8_t dtype) {
  if (dtype >= kTorchDtypes) return TorchDtypeName(static_cast<uint8_t>(dtype - kTorchDtypes));
  constexpr const char* kNames[] = {"int8",    "uint8",    "int32",       "uint32",
                                    "int64",   "uint64",   "float16",     "float32",
                                    "float64", "bfloat16", "float8_e4m3", "float8_e5m2"};
  return dtype < sizeof(kNames) / sizeof(kNames[0]) ? kNames[dtype] : nullptr;
}

// The name of an ncclRedOp_t; nullptr if unknown.
constexpr const char* ReductionName(uint8_t reduction) {
  constexpr const char* kNames[] = {"sum", "prod", "max", "min", "avg"};
  if (reduction == kDynamicReduction) return "premulsum";
  return reduction < sizeof(kNames) / sizeof(kNames[0]) ? kNames[reduction] : nullptr;
}

}  // namespace rollcall
