// SPDX-License-Identifier: Apache-2.0
// A program that calls a stub of UCC, as rank RANK of 4, for tests of the preloaded library. It
// makes a context and a team of all ranks. Its arguments are further steps.
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "interpose/ucc_api.h"

extern "C" void stub_ucc_set_callback(void (*callback)());

namespace {

constexpr uint64_t kInt16 = 1 << 3, kFloat = 11 << 3, kOwnType = 1;
constexpr int kAllReduce = 1 << 2, kBarrier = 1 << 5, kBroadcast = 1 << 6, kReduce = 1 << 11;
constexpr int kMax = 2, kAvg = 12;

uint32_t rank;
void* context;

uint32_t Rank() { return static_cast<uint32_t>(atoi(getenv("RANK"))); }

void MakeContext() {
  UccContextParams params = {};
  params.mask = kUccContextOob;
  params.oob.size = 4;
  params.oob.rank = rank;
  ucc_context_create(nullptr, &params, nullptr, &context);
}

void* MakeTeam(const UccTeamParams& params) {
  void* team = nullptr;
  ucc_team_create_post(&context, 1, &params, &team);
  while (ucc_team_create_test(team) == kUccInProgress) ucc_context_progress(context);
  return team;
}

UccTeamParams OfRank(uint32_t size, uint32_t own) {
  UccTeamParams params = {};
  params.mask = kUccTeamOob;
  params.oob.size = size;
  params.oob.rank = own;
  return params;
}

void* MakeWorld() { return MakeTeam(OfRank(4, rank)); }

// Ranks 0 and 2, or 1 and 3: as an array, or by their distance.
void* MakePart(bool as_array, bool with_id) {
  UccTeamParams params = OfRank(2, rank / 2);
  params.mask |= kUccTeamEpMap;
  const uint32_t numbers[] = {rank % 2, rank % 2 + 2};
  params.ep_map.size = 2;
  if (as_array) {
    params.ep_map.type = kUccMapArray;
    params.ep_map.array = {numbers, sizeof(numbers[0])};
  } else {
    params.ep_map.type = kUccMapStrided;
    params.ep_map.strided = {rank % 2, 2};
  }
  if (with_id) params.mask |= kUccTeamId;
  params.id = 7;
  return MakeTeam(params);
}

// The map has fewer members than the team.
void MakeWithShortMap() {
  UccTeamParams params = OfRank(2, rank / 2);
  params.mask |= kUccTeamEpMap;
  params.ep_map.size = 1;
  params.ep_map.type = kUccMapArray;
  params.ep_map.array = {&rank, sizeof(rank)};
  MakeTeam(params);
}

void ProgressOther() {
  static void* other = nullptr;
  if (other == nullptr) {
    void* const first = context;
    MakeContext();
    other = context;
    context = first;
  }
  ucc_context_progress(other);
}

UccCollArgs Args(int type, uint64_t count, uint64_t datatype) {
  UccCollArgs args = {};
  args.type = type;
  args.source.info = {nullptr, count, datatype, 0};
  args.target.info = {nullptr, count, datatype, 0};
  return args;
}

void Wait(UccRequest* request) {
  while (request->status == kUccInProgress) ucc_context_progress(context);
}

void Run(UccCollArgs args, void* team) {
  UccRequest* request = nullptr;
  ucc_collective_init(&args, &request, team);
  if (ucc_collective_post(request) == kUccOk) Wait(request);
  ucc_collective_finalize(request);
}

void Calls(void* team) {
  UccCollArgs args = Args(kAllReduce, 24, kFloat);
  args.reduction = kAvg;
  Run(args, team);
  args = Args(kBroadcast, 5, kInt16);
  args.root = 2;
  Run(args, team);
  Run(Args(kBarrier, 9, kFloat), team);
  args = Args(kReduce, 6, kFloat);
  args.reduction = kMax;
  (rank == args.root ? args.source : args.target).info.count = 99;  // of no account
  Run(args, team);
  args = Args(kAllReduce, 3, kOwnType);
  Run(args, team);
}

void Messages(void* team) {
  UccCollArgs args = Args(kBroadcast, 5, kFloat);
  args.mask = kUccCollActiveSet;
  Run(args, team);
}

// A call that is done at once, and whose callback makes the next call.
void Callback(void* team) {
  static void* called = team;
  stub_ucc_set_callback([] { Run(Args(kBarrier, 0, kFloat), called); });
  UccCollArgs args = Args(kAllReduce, 8, kFloat);
  args.mask = kUccCollCallback;
  Run(args, team);
  UccRequest* request = nullptr;
  ucc_collective_init_and_post(&args, &request, team);
  ucc_collective_finalize(request);
}

void Persistent(void* team) {
  UccCollArgs args = Args(kAllReduce, 8, kFloat);
  UccRequest* request = nullptr;
  ucc_collective_init(&args, &request, team);
  for (int i = 0; i < 3; ++i) {
    ucc_collective_post(request);
    Wait(request);
  }
  ucc_collective_finalize(request);
}

void Others(void* team) {
  UccCollArgs args = Args(kAllReduce, 8, kFloat);
  UccRequest* request = nullptr;
  ucc_collective_init_and_post(&args, &request, team);
  Wait(request);
  UccEvent event = {0, nullptr, 0, request};
  ucc_collective_triggered_post(nullptr, &event);
  Wait(request);
  ucc_collective_finalize(request);
}

// Two calls, which the program does not test.
void Open(void* team) {
  for (int i = 0; i < 2; ++i) {
    UccCollArgs args = Args(kAllReduce, 8, kFloat);
    UccRequest* request = nullptr;
    ucc_collective_init(&args, &request, team);
    ucc_collective_post(request);
  }
}

#if defined(__x86_64__)
// The second of two calls with one request, which another thread begins while this thread, inside
// ucc_context_progress(), has just read that the first one is done. Signals play the other thread:
// one arrives at the read of the status, and one right after it.
UccRequest* reused;
void* reusing_team;
constexpr size_t kPage = 4096;
constexpr greg_t kTrapFlag = 0x100;

UccRequest* PostReused() {
  UccCollArgs args = Args(kAllReduce, 8, kFloat);
  UccRequest* request = nullptr;
  ucc_collective_init_and_post(&args, &request, reusing_team);
  return request;
}

void LetItRead(int, siginfo_t*, void* context) {
  mprotect(reused, kPage, PROT_READ | PROT_WRITE);
  static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_EFL] |= kTrapFlag;
}

