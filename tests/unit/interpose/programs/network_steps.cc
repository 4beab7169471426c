// SPDX-License-Identifier: Apache-2.0
// Plays NCCL for its profiler plugin, for tests of the preloaded library. The arguments are its
// steps (steps.h); "!" before a step says that it must fail. It opens the plugin as NCCL does: the
// library that NCCL_PROFILER_PLUGIN names.
//
// A communicator, an operation and its parent are current from their start on. A step of an
// operation has a number, and its event the number modulo 8, as in NCCL.
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "interpose/calls/profiler_abi.h"
#include "interpose/nccl_api.h"
#include "tests/unit/interpose/programs/steps.h"

namespace profiler = rollcall::profiler;

namespace {

using Action = std::function<int(const Numbers&)>;

constexpr int kSteps = 8;

// An event that a plugin has given a handle, or none.
struct Operation {
  void* handle = nullptr;
  void* steps[kSteps] = {};
};

const profiler::Table* table = nullptr;
int version = 0;
int mask = 0;
std::vector<void*> contexts;
size_t context = 0;
int own_rank = 0;
int wrong_by = 0;  // added to the rank that NCCL says during a wrapped creation
std::vector<Operation> operations;
size_t operation = 0;
void* parent = nullptr;
ncclComm_t comm = nullptr;

Operation& Current() { return operations.at(operation); }

int Load(const Numbers& n) {
  version = At(n, 0, 6);
  void* library = dlopen(getenv("NCCL_PROFILER_PLUGIN"), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return 1;
  const std::string name = "ncclProfiler_v" + std::to_string(version);
  table = static_cast<const profiler::Table*>(dlsym(library, name.c_str()));
  return table == nullptr ? 1 : 0;
}

// Size, rank, hash.
int Init(const Numbers& n) {
  const int size = At(n, 0, 4), rank = At(n, 1, 0);
  const auto hash = static_cast<uint64_t>(At(n, 2, 1));
  void* made = nullptr;
  int result = 0;
  if (version >= 5) {
    result = reinterpret_cast<profiler::Init5>(table->init)(&made, hash, &mask, "dp", 2, size, rank,
                                                            nullptr);
  } else if (version == 4) {
    result = reinterpret_cast<profiler::Init4>(table->init)(&made, &mask, "dp", hash, 2, size, rank,
                                                            nullptr);
  } else {
    result = reinterpret_cast<profiler::InitOld>(table->init)(&made, &mask);
  }
  contexts.push_back(made);
  context = contexts.size() - 1;
  own_rank = rank;
  return result;
}

// By a call of NCCL, during which the stub calls init().
int InitWrapped(const Numbers& n) {
  ncclUniqueId id;
  if (ncclGetUniqueId(&id) != ncclSuccess) return 1;
  return ncclCommInitRank(&comm, At(n, 0, 4), id, At(n, 1, 0));
}

int InitAllWrapped(const Numbers& n) {
  std::vector<ncclComm_t> comms(static_cast<size_t>(At(n, 0, 2)));
  return ncclCommInitAll(comms.data(), At(n, 0, 2), nullptr);
}

int Split(const Numbers&) {
  ncclComm_t child = nullptr;
  return ncclCommSplit(comm, 0, 0, &child, nullptr);
}

struct Event {
  alignas(8) char bytes[192] = {};

  Event(uint64_t type, void* its_parent, int rank) {
    auto* head = reinterpret_cast<profiler::Descriptor*>(bytes);
    head->type = version < 5 ? 0xabababab00 | type : type;
    head->parent = its_parent;
    head->rank = rank;
  }
};

int StartParent(uint64_t type) {
  Event event(type, nullptr, own_rank);
  if (type == profiler::kColl) {
    profiler::DetailsAt<profiler::Coll>(event.bytes) = {0, "AllReduce", nullptr,      nullptr,
                                                        8, 0,           "ncclFloat32"};
  } else {
    profiler::DetailsAt<profiler::P2p>(event.bytes) = {"Send", nullptr, "ncclFloat32", 8, 1};
  }
  return table->start(contexts[context], &parent, event.bytes);
}

// Channel, peer, sends; 1: for another process; rank.
int StartOperation(const Numbers& n) {
  Event event(profiler::kProxyOp, parent, At(n, 4, own_rank));
  profiler::DetailsAt<profiler::ProxyOp>(event.bytes) = {static_cast<int>(getpid()) + At(n, 3, 0),
                                                         static_cast<uint8_t>(At(n, 0, 0)),
                                                         At(n, 1, 1),
                                                         16,
                                                         1 << 17,
                                                         At(n, 2, 1)};
  operations.emplace_back();
  operation = operations.size() - 1;
  Current().handle = &version;  // a plugin that does not set it has NCCL keep an old one
  return table->start(contexts[context], &Current().handle, event.bytes);
}

int Begin(const Numbers& n) {
  Event event(profiler::kProxyStep, Current().handle, own_rank);
  profiler::DetailsAt<profiler::ProxyStep>(event.bytes).step = At(n, 0, 0);
  return table->start(contexts[context], &Current().steps[At(n, 0, 0) % kSteps], event.bytes);
}

// Step, state. As NCCL, only for an operation and a step with a handle.
int Record(const Numbers& n) {
  void* step = Current().steps[At(n, 0, 0) % kSteps];
  if (Current().handle == nullptr || step == nullptr) return 0;
  return table->record(step, At(n, 1, 0), nullptr);
}

int End(const Numbers& n) {
  void*& step = Current().steps[At(n, 0, 0) % kSteps];
  if (step == nullptr) return 0;
  void* const handle = step;
  step = nullptr;
  return table->stop(handle);
}

int EndOperation(const Numbers&) {
  return Current().handle == nullptr ? 0 : table->stop(Current().handle);
}

// Operations, each with another peer, and a step of each that waits.
int Many(const Numbers& n) {
  for (int i = 0; i < At(n, 0, 0); ++i) {
    if (StartOperation({0, i, 1}) != 0 || Begin({0}) != 0 || Record({0, 8}) != 0) return 1;
  }
  return 0;
}

int Finalize(const Numbers&) { return table->finalize(contexts[context]); }

const std::map<std::string, Action> kActions = {
    {"load", Load},
    {"init", Init},
    {"wrapped", InitWrapped},
    {"wrapped_all", InitAllWrapped},
    {"split", Split},
    {"wrong_by", [](const Numbers& n) { return (wrong_by = At(n, 0, 1)) * 0; }},
    {"on", [](const Numbers& n) { return static_cast<int>((context = At(n, 0, 0)) * 0); }},
    {"asks_for", [](const Numbers& n) { return (mask & 24) == At(n, 0, 24) ? 0 : 1; }},
    {"coll", [](const Numbers&) { return StartParent(profiler::kColl); }},
    {"p2p", [](const Numbers&) { return StartParent(profiler::kP2p); }},
    {"end_parent", [](const Numbers&) { return parent == nullptr ? 0 : table->stop(parent); }},
    {"op", StartOperation},
    {"op_has_handle", [](const Numbers&) { return Current().handle == nullptr ? 1 : 0; }},
    {"on_op", [](const Numbers& n) { return static_cast<int>((operation = At(n, 0, 0)) * 0); }},
    {"begin", Begin},
    {"state", Record},
    {"end", End},
    {"end_op", EndOperation},
    {"many", Many},
    {"finalize", Finalize},
    {"destroy", [](const Numbers&) -> int { return ncclCommDestroy(comm); }},
};

}  // namespace

extern "C" void stub_created(int rank, int size) {
  if (table == nullptr) Load({version == 0 ? 6 : version});
  Init({size, rank + wrong_by});
}

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const bool must_fail = argv[i][0] == '!';
    const Step step = ReadStep(argv[i] + (must_fail ? 1 : 0));
    const auto action = kActions.find(step.word);
    if (action == kActions.end() || (action->second(step.numbers) != 0) != must_fail) {
      fprintf(stderr, "step %d: %s\n", i, argv[i]);
      return 1;
    }
  }
  return 0;
}
