// SPDX-License-Identifier: Apache-2.0
// MPI's persistent requests: calls that are described once (MPI_Send_init, MPI_Bcast_init) and
// begin with each MPI_Start. A request keeps its handle when it is done.
//
// A table. Never waits, allocates or locks. The last part of it is for collectives, of which all
// ranks hold alike many. Of a communicator with a message without room, the counts are not
// evidence; a process with a collective without room is not recorded any more.
#pragma once

#include "interpose/calls/mpi_messages.h"
#include "interpose/ops.h"
#include "interpose/record/exceptions.h"

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

// Records a call that describes another one: `call` makes it, and fills in the request.
template <typename Call>
__attribute__((noinline, noclone)) int DescribePersistent(const PersistentCall& described,
                                                          const MpiWord* request,
                                                          const Call& call) {
  ROLLCALL_ENDS_BY_EXCEPTION();
  const InsideCall inside(&this_thread);
  const MayThrow may_throw(PlainCall());
  const int result = call();
  if (result == 0 && may_throw.IsOpen()) RecordPersistent(described, HandleAt(request));
  return result;
}

void ForgetPersistent(MpiWord request);

// Records that the call begins, if the request is in the table.
void StartPersistent(ThreadState* thread, MpiWord request, const void* caller);

}  // namespace rollcall
