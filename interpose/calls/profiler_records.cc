// SPDX-License-Identifier: Apache-2.0
#include "interpose/calls/profiler_records.h"

#include <string.h>

#include "interpose/record/blocked_threads.h"
#include "interpose/record/call_record.h"
#include "interpose/record/graph_launches.h"
#include "interpose/record/group_lists.h"
#include "interpose/record/groups.h"
#include "interpose/record/markers.h"
#include "interpose/recorder.h"

namespace rollcall {
namespace {

// The wrapped call of this name; kNone: not recorded.
Op FindOp(const char* name) {
  constexpr Op kOps[] = {Op::kAllReduce, Op::kAllGather, Op::kReduceScatter, Op::kReduce,
                         Op::kBroadcast, Op::kAlltoAll,  Op::kGather,        Op::kScatter,
                         Op::kSend,      Op::kRecv};
  for (const Op op : kOps) {
    if (name != nullptr && strcmp(name, OpName(op)) == 0) return op;
  }
  return Op::kNone;
}

uint8_t FindType(const char* name) {
  constexpr const char* kNames[] = {// in the order of ncclDataType_t
                                    "ncclInt8",     "ncclUint8",      "ncclInt32",
                                    "ncclUint32",   "ncclInt64",      "ncclUint64",
                                    "ncclFloat16",  "ncclFloat32",    "ncclFloat64",
                                    "ncclBfloat16", "ncclFloat8e4m3", "ncclFloat8e5m2"};
  for (uint8_t i = 0; i < sizeof(kNames) / sizeof(kNames[0]); ++i) {
    if (name != nullptr && strcmp(name, kNames[i]) == 0) return i;
  }
  return kNoDtype;
}

bool HasRoot(Op op) {
  return op == Op::kReduce || op == Op::kBroadcast || op == Op::kGather || op == Op::kScatter;
}

void RecordCall(LocalComm* comm, const CallInfo& info, bool captured) {
  ThreadState* thread = &this_thread;
  if (info.op == Op::kNone || thread->inside) return;
  const InsideCall inside(thread);
  ClaimedEntry(thread);
  const GroupComm* part = thread->group_depth > 0 ? JoinGroup(thread, comm, info.stream) : nullptr;
  const uint64_t seen = part == nullptr ? 0 : part->capture;
  const uint64_t capture = seen > kOffLimits ? seen : captured ? kUnknownCapture : 0;
  if (capture != 0) {
    EndCaptured(thread, comm, info, BeginCaptured(thread, comm, info, nullptr, capture),
                ncclSuccess);
    return;
  }
  const OpenRecord open = BeginRecord(thread, comm, info, Now(), nullptr, part != nullptr);
  EndRecord(comm, open, ncclSuccess, part != nullptr);
}

}  // namespace

void RecordCollApi(LocalComm* comm, const profiler::CollApi& call) {
  const Op op = FindOp(call.function);
  RecordCall(comm,
             {op, FindType(call.datatype), kNoReduction, HasRoot(op) ? call.root : kNoPeer,
              call.count, static_cast<cudaStream_t>(call.stream)},
             call.captured);
}

void RecordColl(LocalComm* comm, const profiler::Coll& call) {
  const Op op = FindOp(call.function);
  RecordCall(comm,
             {op, FindType(call.datatype), kNoReduction, HasRoot(op) ? call.root : kNoPeer,
              call.count, nullptr},
             false);
}

void RecordP2p(LocalComm* comm, const profiler::P2p& call) {
  RecordCall(comm,
             {FindOp(call.function), FindType(call.datatype), kNoReduction, call.peer, call.count,
              nullptr},
             false);
}

void OpenGroup() {
  ThreadState* thread = &this_thread;
  if (thread->inside || thread->group_depth > 0) return;
  thread->group_depth = 1;
  thread->group_size = 0;
  if (++thread->group_number == 0) thread->group_number = 1;
}

void BeginGroupEnd() {
  ThreadState* thread = &this_thread;
  segment::BlockedEntry* entry = thread->group_depth == 0 ? nullptr : ClaimedEntry(thread);
  if (entry == nullptr) return;
  const uint32_t comm =
      thread->group_size > 0 ? thread->lists->group[0].comm->index : segment::kNoComm;
  entry->op.store(static_cast<uint32_t>(Op::kGroupEnd), std::memory_order_relaxed);
  entry->comm.store(comm, std::memory_order_relaxed);
  entry->since.store(Now(), std::memory_order_release);
}

void FinishGroup() {
  ThreadState* thread = &this_thread;
  if (thread->group_depth == 0) return;
  if (thread->blocked_claimed && thread->blocked != nullptr) {
    thread->blocked->since.store(0, std::memory_order_release);
  }
  CloseGroup(thread, ncclSuccess);
  thread->group_size = 0;
  thread->group_depth = 0;
}

}  // namespace rollcall
