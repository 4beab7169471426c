// SPDX-License-Identifier: Apache-2.0
#include "interpose/old_glibc.h"

#include "interpose/calls/profiler_plugin.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "interpose/calls/profiler_abi.h"
#include "interpose/calls/profiler_records.h"
#include "interpose/keep_cancel.h"
#include "interpose/keep_errno.h"
#include "interpose/keep_loaded.h"
#include "interpose/real.h"
#include "interpose/record/comm_table.h"
#include "interpose/record/creations.h"
#include "interpose/record/handle_table.h"
#include "interpose/record/recording.h"
#include "interpose/recorder.h"
#include "interpose/thread_state.h"

namespace rollcall {
namespace {

using profiler::DetailsAt;
using profiler::Table;
using segment::CommState;

constexpr int kSystemError = 2;  // ncclSystemError: NCCL goes on without a profiler

// The table of another plugin, to which ours forwards.
std::atomic<const Table*> chained[profiler::kVersions + 1];

// A communicator; NCCL passes its address as `context`. Finalize() frees it.
struct Context {
  std::atomic<bool> used;
  LocalComm* comm;  // nullptr: not recorded
  uint64_t generation;
  void* theirs;  // the other plugin's context
  int their_mask;
};
Context contexts[segment::kCommCapacity];

// A group that NCCL reports; NCCL passes its address as `handle`. Reused after kGroupEvents groups.
struct GroupEvent {
  void* theirs;
};
constexpr uint32_t kGroupEvents = 256;
GroupEvent group_events[kGroupEvents];
std::atomic<uint32_t> next_group_event{0};

Context* FindContext(void* context) {
  auto* found = static_cast<Context*>(context);
  return found >= contexts && found < contexts + segment::kCommCapacity ? found : nullptr;
}

GroupEvent* FindGroupEvent(void* handle) {
  auto* found = static_cast<GroupEvent*>(handle);
  return found >= group_events && found < group_events + kGroupEvents ? found : nullptr;
}

Context* ClaimContext() {
  for (Context& context : contexts) {
    bool used = context.used.load(std::memory_order_relaxed);
    if (!used && context.used.compare_exchange_strong(used, true)) return &context;
  }
  return nullptr;
}

// Whether the wrappers record the calls of this NCCL. NCCL calls init() during the creation of a
// communicator, which the wrappers see for a first NCCL in the process, and not for a second one.
bool WrappersRecordIt() {
  bool seen = false;
  ForEachComm([&seen](const LocalComm* comm) {
    seen = seen || (!comm->by_plugin && comm->entry->state.load(std::memory_order_relaxed) ==
                                            static_cast<uint32_t>(CommState::kInitializing));
  });
  return seen;
}

// `hash` is NCCL's hash of the unique id, or of a child's origin. All ranks have the same hash.
LocalComm* NewCommunicator(Context* context, uint64_t hash, const char* name, int ranks, int rank) {
  if (!StartRecording() || this_thread.inside || WrappersRecordIt()) return nullptr;
  NewComm what;
  what.base_id = segment::Mix(segment::kSignatureSeed, hash);
  what.id = segment::Mix(what.base_id, TimesCreated(what.base_id, rank));
  what.rank = rank;
  what.size = ranks;
  what.name = name;
  LocalComm* comm = AddComm(what);
  if (comm == nullptr) return nullptr;
  comm->by_plugin = true;
  context->generation = Get(comm->entry->init_entered);
  BindHandle(comm, context);
  SetState(comm, segment::CommState::kReady);
  return comm;
}

// The events that we request for a communicator that the wrappers do not record.
constexpr int OurMask(int version) {
  if (version >= 5) return profiler::kGroupApi | profiler::kCollApi | profiler::kP2p;
  return version == 4 ? profiler::kColl | profiler::kP2p : 0;
}

template <int version>
void RecordEvent(LocalComm* comm, uint64_t type, void* descriptor) {
  if (type == profiler::kP2p) RecordP2p(comm, DetailsAt<profiler::P2p>(descriptor));
  if (version == 4 && type == profiler::kColl) {
    RecordColl(comm, DetailsAt<profiler::Coll>(descriptor));
  }
  if (type == profiler::kCollApi) RecordCollApi(comm, DetailsAt<profiler::CollApi>(descriptor));
  if (type == profiler::kGroupApi) OpenGroup();
}

bool IsAlive(const Context& context) {
  return context.comm != nullptr && Get(context.comm->entry->init_entered) == context.generation &&
         context.comm->handle.load(std::memory_order_relaxed) == &context;
}

template <int version>
int Start(void* given, void** handle, void* given_descriptor) {
  const Table* other = chained[version].load(std::memory_order_acquire);
  Context* context = FindContext(given);
  if (context == nullptr) {
    return other == nullptr ? 0 : other->start(given, handle, given_descriptor);
  }
  auto* descriptor = static_cast<profiler::Descriptor*>(given_descriptor);
  const uint64_t type = version < 5 ? descriptor->type & 0xff : descriptor->type;
  const bool is_ours = (OurMask(version) & type) != 0 && IsAlive(*context) && Recording();
  void* theirs = nullptr;
  int result = 0;
  if (other != nullptr && (static_cast<uint64_t>(context->their_mask) & type) != 0) {
    void* const parent = descriptor->parent;
    const GroupEvent* group = FindGroupEvent(parent);
    if (group != nullptr) descriptor->parent = group->theirs;
    result = other->start(context->theirs, &theirs, descriptor);
    descriptor->parent = parent;
  }
  *handle = theirs;
  if (!is_ours) return result;
  const KeepErrno keep_errno;
  RecordEvent<version>(context->comm, type, descriptor);
  if (type == profiler::kGroupApi) {
    GroupEvent* group = &group_events[next_group_event.fetch_add(1) % kGroupEvents];
    group->theirs = theirs;
    *handle = group;
  }
  return result;
}

template <int version>
int Stop(void* handle) {
  const Table* other = chained[version].load(std::memory_order_acquire);
  const GroupEvent* group = FindGroupEvent(handle);
  if (group != nullptr) {
    FinishGroup();
    handle = group->theirs;
  }
  return other == nullptr || handle == nullptr ? 0 : other->stop(handle);
}

template <int version>
int RecordState(void* handle, int state, void* arguments) {
  const Table* other = chained[version].load(std::memory_order_acquire);
  const GroupEvent* group = FindGroupEvent(handle);
  if (group != nullptr) {
    if (state == profiler::kGroupEndBegins) BeginGroupEnd();
    handle = group->theirs;
  }
  return other == nullptr || handle == nullptr ? 0 : other->record(handle, state, arguments);
}

template <int version>
int Finalize(void* given) {
  const Table* other = chained[version].load(std::memory_order_acquire);
  Context* context = FindContext(given);
  if (context == nullptr) return other == nullptr ? 0 : other->finalize(given);
  const int result =
      other == nullptr || context->theirs == nullptr ? 0 : other->finalize(context->theirs);
  if (IsAlive(*context)) {
    ForgetHandle(context->comm);
    SetState(context->comm, segment::CommState::kDestroyed);
  }
  context->comm = nullptr;
  context->used.store(false, std::memory_order_release);
  return result;
}

// Calls init() of the other plugin with a context of its own, then adds the events that we request.
// `ours` adds our communicator.
template <int version, typename Theirs, typename Ours>
int InitBoth(void** given, int* mask, Theirs theirs, Ours ours) {
  const KeepErrno keep_errno;
  const Table* other = chained[version].load(std::memory_order_acquire);
  Context* context = ClaimContext();
  if (context == nullptr) return other == nullptr ? kSystemError : theirs(other, given);
  context->theirs = nullptr;
  context->comm = nullptr;
  const int before = *mask;
  const int result = other == nullptr ? 0 : theirs(other, &context->theirs);
  context->their_mask = other == nullptr || result != 0 ? 0 : *mask;
  if (context->their_mask == 0) *mask = before;
  context->comm = ours(context);
  if (context->comm != nullptr) *mask |= OurMask(version);
  *given = context;
  return 0;
}

template <int version>
int InitUpTo3(void** context, int* mask) {
  return InitBoth<version>(
      context, mask,
      [=](const Table* other, void** theirs) {
        return reinterpret_cast<profiler::InitOld>(other->init)(theirs, mask);
      },
      [](Context*) -> LocalComm* { return nullptr; });
}

int InitVersion4(void** context, int* mask, const char* name, uint64_t hash, int nodes, int ranks,
                 int rank, void* log) {
  return InitBoth<4>(
      context, mask,
      [=](const Table* other, void** theirs) {
        return reinterpret_cast<profiler::Init4>(other->init)(theirs, mask, name, hash, nodes,
                                                              ranks, rank, log);
      },
      [=](Context* ours) { return NewCommunicator(ours, hash, name, ranks, rank); });
}

template <int version>
int InitFrom5(void** context, uint64_t hash, int* mask, const char* name, int nodes, int ranks,
              int rank, void* log) {
  return InitBoth<version>(
      context, mask,
      [=](const Table* other, void** theirs) {
        return reinterpret_cast<profiler::Init5>(other->init)(theirs, hash, mask, name, nodes,
                                                              ranks, rank, log);
      },
      [=](Context* ours) { return NewCommunicator(ours, hash, name, ranks, rank); });
}

}  // namespace
}  // namespace rollcall

