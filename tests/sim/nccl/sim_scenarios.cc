// SPDX-License-Identifier: Apache-2.0
// A rank that uses the simulated NCCL rightly or wrongly, in the way that its
// first argument names. sim_nccl_test starts several and reads what they say:
//
//   up              its communicator is there
//   returned        the call under test has returned
//   right, wrong    its stream came to an end, and the data is so
//
// A rank that hangs says nothing more, and is killed. Any call that fails where
// it should not ends the program with 1.
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>

#include <algorithm>
#include <fstream>
#include <thread>
#include <vector>

#include "tests/support/job.h"

namespace {

constexpr size_t kCount = 1000;
constexpr size_t kLong = 600'011;  // several rounds, and no multiple of anything

struct Rank {
  const int rank = JobRank();
  const int size = JobSize();
  ncclComm_t comm = nullptr;
  cudaStream_t stream = nullptr;
  DeviceBuffer<float> send{kLong}, recv{kLong};

  bool first() const { return rank == 0; }
  int next() const { return (rank + 1) % size; }
  int previous() const { return (rank + size - 1) % size; }
};

void Say(const char* word) {
  printf("%s\n", word);
  fflush(stdout);
}

void Expect(bool condition, const char* what) {
  if (condition) return;
  fprintf(stderr, "rank %d: not so: %s\n", JobRank(), what);
  exit(1);
}

void ExpectResult(ncclResult_t result, ncclResult_t expected, const char* what) {
  if (result == expected) return;
  fprintf(stderr, "rank %d: %s: %s\n", JobRank(), what, ncclGetErrorString(result));
  exit(1);
}

void Fill(float* device, size_t count, float value) {
  const std::vector<float> host(count, value);
  CHECK_CUDA(cudaMemcpy(device, host.data(), count * sizeof(float), cudaMemcpyHostToDevice));
}

bool Holds(const float* device, size_t count, float value) {
  std::vector<float> host(count);
  CHECK_CUDA(cudaMemcpy(host.data(), device, count * sizeof(float), cudaMemcpyDeviceToHost));
  return std::all_of(host.begin(), host.end(), [value](float found) { return found == value; });
}

// What the sum of send buffers is that hold 1, 2, ... size.
float SumOver(int size) { return static_cast<float>(size) * static_cast<float>(size + 1) / 2; }

void AllReduce(Rank& r, size_t count = kCount, ncclRedOp_t op = ncclSum) {
  CHECK_NCCL(ncclAllReduce(r.send.data(), r.recv.data(), count, ncclFloat, op, r.comm, r.stream));
}
void Broadcast(Rank& r, int root) {
  CHECK_NCCL(
      ncclBroadcast(r.send.data(), r.recv.data(), kCount, ncclFloat, root, r.comm, r.stream));
}
void Send(Rank& r, int peer, size_t count = kCount, size_t at = 0) {
  CHECK_NCCL(ncclSend(r.send.data() + at, count, ncclFloat, peer, r.comm, r.stream));
}
void Recv(Rank& r, int peer, size_t count = kCount, size_t at = 0) {
  CHECK_NCCL(ncclRecv(r.recv.data() + at, count, ncclFloat, peer, r.comm, r.stream));
}

// Waits for the stream and says what `count` elements of the result are.
void Finish(Rank& r, float expected, size_t count = kCount) {
  Say("returned");
  CHECK_CUDA(cudaStreamSynchronize(r.stream));
  Say(Holds(r.recv.data(), count, expected) ? "right" : "wrong");
}
void FinishSum(Rank& r, size_t count = kCount) { Finish(r, SumOver(r.size), count); }

void InitRank(Rank& r) {
  CHECK_NCCL(ncclCommInitRank(&r.comm, r.size, ShareUniqueId(), r.rank));
  Say("up");
}

// Ends at once without a word to NCCL, as if all were well.
[[noreturn]] void Leave() {
  Say("right");
  exit(0);
}

void Healthy(Rank& r) {
  AllReduce(r);
  FinishSum(r);
}

void ManyRounds(Rank& r) {
  AllReduce(r, kLong);
  FinishSum(r, kLong);
}

void DifferentFunctions(Rank& r) {
  if (r.first()) {
    Broadcast(r, 0);
  } else {
    AllReduce(r);
  }
  FinishSum(r);
}

void DifferentBytes(Rank& r) {
  AllReduce(r, r.first() ? kCount / 2 : kCount);
  FinishSum(r);
}

void DifferentTypes(Rank& r) {
  CHECK_NCCL(ncclAllReduce(r.send.data(), r.recv.data(), kCount, r.first() ? ncclInt32 : ncclFloat,
                           ncclSum, r.comm, r.stream));
  FinishSum(r);
}

void DifferentReductions(Rank& r) {
  AllReduce(r, kCount, r.first() ? ncclMax : ncclSum);
  FinishSum(r);
}

void DifferentRoots(Rank& r) {
  Broadcast(r, r.first() ? 0 : 1);
  Finish(r, 2);
}

void DifferentOrder(Rank& r) {
  for (const bool broadcasts : {r.first(), !r.first()}) {
    if (broadcasts) {
      Broadcast(r, 1);
    } else {
      AllReduce(r);
    }
  }
  Finish(r, 2);
}

void FirstRankLeaves(Rank& r) {
  if (r.first()) Leave();
  Healthy(r);
}

void FirstRankIsKilled(Rank& r) {
  if (r.first()) {
    Say("right");
    kill(getpid(), SIGKILL);
  }
  Healthy(r);
}

void NothingToReduceOnFirstRank(Rank& r) {
  if (r.first()) {
    AllReduce(r, 0);
    CHECK_CUDA(cudaStreamSynchronize(r.stream));
    Leave();
  }
  Healthy(r);
}

void FirstRankInitializesLater(Rank& r) {
  const ncclUniqueId id = ShareUniqueId();
  if (r.first()) Leave();
  CHECK_NCCL(ncclCommInitRank(&r.comm, r.size, id, r.rank));
  Say("up");
}

void CrossingSends(Rank& r) {
  const int peer = 1 - r.rank;
  Send(r, peer);
  Recv(r, peer);
  Finish(r, static_cast<float>(peer + 1));
}

void GroupedCrossingSends(Rank& r) {
  CHECK_NCCL(ncclGroupStart());
  Send(r, r.next(), kLong);
  Recv(r, r.previous(), kLong);
  CHECK_NCCL(ncclGroupEnd());
  Finish(r, static_cast<float>(r.previous() + 1), kLong);
}

void SendsOfDifferentBytes(Rank& r) {
  if (r.first()) {
    Send(r, 1, kCount / 2);
  } else {
    Recv(r, 0);
  }
  Finish(r, 1);
}

void SendNobodyReceives(Rank& r) {
  if (!r.first()) Leave();
  Send(r, 1);
  Finish(r, 0);
}

// Two messages to the same peer, outside a group: the first is received first.
void SendsStayInOrder(Rank& r) {
  Fill(r.send.data() + kCount, kCount, 7);
  for (const size_t at : {size_t{0}, kCount}) {
    if (r.first()) {
      Send(r, 1, kCount, at);
    } else {
      Recv(r, 0, kCount, at);
    }
  }
  Say("returned");
  CHECK_CUDA(cudaStreamSynchronize(r.stream));
  const bool right =
      r.first() || (Holds(r.recv.data(), kCount, 1) && Holds(r.recv.data() + kCount, kCount, 7));
  Say(right ? "right" : "wrong");
}

void SendToSelf(Rank& r) {
  ExpectResult(ncclSend(r.send.data(), kCount, ncclFloat, r.rank, r.comm, r.stream),
               ncclInvalidUsage, "a send to itself that is not received");
  CHECK_NCCL(ncclGroupStart());
  Send(r, r.rank);
  Recv(r, r.rank);
  CHECK_NCCL(ncclGroupEnd());
  Finish(r, static_cast<float>(r.rank + 1));
}

// Collectives, exchanges and a second communicator, in nested groups.
void NestedMixedGroup(Rank& r) {
  ncclComm_t other;
  CHECK_NCCL(ncclCommInitRank(&other, r.size, ShareUniqueId(1), r.rank));
  DeviceBuffer<float> sum(kCount), gathered(kCount * static_cast<size_t>(r.size));
  CHECK_NCCL(ncclGroupStart());
  CHECK_NCCL(ncclAllReduce(r.send.data(), sum.data(), kCount, ncclFloat, ncclSum, other, r.stream));
  CHECK_NCCL(ncclGroupStart());
  Send(r, r.next());
  CHECK_NCCL(ncclAllGather(r.send.data(), gathered.data(), kCount, ncclFloat, r.comm, r.stream));
  CHECK_NCCL(ncclGroupEnd());
  CHECK_CUDA(cudaStreamSynchronize(r.stream));  // nothing has begun yet
  Expect(Holds(sum.data(), kCount, 0), "a group starts at its outermost end");
  Recv(r, r.previous());
  CHECK_NCCL(ncclGroupEnd());
  CHECK_CUDA(cudaStreamSynchronize(r.stream));
  Expect(Holds(sum.data(), kCount, SumOver(r.size)), "the other communicator's sum");
  for (int rank = 0; rank < r.size; ++rank) {
    Expect(Holds(gathered.data() + static_cast<size_t>(rank) * kCount, kCount,
                 static_cast<float>(rank + 1)),
           "the gathered data");
  }
  Finish(r, static_cast<float>(r.previous() + 1));
  CHECK_NCCL(ncclCommDestroy(other));
}

// Ranks use two streams the other way round; the communicator keeps the order.
void CrossedStreams(Rank& r) {
  cudaStream_t other;
  CHECK_CUDA(cudaStreamCreate(&other));
  const cudaStream_t streams[] = {r.stream, other};
  AllReduce(r);
  CHECK_NCCL(ncclBroadcast(r.send.data(), r.recv.data(), kCount, ncclFloat, 1, r.comm,
                           streams[r.rank % 2]));
  CHECK_NCCL(ncclAllReduce(r.recv.data(), r.recv.data(), kCount, ncclFloat, ncclSum, r.comm,
                           streams[1 - r.rank % 2]));
  CHECK_CUDA(cudaStreamSynchronize(other));
  Finish(r, 2 * static_cast<float>(r.size));
}

// Aborts as soon as the thread waits in the kernel.
void AbortWhileWaiting(ncclComm_t comm, pid_t thread) {
  const std::string file = "/proc/self/task/" + std::to_string(thread) + "/syscall";
  for (long call = -1; call != SYS_futex; std::ifstream(file) >> call) usleep(1000);
  CHECK_NCCL(ncclCommAbort(comm));
}

// Another thread ends what the first rank will never come to.
void AbortFreesStream(Rank& r) {
  if (r.first()) Leave();
  AllReduce(r);
  std::thread aborter(AbortWhileWaiting, r.comm, gettid());
  CHECK_CUDA(cudaStreamSynchronize(r.stream));
  aborter.join();
  CHECK_CUDA(cudaGetLastError());
  r.comm = nullptr;
  Say("right");
}

void AbortFreesHost(Rank& r) {
  if (r.first()) Leave();
  std::thread aborter(AbortWhileWaiting, r.comm, gettid());
  AllReduce(r);  // the first, so it blocks
  aborter.join();
  CHECK_CUDA(cudaStreamSynchronize(r.stream));
  r.comm = nullptr;
  Say("right");
}

void RevokeFreesStream(Rank& r) {
  if (r.first()) Leave();
  AllReduce(r);
  CHECK_NCCL(ncclCommRevoke(r.comm, 0));
  CHECK_CUDA(cudaStreamSynchronize(r.stream));
  ExpectResult(
      ncclAllReduce(r.send.data(), r.recv.data(), kCount, ncclFloat, ncclSum, r.comm, r.stream),
      ncclInvalidUsage, "a collective after revoke");
  ExpectResult(ncclCommFinalize(r.comm), ncclInvalidUsage, "finalize after revoke");
  Say("right");
}

void SplitByParity(Rank& r) {
  const bool left_out = r.rank == r.size - 1;
  ncclComm_t part;
  CHECK_NCCL(
      ncclCommSplit(r.comm, left_out ? NCCL_SPLIT_NOCOLOR : r.rank % 2, -r.rank, &part, nullptr));
  if (left_out) {
    Expect(part == nullptr, "a rank without color gets no communicator");
    Leave();
  }
  int size = 0, rank = 0;
  CHECK_NCCL(ncclCommCount(part, &size));
  CHECK_NCCL(ncclCommUserRank(part, &rank));
  Expect(size == (r.size - 1 + 1 - r.rank % 2) / 2, "the size of a part");
  Expect(rank == size - 1 - r.rank / 2, "the greatest rank has the least key");
  // Each part has a root of its own: the greatest of its old ranks.
  CHECK_NCCL(ncclBroadcast(r.send.data(), r.recv.data(), kCount, ncclFloat, 0, part, r.stream));
  Finish(r, static_cast<float>(r.rank % 2 + 2 * (size - 1) + 1));
  CHECK_NCCL(ncclCommDestroy(part));
}

void ShrinkWithoutFirst(Rank& r) {
  if (r.first()) Leave();
  int gone = 0;
  ncclComm_t rest;
  CHECK_NCCL(ncclCommShrink(r.comm, &gone, 1, &rest, nullptr, NCCL_SHRINK_DEFAULT));
  CHECK_NCCL(
      ncclAllReduce(r.send.data(), r.recv.data(), kCount, ncclFloat, ncclSum, rest, r.stream));
  Finish(r, SumOver(r.size) - 1);
}

void AwaitReady(ncclComm_t comm) {
  ncclResult_t state = ncclInProgress;
  while (state == ncclInProgress) {
    CHECK_NCCL(ncclCommGetAsyncError(comm, &state));
    usleep(1000);
  }
  ExpectResult(state, ncclSuccess, "the state of a non-blocking communicator");
}

void NonBlocking(Rank& r) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  const ncclUniqueId id = ShareUniqueId();
  ExpectResult(ncclCommInitRankConfig(&r.comm, r.size, id, r.rank, &config), ncclInProgress,
               "a non-blocking init");
  AwaitReady(r.comm);
  Say("up");
  const ncclResult_t started =
      ncclAllReduce(r.send.data(), r.recv.data(), kCount, ncclFloat, ncclSum, r.comm, r.stream);
  Expect(started == ncclSuccess || started == ncclInProgress, "a non-blocking collective");
  AwaitReady(r.comm);
  FinishSum(r);
  const ncclResult_t ended = ncclCommFinalize(r.comm);
  Expect(ended == ncclSuccess || ended == ncclInProgress, "a non-blocking finalize");
  AwaitReady(r.comm);
}

