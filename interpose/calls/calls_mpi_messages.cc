// SPDX-License-Identifier: Apache-2.0
// The wrappers of MPI's messages. A call counts its message before the real function runs, so that
// a rank that waits in it is known to have issued it.
#include "interpose/calls/mpi_messages.h"
#include "interpose/real.h"
#include "interpose/recorder.h"

namespace rollcall {
namespace {

template <typename Call>
__attribute__((noinline, noclone)) int RecordUnknown(Op op, const Call& call) {
  ROLLCALL_ENDS_BY_EXCEPTION();
  const InsideCall inside(&this_thread);
  const Blocked blocked(&this_thread, op, nullptr, nullptr, Now());
  const MayThrow may_throw(PlainCall());
  return call();
}

// Records a call on a communicator that is not recorded: only that a thread is inside it.
template <typename Call>
int ObserveUnknown(Op op, MpiWord handle, const Call& call) {
  if (!this_thread.inside && Recording()) return RecordUnknown(op, call);
  NoteNested(this_thread, handle);
  return call();
}

template <typename Call>
__attribute__((noinline, noclone)) int RecordSend(LocalComm* comm, Op op, int to, int tag,
                                                  const Call& call) {
  ROLLCALL_ENDS_BY_EXCEPTION();
  const MessageRecord record(comm, op, Issue(comm, MessageEnd::kSend, to, tag));
  return call();
}

template <typename Call>
int ObserveSend(Op op, int to, int tag, MpiWord handle, Call call) {
  LocalComm* comm = FindMpiComm(&this_thread, handle);
  if (comm == nullptr) return ObserveUnknown(op, handle, call);
  return RecordSend(comm, op, to, tag, call);
}

// `message` has been issued. `request`: nullptr if the call makes none.
template <typename Call>
__attribute__((noinline, noclone)) int RecordIssue(LocalComm* comm, const IssuedMessage& message,
                                                   const IssuedMessage& other,
                                                   const MpiWord* request, const Call& call) {
  ROLLCALL_ENDS_BY_EXCEPTION();
  const MessageRecord record(comm, Op::kNone, message, other);
  const int result = call();
  if (request == nullptr || !record.IsOpen()) return result;
  if (result == 0) {
    RecordMessage(comm, message, HandleAt(request));
  } else {
    EndChoice(message);
  }
  return result;
}

// Records a call that issues a message and does not wait.
template <typename Call>
int ObserveIssue(MessageEnd end, int peer, int tag, MpiWord handle, const MpiWord* request,
                 Call call) {
  LocalComm* comm = FindMpiComm(&this_thread, handle);
  if (comm == nullptr) {
    NoteNested(this_thread, handle);
    return call();
  }
  return RecordIssue(comm, Issue(comm, end, peer, tag), {}, request, call);
}

// `sent`: a send that is made at the same time, or none.
template <typename Call>
__attribute__((noinline, noclone)) int RecordReceive(LocalComm* comm, Op op,
                                                     const IssuedMessage& message,
                                                     const IssuedMessage& sent, void* status,
                                                     const Call& call) {
  ROLLCALL_ENDS_BY_EXCEPTION();
  const MessageRecord record(comm, op, message, sent);
  if (!message.is_open_choice) return call(status);
  StatusOf place(status);
  const int result = call(place.get());
  if (!record.IsOpen()) return result;
  if (result == 0) {
    CountChosen(comm, message, place.get());
  } else {
    EndChoice(message);
  }
  return result;
}

// Records a receive. `call` makes it, with the place for its status.
template <typename Call>
int ObserveReceive(Op op, int from, int tag, MpiWord handle, void* status, Call call) {
  LocalComm* comm = FindMpiComm(&this_thread, handle);
  if (comm == nullptr) return ObserveUnknown(op, handle, [&] { return call(status); });
  return RecordReceive(comm, op, Issue(comm, MessageEnd::kReceive, from, tag), {}, status, call);
}

template <typename Call>
__attribute__((noinline, noclone)) int RecordProbe(LocalComm* comm, int from, int tag, void* status,
                                                   bool takes, const Call& call) {
  ROLLCALL_ENDS_BY_EXCEPTION();
  const MessageRecord record(comm, Op::kMPI_Probe, Probe(comm, from, tag));
  if (!takes) return call(status);
  StatusOf place(status);
  const int result = call(place.get());
  if (result == 0 && record.IsOpen()) CountTaken(comm, place.get());
  return result;
}

// Records a wait for a message that a later receive takes. `takes`: the call takes it itself.
template <typename Call>
int ObserveProbe(int from, int tag, MpiWord handle, void* status, bool takes, Call call) {
  LocalComm* comm = FindMpiComm(&this_thread, handle);
  if (comm == nullptr) {
    return ObserveUnknown(Op::kMPI_Probe, handle, [&] { return call(status); });
  }
  return RecordProbe(comm, from, tag, status, takes, call);
}

// Records a look for a message. `takes`: as in ObserveProbe().
template <typename Call>
__attribute__((noinline, noclone)) int RecordLook(LocalComm* comm, int from, int tag,
                                                  const int* flag, void* status, bool takes,
                                                  const Call& call) {
  ROLLCALL_ENDS_BY_EXCEPTION();
  ThreadState* thread = &this_thread;
  const uint64_t began = Now();
  ClaimedEntry(thread);
  const MessageRecord record(comm, Op::kNone, {});
  StatusOf place(status);
  const int result = call(takes ? place.get() : status);
  if (!record.IsOpen()) return result;
  if (result != 0 || *flag != 0) {
    EndPolls(thread);
    if (takes && result == 0) CountTaken(comm, place.get());
    return result;
  }
  const IssuedMessage message = Probe(comm, from, tag);
  NotePoll(thread, {Op::kMPI_Iprobe, message.entry, began}, comm, 0, &message, 1);
  return result;
}

template <typename Call>
int ObserveLook(int from, int tag, MpiWord handle, const int* flag, void* status, bool takes,
                Call call) {
  LocalComm* comm = FindPolledComm(&this_thread, handle);
  if (comm != nullptr) return RecordLook(comm, from, tag, flag, status, takes, call);
  if (takes) NoteNested(this_thread, handle);
  return call(status);
}

// A send and a receive at once.
template <typename Call>
int ObserveExchange(int to, int send_tag, int from, int recv_tag, MpiWord handle, void* status,
                    Call call) {
  LocalComm* comm = FindMpiComm(&this_thread, handle);
  if (comm == nullptr) {
    return ObserveUnknown(Op::kMPI_Sendrecv, handle, [&] { return call(status); });
  }
  const IssuedMessage sent = Issue(comm, MessageEnd::kSend, to, send_tag);
  const IssuedMessage received = Issue(comm, MessageEnd::kReceive, from, recv_tag);
  return RecordReceive(comm, Op::kMPI_Sendrecv, received, sent, status, call);
}

// A send and a receive that do not block. A wait for them counts as one for the receive.
template <typename Call>
int ObserveOpenExchange(int to, int send_tag, int from, int recv_tag, MpiWord handle,
                        const MpiWord* request, Call call) {
  LocalComm* comm = FindMpiComm(&this_thread, handle);
  if (comm == nullptr) {
    NoteNested(this_thread, handle);
    return call();
  }
  const IssuedMessage sent = Issue(comm, MessageEnd::kSend, to, send_tag);
  const IssuedMessage received = Issue(comm, MessageEnd::kReceive, from, recv_tag);
  return RecordIssue(comm, received, sent, request, call);
}

}  // namespace
}  // namespace rollcall

