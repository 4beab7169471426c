// SPDX-License-Identifier: Apache-2.0
#include "daemon/model/first_calls.h"

#include <algorithm>

#include "interpose/segment.h"

namespace rollcall {
namespace {

uint32_t KindOf(const CallArgs& args) { return static_cast<uint32_t>(SignatureOf(args) >> 32); }

const FirstCall* FindKind(const Communicator& comm, uint32_t kind) {
  return std::find_if(comm.first_calls.begin(), comm.first_calls.end(),
                      [kind](const FirstCall& first) { return first.kind == kind; });
}

}  // namespace

uint64_t SignatureOf(const CallArgs& args) {
  return segment::NextSignature(segment::kSignatureSeed, static_cast<uint8_t>(Canonical(args.op)),
                                args.dtype, args.reduction, args.peer, args.count);
}

void RecordFirst(const CallRecord& record, Communicator* comm) {
  if (record.position != comm->recorded_until || record.position >= UINT32_MAX) return;
  const uint32_t kind = KindOf(record.args);
  if (FindKind(*comm, kind) == comm->first_calls.end()) {
    if (comm->first_calls.size() == kMostKinds) return;
    comm->first_calls.push_back({kind, static_cast<uint32_t>(record.position)});
  }
  ++comm->recorded_until;
}

bool MayHaveComeBefore(const Communicator& comm, const CallArgs& args, uint64_t position) {
  if (position == 0) return false;
  if (comm.recorded_until < position) return true;
  const FirstCall* first = FindKind(comm, KindOf(args));
  return first != comm.first_calls.end() && first->position < position;
}

}  // namespace rollcall