// The call returns although the first rank is not there; its end can be aborted.
void NonBlockingInitAlone(Rank& r) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  const ncclUniqueId id = ShareUniqueId();
  if (r.first()) Leave();
  ExpectResult(ncclCommInitRankConfig(&r.comm, r.size, id, r.rank, &config), ncclInProgress,
               "a non-blocking init");
  ncclResult_t state = ncclSuccess;
  CHECK_NCCL(ncclCommGetAsyncError(r.comm, &state));
  ExpectResult(state, ncclInProgress, "the state while a rank is missing");
  CHECK_NCCL(ncclCommAbort(r.comm));
  r.comm = nullptr;
  Say("right");
}

void WrongArguments(Rank& r) {
  float* const send = r.send.data();
  float* const recv = r.recv.data();
  const auto reduce = [&](void* from, void* to, int type, int op, int root, ncclComm_t comm) {
    return ncclReduce(from, to, kCount, static_cast<ncclDataType_t>(type),
                      static_cast<ncclRedOp_t>(op), root, comm, r.stream);
  };
  const int root = r.rank;
  const ncclResult_t results[] = {reduce(nullptr, recv, ncclFloat, ncclSum, root, r.comm),
                                  reduce(send, nullptr, ncclFloat, ncclSum, root, r.comm),
                                  reduce(send, recv, 99, ncclSum, root, r.comm),
                                  reduce(send, recv, -1, ncclSum, root, r.comm),
                                  reduce(send, recv, ncclFloat, 99, root, r.comm),
                                  reduce(send, recv, ncclFloat, ncclSum, r.size, r.comm),
                                  reduce(send, recv, ncclFloat, ncclSum, -1, r.comm),
                                  reduce(send, recv, ncclFloat, ncclSum, root, nullptr)};
  for (const ncclResult_t result : results) {
    ExpectResult(result, ncclInvalidArgument, "a call with a wrong argument");
  }
  Healthy(r);  // and none of them had an effect
}