using rollcall::MessageEnd;
using rollcall::ObserveExchange;
using rollcall::ObserveIssue;
using rollcall::ObserveLook;
using rollcall::ObserveOpenExchange;
using rollcall::ObserveProbe;
using rollcall::ObserveReceive;
using rollcall::ObserveSend;
using rollcall::Op;

#define EXPORT extern "C" ROLLCALL_EXPORT

#define SEND_PARAMETERS(count_type) \
  const void *buffer, count_type count, MpiWord type, int to, int tag, MpiWord comm

// A send that blocks until its other end is issued, unless MPI keeps a copy of the message.
#define BLOCKING_SEND(symbol, op, count_type)                                     \
  EXPORT int ROLLCALL_MPI(symbol)(SEND_PARAMETERS(count_type)) {                  \
    const auto real = ROLLCALL_REAL_MPI(symbol);                                  \
    if (real == nullptr) return rollcall::kMpiFailed;                             \
    return ObserveSend(op, to, tag, comm,                                         \
                       [&] { return real(buffer, count, type, to, tag, comm); }); \
  }
BLOCKING_SEND(MPI_Send, Op::kMPI_Send, int)
BLOCKING_SEND(MPI_Send_c, Op::kMPI_Send, int64_t)
BLOCKING_SEND(MPI_Ssend, Op::kMPI_Ssend, int)
BLOCKING_SEND(MPI_Ssend_c, Op::kMPI_Ssend, int64_t)
BLOCKING_SEND(MPI_Rsend, Op::kMPI_Send, int)
BLOCKING_SEND(MPI_Rsend_c, Op::kMPI_Send, int64_t)

