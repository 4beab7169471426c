// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/nccl/profiler.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <iterator>
#include <mutex>
#include <string>
#include <utility>

#include "interpose/calls/profiler_abi.h"
#include "tests/sim/made_once.h"

namespace rollcall::sim {
namespace {

using profiler::DetailsAt;
using profiler::Table;

struct Plugin {
  const Table* table = nullptr;
  int version = 0;
  int mask = 0;
};

// A descriptor, whatever it holds; version 4 has its type in one byte.
struct Event {
  alignas(8) char bytes[192] = {};

  Event(const Plugin& plugin, uint64_t type, void* parent, int rank) {
    auto* head = reinterpret_cast<profiler::Descriptor*>(bytes);
    head->type = plugin.version < 5 ? 0xabababab00 | type : type;
    head->parent = parent;
    head->rank = rank;
  }
};

const Table* FindTable(void* library, int version) {
  return static_cast<const Table*>(
      dlsym(library, ("ncclProfiler_v" + std::to_string(version)).c_str()));
}

void* OpenNamed(const char* name) {
  void* library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (library != nullptr || strchr(name, '/') != nullptr) return library;
  return dlopen(("libnccl-profiler-" + std::string(name) + ".so").c_str(), RTLD_NOW | RTLD_LOCAL);
}

Plugin Load() {
  Plugin plugin;
  const char* name = getenv("NCCL_PROFILER_PLUGIN");
  if (name != nullptr && strcasecmp(name, "none") == 0) return plugin;
  void* library = OpenNamed(name == nullptr ? "libnccl-profiler.so" : name);
  if (library == nullptr) return plugin;
  const char* newest = getenv("ROLLCALL_SIM_PROFILER");
  for (int version = newest == nullptr ? 6 : atoi(newest); version >= 1; --version) {
    plugin.table = FindTable(library, version);
    plugin.version = version;
    if (plugin.table != nullptr) break;
  }
  return plugin;
}

Plugin* LoadPlugin() { return new Plugin(Load()); }

Plugin& ThePlugin() { return MadeOnce<Plugin, &LoadPlugin>(); }

const char* FunctionName(Function function) {
  switch (function) {
    case Function::kAllReduce:
      return "AllReduce";
    case Function::kAllGather:
      return "AllGather";
    case Function::kReduceScatter:
      return "ReduceScatter";
    case Function::kReduce:
      return "Reduce";
    case Function::kBroadcast:
      return "Broadcast";
    case Function::kAlltoAll:
      return "AlltoAll";
    case Function::kGather:
      return "Gather";
    case Function::kScatter:
      return "Scatter";
    case Function::kSend:
      return "Send";
    case Function::kRecv:
      return "Recv";
  }
  return "Unknown";
}

const char* DtypeName(ncclDataType_t type) {
  static const char* const kNames[] = {"ncclInt8",    "ncclUint8",   "ncclInt32",   "ncclUint32",
                                       "ncclInt64",   "ncclUint64",  "ncclFloat16", "ncclFloat32",
                                       "ncclFloat64", "ncclBfloat16"};
  return type < 10 ? kNames[type] : "Unknown";
}

uint64_t ParseHash(const std::string& name) { return std::stoull(name.substr(0, 15), nullptr, 16); }

// The group of calls that this thread has open.
struct OpenGroup {
  void* handle = nullptr;
  bool begun = false;
};
thread_local OpenGroup group;

void Begin(const Comm& comm, Event* event, void** handle) {
  ThePlugin().table->start(comm.profiler_context, handle, event->bytes);
}

bool Wants(const Comm& comm, uint64_t types) {
  return comm.profiler_context != nullptr && (static_cast<uint64_t>(ThePlugin().mask) & types) != 0;
}

void Stop(void* handle) {
  if (handle != nullptr) ThePlugin().table->stop(handle);
}

// Like NCCL, sends the events that are parents of a requested one, too.
constexpr uint64_t kTransfers = profiler::kProxyOp | profiler::kProxyStep;

void LaunchP2p(const Comm& comm, Call& call) {
  Event event(ThePlugin(), profiler::kP2p, group.handle, comm.rank);
  DetailsAt<profiler::P2p>(event.bytes) = {FunctionName(call.function), call.recv,
                                           DtypeName(call.dtype), call.count, call.root};
  Begin(comm, &event, &call.task);
  Stop(call.task);
}

void LaunchCollective(const Comm& comm, Call& call) {
  Event event(ThePlugin(), profiler::kColl, group.handle, comm.rank);
  DetailsAt<profiler::Coll>(event.bytes) = {
      0,         FunctionName(call.function), call.send, call.recv, call.count,
      call.root, DtypeName(call.dtype)};
  Begin(comm, &event, &call.task);
  Stop(call.task);
}

}  // namespace

void ProfilerInit(Comm* comm) {
  Plugin& plugin = ThePlugin();
  if (plugin.table == nullptr) return;
  const uint64_t hash = ParseHash(comm->name);
  int result = 0;
  if (plugin.version >= 5) {
    result = reinterpret_cast<profiler::Init5>(plugin.table->init)(
        &comm->profiler_context, hash, &plugin.mask, nullptr, 1, comm->nranks, comm->rank, nullptr);
  } else if (plugin.version == 4) {
    result = reinterpret_cast<profiler::Init4>(plugin.table->init)(
        &comm->profiler_context, &plugin.mask, nullptr, hash, 1, comm->nranks, comm->rank, nullptr);
  } else {
    result = reinterpret_cast<profiler::InitOld>(plugin.table->init)(&comm->profiler_context,
                                                                     &plugin.mask);
  }
  if (result != 0) comm->profiler_context = nullptr;
}

void ProfilerFinalize(Comm* comm) {
  if (comm->profiler_context == nullptr) return;
  ThePlugin().table->finalize(comm->profiler_context);
  comm->profiler_context = nullptr;
}

void ProfileCall(const Comm& comm, const Call& call, void* stream, bool captured) {
  constexpr uint64_t kCalls =
      profiler::kGroupApi | profiler::kCollApi | profiler::kP2pApi | kTransfers;
  if (ThePlugin().version < 5 || !Wants(comm, kCalls | profiler::kP2p)) return;
  if (!group.begun) {
    Event event(ThePlugin(), profiler::kGroupApi, nullptr, comm.rank);
    group.begun = true;
    Begin(comm, &event, &group.handle);
  }
  if (call.is_p2p() || !Wants(comm, profiler::kCollApi | kTransfers)) return;
  Event event(ThePlugin(), profiler::kCollApi, group.handle, comm.rank);
  DetailsAt<profiler::CollApi>(event.bytes) = {
      FunctionName(call.function), call.count, DtypeName(call.dtype), call.root, stream, captured};
  void* handle = nullptr;
  Begin(comm, &event, &handle);
  Stop(handle);
}

void ProfileGroupEnd() {
  if (group.handle != nullptr) {
    ThePlugin().table->record(group.handle, profiler::kGroupEndBegins, nullptr);
  }
}

void ProfileLaunch(const Comm& comm, std::vector<Call>* calls) {
  for (Call& call : *calls) {
    if (call.is_p2p() && Wants(comm, profiler::kP2p | kTransfers)) LaunchP2p(comm, call);
    if (!call.is_p2p() && Wants(comm, profiler::kColl | kTransfers)) LaunchCollective(comm, call);
  }
}

ProfiledTransfer::ProfiledTransfer(const Comm& comm, const Call& call, const TransferFacts& facts)
    : comm_(comm) {
  if (!Wants(comm, kTransfers) || facts.steps == 0) return;
  Event event(ThePlugin(), profiler::kProxyOp, call.task, comm.rank);
  DetailsAt<profiler::ProxyOp>(event.bytes) = {static_cast<int>(getpid()),
                                               static_cast<uint8_t>(facts.channel),
                                               facts.peer,
                                               facts.steps,
                                               1 << 17,
                                               facts.sends ? 1 : 0};
  Begin(comm, &event, &handle_);
}

void ProfiledTransfer::BeginStep(uint64_t step) {
  if (!Wants(comm_, profiler::kProxyStep)) return;
  Event event(ThePlugin(), profiler::kProxyStep, handle_, comm_.rank);
  DetailsAt<profiler::ProxyStep>(event.bytes).step = static_cast<int>(step);
  Begin(comm_, &event, &steps_[step % std::size(steps_)]);
}

void ProfiledTransfer::Record(uint64_t step, int state) {
  void* handle = steps_[step % std::size(steps_)];
  if (handle_ != nullptr && handle != nullptr) ThePlugin().table->record(handle, state, nullptr);
}

void ProfiledTransfer::EndStep(uint64_t step) {
  sim::Stop(std::exchange(steps_[step % std::size(steps_)], nullptr));
}

void ProfiledTransfer::Stop() { sim::Stop(std::exchange(handle_, nullptr)); }

void ProfileGroupEnded() {
  Stop(group.handle);
  group = {};
}

}  // namespace rollcall::sim
