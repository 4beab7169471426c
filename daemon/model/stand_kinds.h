// SPDX-License-Identifier: Apache-2.0
// How a thread waits outside of recorded calls, by the functions on its stack: wait_frames.def has
// the table. Pure.
#pragma once

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "daemon/model/stack_place.h"
#include "daemon/model/standing.h"

namespace rollcall {

// Whom such a wait is for. kOthers: other processes. kOwn: the process itself, or one that it has
// started. kNobody: it waits for work, or it may go on by itself.
enum class StandFor : uint8_t { kOthers, kOwn, kNobody };

// X(kind, whom it is for, what it waits in, in words)
#define ROLLCALL_STAND_KINDS(X)                                                     \
  X(kUnknown, kOthers, "")                                                          \
  X(kPipe, kOthers, "a pipe")                                                       \
  X(kSocket, kOthers, "a socket")                                                   \
  X(kProcessQueue, kOthers, "a queue of multiprocessing")                           \
  X(kManager, kOthers, "a queue or another object of a manager of multiprocessing") \
  X(kRing, kOthers, "a broadcast queue in shared memory")                           \
  X(kZeroMq, kOthers, "ZeroMQ")                                                     \
  X(kGrpc, kOthers, "gRPC")                                                         \
  X(kMessageQueue, kOthers, "a message queue")                                      \
  X(kFileLock, kOthers, "a file lock")                                              \
  X(kDatabase, kOthers, "a lock of SQLite")                                         \
  X(kSignal, kOthers, "a signal")                                                   \
  X(kJaxBarrier, kOthers, "a barrier of JAX's coordination service")                \
  X(kJaxStart, kOthers, "the start of JAX's coordination service")                  \
  X(kJaxEnd, kOthers, "the shutdown of JAX's coordination service")                 \
  X(kJax, kOthers, "a collective of JAX")                                           \
  X(kRay, kOthers, "Ray")                                                           \
  X(kRayChannel, kOthers, "a channel of Ray")                                       \
  X(kGloo, kOthers, "a collective of gloo")                                         \
  X(kNccl, kOthers, "NCCL")                                                         \
  X(kStore, kOthers, "a store")                                                     \
  X(kMpi, kOthers, "MPI")                                                           \
  X(kMpiWindow, kOthers, "a window of MPI")                                         \
  X(kMpiSpawn, kOthers, "MPI_Comm_spawn")                                           \
  X(kBarrier, kOthers, "a barrier")                                                 \
  X(kDataLoader, kOwn, "a worker of its DataLoader")                                \
  X(kProcessLock, kOwn, "a lock or semaphore of multiprocessing")                   \
  X(kProcessCondition, kOwn, "a condition of multiprocessing")                      \
  X(kPool, kOwn, "a pool of processes")                                             \
  X(kChild, kOwn, "a child process")                                                \
  X(kQueue, kOwn, "a queue of its own threads")                                     \
  X(kCondition, kOwn, "a condition")                                                \
  X(kEvent, kOwn, "an event of its own threads")                                    \
  X(kThread, kOwn, "a thread of its own")                                           \
  X(kLock, kOwn, "a lock")                                                          \
  X(kSemaphore, kOwn, "a lock or a semaphore")                                      \
  X(kFuture, kOwn, "a future")                                                      \
  X(kStorage, kOwn, "a file system that does not answer")                           \
  X(kSleep, kOwn, "sleep")                                                          \
  X(kIdle, kNobody, "work")                                                         \
  X(kPerson, kNobody, "input")                                                      \
  X(kGpu, kNobody, "its GPU")

enum class StandKind : uint8_t {
#define X(kind, whom, words) kind,
  ROLLCALL_STAND_KINDS(X)
#undef X
};

StandFor WhomItIsFor(StandKind kind);
// A library that uses the CPU while it waits.
bool Spins(StandKind kind);
// "a socket"; "": kUnknown.
const char* StandKindInWords(StandKind kind);

struct StandFunction {
  StandKind kind = StandKind::kUnknown;
  std::string name;  // the function of the row, "Queue.get"; "": no row fits
};

// By the row that fits closest to the program; without one, by what is at the other end.
// `state`, `wait_channel`: of the thread, as in /proc.
StandFunction StandsIn(const StackPlace& place, char state = 'S',
                       absl::string_view wait_channel = "");

// Whether such a library may be why the process uses the CPU.
bool WaitsWithTheCpu(const Standing& standing);

}  // namespace rollcall