// MPI keeps a copy of the message in the program's buffer.
EXPORT int ROLLCALL_MPI(MPI_Bsend)(SEND_PARAMETERS(int)) {
  const auto real = ROLLCALL_REAL_MPI(MPI_Bsend);
  if (real == nullptr) return rollcall::kMpiFailed;
  return ObserveIssue(MessageEnd::kSend, to, tag, comm, nullptr,
                      [&] { return real(buffer, count, type, to, tag, comm); });
}

EXPORT int ROLLCALL_MPI(MPI_Bsend_c)(SEND_PARAMETERS(int64_t)) {
  const auto real = ROLLCALL_REAL_MPI(MPI_Bsend_c);
  if (real == nullptr) return rollcall::kMpiFailed;
  return ObserveIssue(MessageEnd::kSend, to, tag, comm, nullptr,
                      [&] { return real(buffer, count, type, to, tag, comm); });
}

#define NONBLOCKING_SEND(symbol, count_type)                                                \
  EXPORT int ROLLCALL_MPI(symbol)(SEND_PARAMETERS(count_type), MpiWord * request) {         \
    const auto real = ROLLCALL_REAL_MPI(symbol);                                            \
    if (real == nullptr) return rollcall::kMpiFailed;                                       \
    return ObserveIssue(MessageEnd::kSend, to, tag, comm, request,                          \
                        [&] { return real(buffer, count, type, to, tag, comm, request); }); \
  }
NONBLOCKING_SEND(MPI_Isend, int)
NONBLOCKING_SEND(MPI_Isend_c, int64_t)
NONBLOCKING_SEND(MPI_Issend, int)
NONBLOCKING_SEND(MPI_Issend_c, int64_t)
NONBLOCKING_SEND(MPI_Ibsend, int)
NONBLOCKING_SEND(MPI_Ibsend_c, int64_t)
NONBLOCKING_SEND(MPI_Irsend, int)
NONBLOCKING_SEND(MPI_Irsend_c, int64_t)

EXPORT int ROLLCALL_MPI(MPI_Recv)(void* buffer, int count, MpiWord type, int from, int tag,
                                  MpiWord comm, void* status) {
  const auto real = ROLLCALL_REAL_MPI(MPI_Recv);
  if (real == nullptr) return rollcall::kMpiFailed;
  return ObserveReceive(Op::kMPI_Recv, from, tag, comm, status, [&](void* place) {
    return real(buffer, count, type, from, tag, comm, place);
  });
}

