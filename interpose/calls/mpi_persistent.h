// SPDX-License-Identifier: Apache-2.0
// MPI's persistent requests: calls that are described once (MPI_Send_init, MPI_Bcast_init) and
// begin with each MPI_Start. A request keeps its handle when it is done.
//
// A small table. Never waits, allocates or locks. A request without room in it is not recorded.
#pragma once

#include "interpose/calls/mpi_messages.h"
#include "interpose/ops.h"

namespace rollcall {

struct PersistentCall {
  LocalComm* comm = nullptr;
  Op op = Op::kNone;
  bool is_message = false;
  MessageEnd end = MessageEnd::kSend;
  int32_t peer = kNoPeer;  // or root
  int tag = 0;
  uint64_t bytes = 0;  // of a collective
};

void RecordPersistent(const PersistentCall& call, MpiWord request);
void ForgetPersistent(MpiWord request);

// Records that the call begins, if the request is in the table.
void StartPersistent(ThreadState* thread, MpiWord request, const void* caller);

}  // namespace rollcall