// exit() with a collective that can never end.
void ExitsMidway(Rank& r) {
  if (!r.first()) AllReduce(r);
  Leave();
}

void FinalizeWaitsForWork(Rank& r) {
  if (r.first()) Leave();
  AllReduce(r);
  CHECK_NCCL(ncclCommFinalize(r.comm));
  Say("returned");
}

void DestroyWithoutTheOthers(Rank& r) {
  if (r.first()) Leave();
  CHECK_NCCL(ncclCommDestroy(r.comm));
  r.comm = nullptr;
  Say("right");
}

enum class Setup { kNone, kInit, kConnect };  // the last: all have met in a collective

struct Scenario {
  const char* name;
  Setup setup;
  void (*run)(Rank&);
};
const Scenario kScenarios[] = {
    {"healthy", Setup::kInit, Healthy},
    {"many_rounds", Setup::kInit, ManyRounds},
    {"different_functions", Setup::kConnect, DifferentFunctions},
    {"different_bytes", Setup::kConnect, DifferentBytes},
    {"different_types", Setup::kConnect, DifferentTypes},
    {"different_reductions", Setup::kConnect, DifferentReductions},
    {"different_roots", Setup::kConnect, DifferentRoots},
    {"different_order", Setup::kConnect, DifferentOrder},
    {"first_rank_leaves", Setup::kConnect, FirstRankLeaves},
    {"first_rank_leaves_before_any_collective", Setup::kInit, FirstRankLeaves},
    {"first_rank_is_killed", Setup::kConnect, FirstRankIsKilled},
    {"nothing_to_reduce_on_first_rank", Setup::kConnect, NothingToReduceOnFirstRank},
    {"first_rank_never_initializes", Setup::kNone, FirstRankInitializesLater},
    {"crossing_sends", Setup::kInit, CrossingSends},
    {"grouped_crossing_sends", Setup::kInit, GroupedCrossingSends},
    {"sends_of_different_bytes", Setup::kInit, SendsOfDifferentBytes},
    {"send_nobody_receives", Setup::kInit, SendNobodyReceives},
    {"sends_stay_in_order", Setup::kInit, SendsStayInOrder},
    {"send_to_self", Setup::kInit, SendToSelf},
    {"nested_mixed_group", Setup::kInit, NestedMixedGroup},
    {"crossed_streams", Setup::kInit, CrossedStreams},
    {"abort_frees_stream", Setup::kConnect, AbortFreesStream},
    {"abort_frees_host", Setup::kInit, AbortFreesHost},
    {"revoke_frees_stream", Setup::kConnect, RevokeFreesStream},
    {"split_by_parity", Setup::kInit, SplitByParity},
    {"shrink_without_first", Setup::kConnect, ShrinkWithoutFirst},
    {"non_blocking", Setup::kNone, NonBlocking},
    {"non_blocking_init_alone", Setup::kNone, NonBlockingInitAlone},
    {"wrong_arguments", Setup::kInit, WrongArguments},
    {"exits_midway", Setup::kConnect, ExitsMidway},
    {"finalize_waits_for_work", Setup::kConnect, FinalizeWaitsForWork},
    {"destroy_without_the_others", Setup::kConnect, DestroyWithoutTheOthers},
};

void Play(const Scenario& scenario) {
  CHECK_CUDA(cudaSetDevice(JobRank()));
  Rank r;
  CHECK_CUDA(cudaStreamCreate(&r.stream));
  Fill(r.send.data(), kLong, static_cast<float>(r.rank + 1));
  if (scenario.setup != Setup::kNone) InitRank(r);
  if (scenario.setup == Setup::kConnect) {
    AllReduce(r);
    CHECK_CUDA(cudaStreamSynchronize(r.stream));
    Fill(r.recv.data(), kCount, 0);
  }
  scenario.run(r);
  if (r.comm != nullptr) CHECK_NCCL(ncclCommDestroy(r.comm));
}

}  // namespace

int main(int argc, char** argv) {
  for (const Scenario& scenario : kScenarios) {
    if (argc != 2 || strcmp(argv[1], scenario.name) != 0) continue;
    Play(scenario);
    return 0;
  }
  fprintf(stderr, "usage: sim_scenarios SCENARIO   (the names are in sim_scenarios.cc)\n");
  return 2;
}