EXPORT int ROLLCALL_MPI(MPI_Recv_c)(void* buffer, int64_t count, MpiWord type, int from, int tag,
                                    MpiWord comm, void* status) {
  const auto real = ROLLCALL_REAL_MPI(MPI_Recv_c);
  if (real == nullptr) return rollcall::kMpiFailed;
  return ObserveReceive(Op::kMPI_Recv, from, tag, comm, status, [&](void* place) {
    return real(buffer, count, type, from, tag, comm, place);
  });
}

EXPORT int ROLLCALL_MPI(MPI_Irecv)(void* buffer, int count, MpiWord type, int from, int tag,
                                   MpiWord comm, MpiWord* request) {
  const auto real = ROLLCALL_REAL_MPI(MPI_Irecv);
  if (real == nullptr) return rollcall::kMpiFailed;
  return ObserveIssue(MessageEnd::kReceive, from, tag, comm, request,
                      [&] { return real(buffer, count, type, from, tag, comm, request); });
}

EXPORT int ROLLCALL_MPI(MPI_Irecv_c)(void* buffer, int64_t count, MpiWord type, int from, int tag,
                                     MpiWord comm, MpiWord* request) {
  const auto real = ROLLCALL_REAL_MPI(MPI_Irecv_c);
  if (real == nullptr) return rollcall::kMpiFailed;
  return ObserveIssue(MessageEnd::kReceive, from, tag, comm, request,
                      [&] { return real(buffer, count, type, from, tag, comm, request); });
}

EXPORT int ROLLCALL_MPI(MPI_Sendrecv)(const void* send, int send_count, MpiWord send_type, int to,
                                      int send_tag, void* recv, int recv_count, MpiWord recv_type,
                                      int from, int recv_tag, MpiWord comm, void* status) {
  const auto real = ROLLCALL_REAL_MPI(MPI_Sendrecv);
  if (real == nullptr) return rollcall::kMpiFailed;
  return ObserveExchange(to, send_tag, from, recv_tag, comm, status, [&](void* place) {
    return real(send, send_count, send_type, to, send_tag, recv, recv_count, recv_type, from,
                recv_tag, comm, place);
  });
}

EXPORT int ROLLCALL_MPI(MPI_Sendrecv_c)(const void* send, int64_t send_count, MpiWord send_type,
                                        int to, int send_tag, void* recv, int64_t recv_count,
                                        MpiWord recv_type, int from, int recv_tag, MpiWord comm,
                                        void* status) {
  const auto real = ROLLCALL_REAL_MPI(MPI_Sendrecv_c);
  if (real == nullptr) return rollcall::kMpiFailed;
  return ObserveExchange(to, send_tag, from, recv_tag, comm, status, [&](void* place) {
    return real(send, send_count, send_type, to, send_tag, recv, recv_count, recv_type, from,
                recv_tag, comm, place);
  });
}

EXPORT int ROLLCALL_MPI(MPI_Sendrecv_replace)(void* buffer, int count, MpiWord type, int to,
                                              int send_tag, int from, int recv_tag, MpiWord comm,
                                              void* status) {
  const auto real = ROLLCALL_REAL_MPI(MPI_Sendrecv_replace);
  if (real == nullptr) return rollcall::kMpiFailed;
  return ObserveExchange(to, send_tag, from, recv_tag, comm, status, [&](void* place) {
    return real(buffer, count, type, to, send_tag, from, recv_tag, comm, place);
  });
}

EXPORT int ROLLCALL_MPI(MPI_Sendrecv_replace_c)(void* buffer, int64_t count, MpiWord type, int to,
                                                int send_tag, int from, int recv_tag, MpiWord comm,
                                                void* status) {
  const auto real = ROLLCALL_REAL_MPI(MPI_Sendrecv_replace_c);
  if (real == nullptr) return rollcall::kMpiFailed;
  return ObserveExchange(to, send_tag, from, recv_tag, comm, status, [&](void* place) {
    return real(buffer, count, type, to, send_tag, from, recv_tag, comm, place);
  });
}