#define TABLE(version, init)                                                             \
  extern "C" ROLLCALL_EXPORT const rollcall::profiler::Table ncclProfiler_v##version = { \
      "Rollcall",                                                                        \
      reinterpret_cast<void (*)()>(&rollcall::init),                                     \
      &rollcall::Start<version>,                                                         \
      &rollcall::Stop<version>,                                                          \
      &rollcall::RecordState<version>,                                                   \
      &rollcall::Finalize<version>};
TABLE(1, InitUpTo3<1>)
TABLE(2, InitUpTo3<2>)
TABLE(3, InitUpTo3<3>)
TABLE(4, InitVersion4)
TABLE(5, InitFrom5<5>)
TABLE(6, InitFrom5<6>)

namespace rollcall {
namespace {

const Table* const ours[] = {nullptr,          &ncclProfiler_v1, &ncclProfiler_v2, &ncclProfiler_v3,
                             &ncclProfiler_v4, &ncclProfiler_v5, &ncclProfiler_v6};

// The plugin that NCCL uses if the user names none: libnccl-profiler.so, or the one in the network
// plugin.
void* DefaultPlugin() {
  void* library = dlopen("libnccl-profiler.so", RTLD_NOW | RTLD_LOCAL);
  if (library != nullptr) return library;
  const char* network = getenv("NCCL_NET_PLUGIN");
  library = dlopen(network == nullptr ? "libnccl-net.so" : network, RTLD_NOLOAD | RTLD_NOW);
  dlerror();
  return library;
}

bool HasOlder(void* library, int version) {
  char name[] = "ncclProfiler_v0";
  for (int older = version - 1; older >= 1; --older) {
    name[sizeof(name) - 2] = static_cast<char>('0' + older);
    if (RealDlsym()(library, name) != nullptr) return true;
  }
  dlerror();
  return false;
}

bool IsOn() {
  const char* enabled = getenv("ROLLCALL");
  return enabled == nullptr || strcmp(enabled, "0") != 0;
}

// Runs in every process: sets NCCL_PROFILER_PLUGIN to this file, unless it is set.
__attribute__((constructor)) void NamePlugin() {
  const KeepErrno keep_errno;
  if (getenv("NCCL_PROFILER_PLUGIN") != nullptr || !IsOn()) return;
  Dl_info self;
  constexpr size_t kMostNccl = 250;  // NCCL cuts longer names
  if (dladdr(static_cast<const void*>(&ncclProfiler_v6), &self) == 0 || self.dli_fname == nullptr ||
      self.dli_fname[0] != '/' || strlen(self.dli_fname) > kMostNccl) {
    return;
  }
  setenv("NCCL_PROFILER_PLUGIN", self.dli_fname, 0);
}

}  // namespace

void* ProfilerTableFor(const char* name, void* real) {
  const char digit = name[sizeof(kProfilerPrefix) - 1];
  const int version = digit - '0';
  if (version < 1 || version > profiler::kVersions || name[sizeof(kProfilerPrefix)] != '\0') {
    return real;
  }
  const KeepCancel keep_cancel;  // a thread cancelled in the loader would keep the loader's lock
  const bool nothing_to_see = !IsOn() || this_thread.inside || WrappersRecordIt();
  const Table* other = static_cast<const Table*>(real);
  if (real == ours[version]) {  // NCCL has opened our file, and no other plugin
    void* library = DefaultPlugin();
    other = library == nullptr ? nullptr : static_cast<const Table*>(RealDlsym()(library, name));
    // NCCL can use the older table of that plugin.
    if (library != nullptr && other == nullptr && HasOlder(library, version)) return nullptr;
    if (other == real) other = nullptr;
  }
  if (nothing_to_see || (other != nullptr && !KeepLoaded(other))) {
    return other == nullptr ? real : const_cast<Table*>(other);
  }
  chained[version].store(other, std::memory_order_release);
  return const_cast<Table*>(ours[version]);
}

}  // namespace rollcall
