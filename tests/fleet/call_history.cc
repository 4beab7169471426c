// SPDX-License-Identifier: Apache-2.0
#include "tests/fleet/call_history.h"

#include <algorithm>

#include "interpose/ops.h"
#include "interpose/segment.h"

namespace rollcall::fleet {
namespace {

constexpr uint8_t kFloat32 = 7;   // ncclFloat32
constexpr uint8_t kSum = 0;       // ncclSum
constexpr uint64_t kPeriod = 12;  // calls of a training step

uint64_t Extend(uint64_t signature, const CallArgs& args) {
  return segment::NextSignature(signature, args.op, args.dtype, args.reduction, kNoPeer,
                                args.count);
}

}  // namespace

CallHistory::CallHistory(size_t positions) {
  signatures_.reserve(positions + 1);
  signatures_.push_back(segment::kSignatureSeed);
  for (uint64_t position = 0; position < positions; ++position) {
    signatures_.push_back(Extend(signatures_.back(), ArgsAt(position)));
  }
}

CallArgs CallHistory::ArgsAt(uint64_t position) {
  const uint64_t call = position % kPeriod;
  if (call == 0) {
    return {static_cast<uint8_t>(Op::kAllGather), kFloat32, kNoReduction, uint64_t{1} << 22};
  }
  return {static_cast<uint8_t>(Op::kAllReduce), kFloat32, kSum, (uint64_t{1} << 20) + call};
}

CallArgs CallHistory::OtherArgs() {
  return {static_cast<uint8_t>(Op::kReduceScatter), kFloat32, kSum, 4096};
}

uint64_t CallHistory::SignatureOf(uint64_t entered) const {
  return signatures_[std::min<size_t>(entered, signatures_.size() - 1)];
}

uint64_t CallHistory::OtherSignatureOf(uint64_t entered) const {
  return Extend(SignatureOf(entered - 1), OtherArgs());
}

}  // namespace rollcall::fleet
