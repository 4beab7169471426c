// SPDX-License-Identifier: Apache-2.0
// How a thread waits outside of recorded calls, by the functions on its stack: wait_frames.def has
// the table. Pure.
#pragma once

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "daemon/model/stack_place.h"

namespace rollcall {

// What such a wait is for. kOthers: other processes. kOwn: the process itself, or one that it has
// started. kNobody: it waits for work, or it may go on by itself.
enum class StandFor : uint8_t { kOthers, kOwn, kNobody };

namespace stands {

using Traits = uint8_t;

enum Trait : Traits {
  kNone = 0,
  kSpins = 1 << 0,        // a library that uses the CPU while it waits
  kPolls = 1 << 1,        // a library that asks some hundred times a second
  kAsks = 1 << 2,         // a library that looks every now and then whether the sender lives
  kNoWork = 1 << 3,       // no thread waits for work in it
  kTakesWork = 1 << 4,    // a thread may wait in it for what the threads of a server bring
  kDirected = 1 << 5,     // somebody in particular should answer
  kForChildren = 1 << 6,  // if nothing shows another one, for a process that this one has started
  kMaySpin = 1 << 7,      // its library, or a thread of it, may use the CPU while it waits
};

}  // namespace stands

// X(kind, whom it is for, traits, what it waits in, in words)
#define ROLLCALL_STAND_KINDS(X)                                                            \
  X(kUnknown, kOthers, stands::kNone, "")                                                  \
  X(kPipe, kOthers, stands::kDirected, "a pipe")                                           \
  X(kSocket, kOthers, stands::kDirected, "a socket")                                       \
  X(kProcessQueue, kOthers, stands::kAsks | stands::kDirected | stands::kForChildren,      \
    "a queue of multiprocessing")                                                          \
  X(kManager, kOthers, stands::kDirected,                                                  \
    "a queue or another object of a manager of multiprocessing")                           \
  X(kRing, kOthers, stands::kPolls, "a broadcast queue in shared memory")                  \
  X(kZeroMq, kOthers, stands::kDirected, "ZeroMQ")                                         \
  X(kGrpc, kOthers, stands::kPolls | stands::kNoWork | stands::kDirected, "gRPC")          \
  X(kMessageQueue, kOthers, stands::kDirected, "a message queue")                          \
  X(kFileLock, kOthers, stands::kNoWork, "a file lock")                                    \
  X(kDatabase, kOthers, stands::kNoWork, "a lock of SQLite")                               \
  X(kSignal, kOthers, stands::kNone, "a signal")                                           \
  X(kJaxBarrier, kOthers, stands::kNoWork, "a barrier of JAX's coordination service")      \
  X(kJaxStart, kOthers, stands::kNoWork, "the start of JAX's coordination service")        \
  X(kJaxEnd, kOthers, stands::kNoWork, "the shutdown of JAX's coordination service")       \
  X(kJax, kOthers, stands::kNoWork, "a collective of JAX")                                 \
  X(kRay, kOthers, stands::kAsks | stands::kDirected, "Ray")                               \
  X(kRayChannel, kOthers, stands::kSpins | stands::kAsks, "a channel of Ray")              \
  X(kGloo, kOthers, stands::kNoWork, "a collective of gloo")                               \
  X(kTorch, kOthers, stands::kNoWork, "a collective of torch.distributed")                 \
  X(kTorchOnDevice, kOthers, stands::kNoWork | stands::kMaySpin,                           \
    "a collective of torch.distributed on its device")                                     \
  X(kNccl, kOthers, stands::kNoWork | stands::kMaySpin, "NCCL")                            \
  X(kStore, kOthers, stands::kPolls, "a store")                                            \
  X(kMpi, kOthers, stands::kSpins | stands::kNoWork, "MPI")                                \
  X(kMpiWindow, kOthers, stands::kSpins | stands::kNoWork, "a window of MPI")              \
  X(kMpiSpawn, kOthers, stands::kSpins, "MPI_Comm_spawn")                                  \
  X(kBarrier, kOthers, stands::kNoWork | stands::kForChildren, "a barrier")                \
  X(kDataLoader, kOwn, stands::kAsks | stands::kForChildren, "a worker of its DataLoader") \
  X(kProcessLock, kOwn, stands::kNoWork | stands::kForChildren,                            \
    "a lock or semaphore of multiprocessing")                                              \
  X(kProcessCondition, kOwn, stands::kForChildren, "a condition of multiprocessing")       \
  X(kPool, kOwn, stands::kAsks | stands::kForChildren, "a pool of processes")              \
  X(kChild, kOwn, stands::kNoWork | stands::kForChildren, "a child process")               \
  X(kQueue, kOwn, stands::kTakesWork, "a queue of its own threads")                        \
  X(kCondition, kOwn, stands::kTakesWork, "a condition")                                   \
  X(kEvent, kOwn, stands::kTakesWork, "an event of its own threads")                       \
  X(kThread, kOwn, stands::kNone, "a thread of its own")                                   \
  X(kLock, kOwn, stands::kNoWork, "a lock")                                                \
  X(kSemaphore, kOwn, stands::kNoWork | stands::kForChildren, "a lock or a semaphore")     \
  X(kFuture, kOwn, stands::kTakesWork, "a future")                                         \
  X(kStorage, kOwn, stands::kNoWork, "a file system that does not answer")                 \
  X(kSleep, kOwn, stands::kNone, "sleep")                                                  \
  X(kIdle, kNobody, stands::kAsks, "work")                                                 \
  X(kPerson, kNobody, stands::kNone, "input")                                              \
  X(kGpu, kNobody, stands::kMaySpin, "its GPU")

enum class StandKind : uint8_t {
#define X(kind, whom, traits, words) kind,
  ROLLCALL_STAND_KINDS(X)
#undef X
};

StandFor WhomItIsFor(StandKind kind);
bool HasTrait(StandKind kind, stands::Trait trait);
// "a socket"; empty means kUnknown.
const char* StandKindInWords(StandKind kind);

struct StandFunction {
  StandKind kind = StandKind::kUnknown;
  std::string name;  // the function of the row, "Queue.get"; empty if no row fits
};

// By the row that fits closest to the program; without one, by what is at the other end.
// `wait_channel`: of the thread, as in /proc.
StandFunction StandsIn(const StackPlace& place, absl::string_view wait_channel = "");

// Whether a program of this name, as in /proc, waits for what it has started on other hosts.
bool WaitsForOtherHosts(absl::string_view program);

}  // namespace rollcall
