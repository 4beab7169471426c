// SPDX-License-Identifier: Apache-2.0
#include "interpose/old_glibc.h"

#include "interpose/calls/profiler_plugin.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "interpose/calls/profiler_abi.h"
#include "interpose/calls/profiler_network.h"
#include "interpose/calls/profiler_records.h"
#include "interpose/keep_cancel.h"
#include "interpose/keep_errno.h"
#include "interpose/keep_loaded.h"
#include "interpose/real.h"
#include "interpose/record/comm_table.h"
#include "interpose/record/creations.h"
#include "interpose/record/handle_table.h"
#include "interpose/record/network_states.h"
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
// All events that such a plugin has requested for some communicator.
std::atomic<uint64_t> chained_mask{0};
// The events that only we have requested. NCCL has one mask for all communicators.
std::atomic<int> added_mask{0};

// A communicator; NCCL passes its address as `context`. Finalize() frees it.
struct Context {
  std::atomic<bool> used;
  LocalComm* comm;  // whose calls the plugin records, or nullptr
  uint64_t generation;
  // The communicator whose transfers over the network the plugin records, or nullptr. The wrappers
  // may record its calls.
  std::atomic<LocalComm*> network;
  uint64_t network_generation;
  int rank;
  int pid;       // of this process
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

// The handle of each send or receive that the other plugin has no handle for. It distinguishes
// transfers of sends and receives from those of collectives.
char p2p_event;

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

bool IsTaken(const LocalComm* comm) {
  for (const Context& context : contexts) {
    if (context.network.load(std::memory_order_acquire) == comm &&
        context.network_generation == Generation(comm)) {
      return true;
    }
  }
  return false;
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

// Chooses the communicator whose transfers the events of this context are. Returns the events to
// request.
int StartNetwork(Context* context, int version, int ranks, int rank) {
  if (!RecordsNetwork(version) || ranks < 2) return 0;
  if ((static_cast<uint64_t>(context->their_mask) & kNetworkEvents) != 0) return 0;
  LocalComm* comm = context->comm;
  if (comm == nullptr) comm = CommBeingCreated(rank, ranks, &IsTaken);
  if (comm == nullptr || !MakeNetworkRoom()) return 0;
  context->rank = rank;
  context->pid = static_cast<int>(getpid());
  context->network_generation = Generation(comm);
  context->network.store(comm, std::memory_order_release);
  return kRequestedNetworkEvents;
}

// A transfer that NCCL drives for another process (PXN) has a context of that process, which may be
// the address of one of ours.
void* StartOwnTransfer(const Context& context, const profiler::Descriptor* descriptor) {
  const auto& transfer = DetailsAt<profiler::ProxyOp>(descriptor);
  const LocalComm* comm = context.network.load(std::memory_order_acquire);
  if (comm == nullptr || transfer.pid != context.pid || descriptor->rank != context.rank ||
      Generation(comm) != context.network_generation) {
    return nullptr;
  }
  return StartTransfer(comm, context.network_generation, transfer,
                       descriptor->parent == &p2p_event);
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

// The parent as the other plugin sees it.
void* TheirParent(void* parent) {
  if (parent == &p2p_event) return nullptr;
  const GroupEvent* group = FindGroupEvent(parent);
  return group == nullptr ? parent : group->theirs;
}

// `context`: the other plugin's. Returns its handle in `*handle`.
int StartTheirs(const Table* other, void* context, void** handle,
                profiler::Descriptor* descriptor) {
  void* const parent = descriptor->parent;
  descriptor->parent = TheirParent(parent);
  const int result = other->start(context, handle, descriptor);
  descriptor->parent = parent;
  return result;
}

// `*handle` is the other plugin's handle, or nullptr.
template <int version>
void StartOurs(const Context& context, uint64_t type, void** handle,
               profiler::Descriptor* descriptor) {
  const bool is_free = *handle == nullptr && Recording() &&
                       context.network.load(std::memory_order_acquire) != nullptr;
  if (is_free && type == profiler::kProxyOp) *handle = StartOwnTransfer(context, descriptor);
  if (is_free && type == profiler::kP2p) *handle = &p2p_event;
  if ((OurMask(version) & type) == 0 || !IsAlive(context) || !Recording()) return;
  const KeepErrno keep_errno;
  RecordEvent<version>(context.comm, type, descriptor);
  if (type != profiler::kGroupApi) return;
  GroupEvent* group = &group_events[next_group_event.fetch_add(1) % kGroupEvents];
  group->theirs = *handle;
  *handle = group;
}

template <int version>
int Start(void* given, void** handle, void* given_descriptor) {
  auto* descriptor = static_cast<profiler::Descriptor*>(given_descriptor);
  const uint64_t type = version < 5 ? descriptor->type & 0xff : descriptor->type;
  if (type == profiler::kProxyStep) {  // the most frequent event
    *handle = StartNetworkStep(descriptor->parent, DetailsAt<profiler::ProxyStep>(descriptor));
    if (*handle != nullptr) return 0;
  }
  *handle = nullptr;
  const Table* other = chained[version].load(std::memory_order_acquire);
  const Context* context = FindContext(given);
  const uint64_t their_mask = context == nullptr ? chained_mask.load(std::memory_order_relaxed)
                                                 : static_cast<uint64_t>(context->their_mask);
  int result = 0;
  if (other != nullptr && (their_mask & type) != 0) {
    result = StartTheirs(other, context == nullptr ? given : context->theirs, handle, descriptor);
  }
  if (context != nullptr) StartOurs<version>(*context, type, handle, descriptor);
  return result;
}

template <int version>
int Stop(void* handle) {
  if (StopNetworkEvent(handle) || handle == &p2p_event) return 0;
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
  if (RecordNetworkState(handle, state) || handle == &p2p_event) return 0;
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
  const LocalComm* network = context->network.exchange(nullptr);
  if (network != nullptr) ForgetTransfers(network->index, context->network_generation);
  context->comm = nullptr;
  context->used.store(false, std::memory_order_release);
  return result;
}

// NCCL has one mask for all communicators, and other threads use it now: without another plugin our
// events stay in it. Such a plugin may set the mask for its first communicator only, and finds
// there what it has set.
template <typename Init>
void InitTheirs(Context* context, int* mask, Init init) {
  const int added = added_mask.load(std::memory_order_relaxed) & *mask;
  const int before = *mask &= ~added;
  const int result = init();
  context->their_mask = result != 0 ? 0 : *mask;
  if (context->their_mask == 0) *mask = before;
  *mask |= added;
  chained_mask.fetch_or(static_cast<uint64_t>(context->their_mask));
}

// Calls init() of the other plugin with a context of its own, then adds the events that we request.
// `ours` adds our communicator. `rank` and `ranks` are -1 if NCCL does not report them.
template <int version, typename Theirs, typename Ours>
int InitBoth(void** given, int* mask, int ranks, int rank, Theirs theirs, Ours ours) {
  const KeepErrno keep_errno;
  const Table* other = chained[version].load(std::memory_order_acquire);
  Context* context = ClaimContext();
  if (context == nullptr) {
    if (other == nullptr) return kSystemError;
    const int added = added_mask.load(std::memory_order_relaxed) & *mask;
    *mask &= ~added;
    const int result = theirs(other, given);
    chained_mask.fetch_or(static_cast<uint64_t>(*mask));
    *mask |= added;
    return result;
  }
  context->theirs = nullptr;
  context->comm = nullptr;
  context->network.store(nullptr, std::memory_order_relaxed);
  context->their_mask = 0;
  if (other != nullptr) InitTheirs(context, mask, [&] { return theirs(other, &context->theirs); });
  context->comm = ours(context);
  const int calls = context->comm != nullptr ? OurMask(version) : 0;
  const int wanted = calls | StartNetwork(context, version, ranks, rank);
  added_mask.fetch_or(wanted & ~*mask);
  *mask |= wanted;
  *given = context;
  return 0;
}

template <int version>
int InitUpTo3(void** context, int* mask) {
  return InitBoth<version>(
      context, mask, -1, -1,
      [=](const Table* other, void** theirs) {
        return reinterpret_cast<profiler::InitOld>(other->init)(theirs, mask);
      },
      [](Context*) -> LocalComm* { return nullptr; });
}

int InitVersion4(void** context, int* mask, const char* name, uint64_t hash, int nodes, int ranks,
                 int rank, void* log) {
  return InitBoth<4>(
      context, mask, ranks, rank,
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
      context, mask, ranks, rank,
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
  const bool calls_are_seen = this_thread.inside || WrappersRecordIt();
  const bool nothing_to_see = !IsOn() || (calls_are_seen && !RecordsNetwork(version));
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