void ReuseIt(int, siginfo_t*, void* context) {
  static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_EFL] &= ~kTrapFlag;
  ucc_collective_finalize(reused);
  PostReused();
}

void Reuse(void* team) {
  struct sigaction action = {};
  action.sa_flags = SA_SIGINFO;
  action.sa_sigaction = LetItRead;
  sigaction(SIGSEGV, &action, nullptr);
  action.sa_sigaction = ReuseIt;
  sigaction(SIGTRAP, &action, nullptr);
  reusing_team = team;
  reused = PostReused();
  reused->status = kUccOk;
  mprotect(reused, kPage, PROT_NONE);
  ucc_context_progress(context);
}
#endif

}  // namespace

int main(int count, char** steps) {
  rank = Rank();
  MakeContext();
  void* team = MakeWorld();
  for (int i = 1; i < count; ++i) {
    const auto is = [&](const char* step) { return strcmp(steps[i], step) == 0; };
    if (is("calls")) Calls(team);
    if (is("messages")) Messages(team);
    if (is("callback")) Callback(team);
    if (is("persistent")) Persistent(team);
    if (is("others")) Others(team);
    if (is("open")) Open(team);
#if defined(__x86_64__)
    if (is("reuse")) Reuse(team);
#endif
    if (is("world")) team = MakeWorld();
    if (is("array")) MakePart(true, false);
    if (is("stride")) MakePart(false, false);
    if (is("id")) MakePart(false, true);
    if (is("unknown")) MakeTeam(OfRank(2, rank / 2));
    if (is("short")) MakeWithShortMap();
    if (is("part")) {
      void* part = nullptr;
      ucc_team_create_from_parent(rank, rank % 2, team, &part);
      while (part != nullptr && ucc_team_create_test(part) == kUccInProgress) {
      }
    }
    if (is("progress")) ucc_context_progress(context);
    if (is("other")) ProgressOther();
    if (is("destroy")) ucc_team_destroy(team);
    if (is("end")) ucc_context_destroy(context);
  }
  _exit(0);
}