EXPORT int ROLLCALL_MPI(MPI_Probe)(int from, int tag, MpiWord comm, void* status) {
  const auto real = ROLLCALL_REAL_MPI(MPI_Probe);
  if (real == nullptr) return rollcall::kMpiFailed;
  return ObserveProbe(from, tag, comm, status, false,
                      [&](void* place) { return real(from, tag, comm, place); });
}

// Takes the message out of MPI's queue, so that no other receive gets it.
EXPORT int ROLLCALL_MPI(MPI_Mprobe)(int from, int tag, MpiWord comm, MpiWord* message,
                                    void* status) {
  const auto real = ROLLCALL_REAL_MPI(MPI_Mprobe);
  if (real == nullptr) return rollcall::kMpiFailed;
  return ObserveProbe(from, tag, comm, status, true,
                      [&](void* place) { return real(from, tag, comm, message, place); });
}

EXPORT int ROLLCALL_MPI(MPI_Improbe)(int from, int tag, MpiWord comm, int* flag, MpiWord* message,
                                     void* status) {
  const auto real = ROLLCALL_REAL_MPI(MPI_Improbe);
  if (real == nullptr) return rollcall::kMpiFailed;
  return ObserveLook(from, tag, comm, flag, status, true,
                     [&](void* place) { return real(from, tag, comm, flag, message, place); });
}

EXPORT int ROLLCALL_MPI(MPI_Iprobe)(int from, int tag, MpiWord comm, int* flag, void* status) {
  const auto real = ROLLCALL_REAL_MPI(MPI_Iprobe);
  if (real == nullptr) return rollcall::kMpiFailed;
  return ObserveLook(from, tag, comm, flag, status, false,
                     [&](void* place) { return real(from, tag, comm, flag, place); });
}

EXPORT int ROLLCALL_MPI(MPI_Cancel)(MpiWord* request) {
  const auto real = ROLLCALL_REAL_MPI(MPI_Cancel);
  if (real == nullptr) return rollcall::kMpiFailed;
  if (rollcall::Recording() && rollcall::FindMpi()) {
    rollcall::CancelMessage(rollcall::HandleAt(request));
  }
  return real(request);
}

#define OPEN_EXCHANGE(symbol, count_type)                                                       \
  EXPORT int ROLLCALL_MPI(symbol)(const void* send, count_type send_count, MpiWord send_type,   \
                                  int to, int send_tag, void* recv, count_type recv_count,      \
                                  MpiWord recv_type, int from, int recv_tag, MpiWord comm,      \
                                  MpiWord* request) {                                           \
    const auto real = ROLLCALL_REAL_MPI(symbol);                                                \
    if (real == nullptr) return rollcall::kMpiFailed;                                           \
    return ObserveOpenExchange(to, send_tag, from, recv_tag, comm, request, [&] {               \
      return real(send, send_count, send_type, to, send_tag, recv, recv_count, recv_type, from, \
                  recv_tag, comm, request);                                                     \
    });                                                                                         \
  }
OPEN_EXCHANGE(MPI_Isendrecv, int)
OPEN_EXCHANGE(MPI_Isendrecv_c, int64_t)

#define OPEN_REPLACE(symbol, count_type)                                                \
  EXPORT int ROLLCALL_MPI(symbol)(void* buffer, count_type count, MpiWord type, int to, \
                                  int send_tag, int from, int recv_tag, MpiWord comm,   \
                                  MpiWord* request) {                                   \
    const auto real = ROLLCALL_REAL_MPI(symbol);                                        \
    if (real == nullptr) return rollcall::kMpiFailed;                                   \
    return ObserveOpenExchange(to, send_tag, from, recv_tag, comm, request, [&] {       \
      return real(buffer, count, type, to, send_tag, from, recv_tag, comm, request);    \
    });                                                                                 \
  }
OPEN_REPLACE(MPI_Isendrecv_replace, int)
OPEN_REPLACE(MPI_Isendrecv_replace_c, int64_t)
