// SPDX-License-Identifier: Apache-2.0
// A rank that runs one named scenario, most of them wrong, and prints its progress
// on standard output: `rank 2: enqueued`. `ranks` starts it. test_semantics.py has
// the expected result of each scenario.
#include <signal.h>
#include <string.h>

#include <atomic>
#include <thread>
#include <vector>

#include "tests/support/job.h"

namespace {

constexpr size_t kCount = 1000;

// The rank's number. Its memory and streams are on the device with this number.
int RankOnItsDevice() {
  CHECK_CUDA(cudaSetDevice(JobRank()));
  return JobRank();
}

struct Rank {
  const int rank = RankOnItsDevice();
  const int size = JobSize();
  const bool last = rank == size - 1;
  ncclComm_t comm = nullptr;
  cudaStream_t stream = nullptr;
  DeviceBuffer<float> send{kCount * 8}, recv{kCount * 8};

  void Say(const char* what) const {
    printf("rank %d: %s\n", rank, what);
    fflush(stdout);
  }
  void Join(ncclConfig_t* config = nullptr) {
    CHECK_CUDA(cudaStreamCreate(&stream));
    CHECK_NCCL(ncclCommInitRankConfig(&comm, size, ShareUniqueId(), rank, config));
    Say("joined");
  }
  void AllReduce(size_t count = kCount, ncclDataType_t dtype = ncclFloat,
                 ncclRedOp_t op = ncclSum) {
    CHECK_NCCL(ncclAllReduce(send.data(), recv.data(), count, dtype, op, comm, stream));
  }
  void Broadcast(int root) {
    CHECK_NCCL(ncclBroadcast(send.data(), recv.data(), kCount, ncclFloat, root, comm, stream));
  }
  void Wait() {
    Say("enqueued");
    CHECK_CUDA(cudaStreamSynchronize(stream));
    Say("done");
  }
  // One correct collective, so that all ranks have met.
  void Meet() {
    AllReduce();
    CHECK_CUDA(cudaStreamSynchronize(stream));
  }
  void StayAway() const {
    Say("away");
    for (;;) pause();
  }
  void Expect(const char* what, ncclResult_t result, ncclResult_t expected) const {
    if (result == expected) return;
    fprintf(stderr, "rank %d: %s gave %d, not %d\n", rank, what, result, expected);
    exit(1);
  }
  void ExpectTrue(const char* what, bool condition) const {
    if (condition) return;
    fprintf(stderr, "rank %d: not so: %s\n", rank, what);
    exit(1);
  }
};

void LastNeverJoins(Rank& self) {
  if (self.last) self.StayAway();
  self.Join();
}

void LastMissesFirst(Rank& self) {
  self.Join();
  if (self.last) self.StayAway();
  self.AllReduce();
  self.Wait();
}

void LastMissesSecond(Rank& self) {
  self.Join();
  self.Meet();
  if (self.last) self.StayAway();
  self.AllReduce();
  self.Wait();
}

void LastBroadcasts(Rank& self) {
  self.Join();
  if (self.last) {
    self.Broadcast(0);
  } else {
    self.AllReduce();
  }
  self.Wait();
}

void AllBroadcast(Rank& self) {
  self.Join();
  self.Broadcast(0);
  self.Wait();
}

void LastSendsMore(Rank& self) {
  self.Join();
  self.AllReduce(self.last ? kCount + 1 : kCount);
  self.Wait();
}

void LastSendsNothing(Rank& self) {
  self.Join();
  self.Meet();
  self.AllReduce(self.last ? 0 : kCount);
  self.Wait();
}

void LastHasOtherRoot(Rank& self) {
  self.Join();
  self.Broadcast(self.last ? 1 : 0);
  self.Wait();
}

// If all ranks agree, the sum of ones is the number of ranks.
void SayWhetherRight(Rank& self, ncclDataType_t dtype, ncclRedOp_t op) {
  self.Join();
  std::vector<float> ones(kCount, 1), result(kCount);
  CHECK_CUDA(
      cudaMemcpy(self.send.data(), ones.data(), kCount * sizeof(float), cudaMemcpyHostToDevice));
  self.AllReduce(kCount, dtype, op);
  self.Wait();
  CHECK_CUDA(
      cudaMemcpy(result.data(), self.recv.data(), kCount * sizeof(float), cudaMemcpyDeviceToHost));
  const bool right = result == std::vector<float>(kCount, static_cast<float>(self.size));
  self.Say(right ? "right" : "wrong");
}
void AllAgree(Rank& self) { SayWhetherRight(self, ncclFloat, ncclSum); }
void LastHasOtherType(Rank& self) {
  SayWhetherRight(self, self.last ? ncclInt32 : ncclFloat, ncclSum);
}
void LastHasOtherReduction(Rank& self) {
  SayWhetherRight(self, ncclFloat, self.last ? ncclProd : ncclSum);
}

void Send(Rank& self, int peer, size_t count = kCount) {
  CHECK_NCCL(ncclSend(self.send.data(), count, ncclFloat, peer, self.comm, self.stream));
}
void Recv(Rank& self, int peer, size_t count = kCount) {
  CHECK_NCCL(ncclRecv(self.recv.data(), count, ncclFloat, peer, self.comm, self.stream));
}

void MeetPeers(Rank& self) {
  const int peer = 1 - self.rank;
  CHECK_NCCL(ncclGroupStart());
  Send(self, peer);
  Recv(self, peer);
  CHECK_NCCL(ncclGroupEnd());
  CHECK_CUDA(cudaStreamSynchronize(self.stream));
}

void SendToNobody(Rank& self) {
  self.Join();
  if (self.last) self.StayAway();
  Send(self, 1);
  self.Wait();
}

void SecondSendToNobody(Rank& self) {
  self.Join();
  MeetPeers(self);
  if (self.last) self.StayAway();
  Send(self, 1);
  self.Wait();
}

void CrossingSends(Rank& self) {
  self.Join();
  MeetPeers(self);
  const int peer = 1 - self.rank;
  Send(self, peer);
  Recv(self, peer);
  self.Wait();
}

void OtherSizeReceived(Rank& self) {
  self.Join();
  if (self.rank == 0) {
    Send(self, 1);
  } else {
    Recv(self, 0, kCount / 2);
  }
  self.Wait();
}

// Rank 1 receives the first and the second message of rank 0, on two streams.
void SendsKeepOrder(Rank& self) {
  self.Join();
  float* buffer = self.rank == 0 ? self.send.data() : self.recv.data();
  for (int turn = 0; turn < 5; ++turn) {
    const std::vector<float> values(kCount, static_cast<float>(turn));
    CHECK_CUDA(cudaMemcpy(self.send.data() + turn * kCount, values.data(), kCount * sizeof(float),
                          cudaMemcpyHostToDevice));
  }
  cudaStream_t other;
  CHECK_CUDA(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
  for (int turn = 0; turn < 5; ++turn) {
    cudaStream_t stream = turn % 2 == 0 ? self.stream : other;
    float* at = buffer + turn * kCount;
    if (self.rank == 0) {
      CHECK_NCCL(ncclSend(at, kCount, ncclFloat, 1, self.comm, stream));
    } else {
      CHECK_NCCL(ncclRecv(at, kCount, ncclFloat, 0, self.comm, stream));
    }
  }
  CHECK_CUDA(cudaDeviceSynchronize());
  for (int turn = 0; turn < 5 && self.rank == 1; ++turn) {
    float value = -1;
    CHECK_CUDA(cudaMemcpy(&value, buffer + turn * kCount, sizeof(value), cudaMemcpyDeviceToHost));
    self.ExpectTrue("messages come in order", value == static_cast<float>(turn));
  }
  self.Say("done");
}

void AbortReleasesStream(Rank& self) {
  self.Join();
  self.Meet();
  if (self.last) self.StayAway();
  self.AllReduce();
  self.Say("enqueued");
  std::thread aborter([&] { CHECK_NCCL(ncclCommAbort(self.comm)); });
  CHECK_CUDA(cudaStreamSynchronize(self.stream));
  aborter.join();
  CHECK_CUDA(cudaGetLastError());
  self.Say("done");
}

// Another thread aborts while the call waits for its peers' first contact.
void AbortReleasesHost(Rank& self) {
  self.Join();
  if (self.last) self.StayAway();
  std::thread aborter([&] {
    usleep(200'000);  // the call below must be inside by then, else nothing is tested
    self.Say("aborting");
    CHECK_NCCL(ncclCommAbort(self.comm));
  });
  self.AllReduce();
  self.Say("returned");
  CHECK_CUDA(cudaStreamSynchronize(self.stream));
  aborter.join();
  self.Say("done");
}

ncclResult_t Poll(ncclComm_t comm) {
  ncclResult_t state = ncclInProgress;
  while (state == ncclInProgress) {
    CHECK_NCCL(ncclCommGetAsyncError(comm, &state));
    usleep(1000);
  }
  return state;
}

void NonBlocking(Rank& self) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  CHECK_CUDA(cudaStreamCreate(&self.stream));
  const ncclUniqueId id = ShareUniqueId();
  self.Expect("init", ncclCommInitRankConfig(&self.comm, self.size, id, self.rank, &config),
              ncclInProgress);
  self.Expect("state", Poll(self.comm), ncclSuccess);
  const ncclResult_t called = ncclAllReduce(self.send.data(), self.recv.data(), kCount, ncclFloat,
                                            ncclSum, self.comm, self.stream);
  self.Expect("all-reduce", called, ncclInProgress);
  self.Expect("state", Poll(self.comm), ncclSuccess);
  self.Wait();
  self.Expect("finalize", ncclCommFinalize(self.comm), ncclInProgress);
  self.Expect("state", Poll(self.comm), ncclSuccess);
  CHECK_NCCL(ncclCommDestroy(self.comm));
}

// If a rank never joins, the others stay in progress and can abort.
void NonBlockingAlone(Rank& self) {
  if (self.last) self.StayAway();
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  self.Expect("init",
              ncclCommInitRankConfig(&self.comm, self.size, ShareUniqueId(), self.rank, &config),
              ncclInProgress);
  ncclResult_t state = ncclSuccess;
  CHECK_NCCL(ncclCommGetAsyncError(self.comm, &state));
  self.Expect("state", state, ncclInProgress);
  CHECK_NCCL(ncclCommAbort(self.comm));
  self.Say("done");
}

// Splits even and odd ranks, in reverse order. The last rank stays out.
void Split(Rank& self) {
  self.Join();
  ncclComm_t part = reinterpret_cast<ncclComm_t>(1);
  const int color = self.last ? NCCL_SPLIT_NOCOLOR : self.rank % 2;
  CHECK_NCCL(ncclCommSplit(self.comm, color, -self.rank, &part, nullptr));
  if (self.last) {
    self.ExpectTrue("no communicator for who has no color", part == nullptr);
    return self.Say("done");
  }
  int size = 0, rank = 0;
  CHECK_NCCL(ncclCommCount(part, &size));
  CHECK_NCCL(ncclCommUserRank(part, &rank));
  const int others = (self.size - 1 - self.rank % 2 + 1) / 2;
  self.ExpectTrue("a part of all of a color", size == others);
  self.ExpectTrue("ranks follow the keys", rank == size - 1 - self.rank / 2);
  CHECK_NCCL(ncclAllReduce(self.send.data(), self.recv.data(), kCount, ncclFloat, ncclSum, part,
                           self.stream));
  self.Wait();
  CHECK_NCCL(ncclCommDestroy(part));
}

void LastMissesSplit(Rank& self) {
  self.Join();
  if (self.last) self.StayAway();
  ncclComm_t part = nullptr;
  CHECK_NCCL(ncclCommSplit(self.comm, 0, self.rank, &part, nullptr));
  self.Say("done");
}

// Survivors of a stuck collective go on without the last rank.
void ShrinkWithoutLast(Rank& self) {
  self.Join();
  self.Meet();
  if (self.last) self.StayAway();
  self.AllReduce();
  int excluded[] = {self.size - 1};
  ncclComm_t rest = nullptr;
  CHECK_NCCL(ncclCommShrink(self.comm, excluded, 1, &rest, nullptr, NCCL_SHRINK_ABORT));
  CHECK_NCCL(ncclAllReduce(self.send.data(), self.recv.data(), kCount, ncclFloat, ncclSum, rest,
                           self.stream));
  self.Wait();
}

void Revoked(Rank& self) {
  self.Join();
  self.Meet();
  if (!self.last) self.AllReduce();  // stuck: the last does not call it
  CHECK_NCCL(ncclCommRevoke(self.comm, 0));
  CHECK_CUDA(cudaStreamSynchronize(self.stream));
  self.Expect("a collective after revoke",
              ncclAllReduce(self.send.data(), self.recv.data(), kCount, ncclFloat, ncclSum,
                            self.comm, self.stream),
              ncclInvalidUsage);
  self.Expect("finalize after revoke", ncclCommFinalize(self.comm), ncclInvalidUsage);
  CHECK_NCCL(ncclCommDestroy(self.comm));
  self.Say("done");
}

void BadArguments(Rank& self) {
  self.Join();
  float* send = self.send.data();
  float* recv = self.recv.data();
  const auto bcast = [&](float* from, int root, int type, ncclComm_t comm) {
    return ncclBroadcast(from, recv, kCount, static_cast<ncclDataType_t>(type), root, comm,
                         self.stream);
  };
  self.Expect("root", bcast(send, self.size, ncclFloat, self.comm), ncclInvalidArgument);
  self.Expect("negative root", bcast(send, -1, ncclFloat, self.comm), ncclInvalidArgument);
  self.Expect("type", bcast(send, 0, 99, self.comm), ncclInvalidArgument);
  self.Expect("no comm", bcast(send, 0, ncclFloat, nullptr), ncclInvalidArgument);
  self.Expect("no buffer", bcast(nullptr, self.rank, ncclFloat, self.comm), ncclInvalidArgument);
  self.Expect("reduction",
              ncclAllReduce(send, recv, kCount, ncclFloat, static_cast<ncclRedOp_t>(77), self.comm,
                            self.stream),
              ncclInvalidArgument);
  self.Expect("group end without a start", ncclGroupEnd(), ncclInvalidUsage);
  CHECK_NCCL(ncclGroupStart());
  self.Expect("in a group", bcast(send, 0, 99, self.comm), ncclInvalidArgument);
  self.Expect("its end", ncclGroupEnd(), ncclInvalidArgument);
  self.Expect("to itself, unmatched",
              ncclSend(send, 1, ncclFloat, self.rank, self.comm, self.stream), ncclInvalidUsage);
  self.Meet();  // none of that was seen by anyone
  const ncclComm_t gone = self.comm;
  CHECK_NCCL(ncclCommDestroy(self.comm));
  self.Expect("destroyed comm", bcast(send, 0, ncclFloat, gone), ncclInvalidArgument);
  self.Say("done");
}

void DestroyAlone(Rank& self) {
  self.Join();
  self.Meet();
  if (self.last) self.StayAway();
  CHECK_NCCL(ncclCommDestroy(self.comm));
  self.Say("done");
}

void LastIsKilled(Rank& self) {
  self.Join();
  self.Meet();
  if (self.last) raise(SIGKILL);
  self.AllReduce();
  self.Say("enqueued");
  ncclResult_t state = ncclSuccess;
  while (state == ncclSuccess && cudaStreamQuery(self.stream) == cudaErrorNotReady) {
    CHECK_NCCL(ncclCommGetAsyncError(self.comm, &state));
    usleep(10'000);
  }
  self.Say(state == ncclRemoteError ? "remote error" : "done");
  CHECK_NCCL(ncclCommAbort(self.comm));
}

// Two communicators, nested groups, collectives and sends in one group.
void MixedGroup(Rank& self) {
  self.Join();
  ncclComm_t second = nullptr;
  CHECK_NCCL(ncclCommSplit(self.comm, 0, self.rank, &second, nullptr));
  const int next = (self.rank + 1) % self.size, before = (self.rank + self.size - 1) % self.size;
  cudaStream_t other;
  CHECK_CUDA(cudaStreamCreate(&other));
  for (int turn = 0; turn < 10; ++turn) {
    CHECK_NCCL(ncclGroupStart());
    self.AllReduce();
    CHECK_NCCL(ncclGroupStart());
    Send(self, next);
    CHECK_NCCL(ncclRecv(self.recv.data() + kCount, kCount, ncclFloat, before, self.comm, other));
    CHECK_NCCL(ncclGroupEnd());
    CHECK_NCCL(ncclAllReduce(self.send.data(), self.recv.data() + 2 * kCount, kCount, ncclFloat,
                             ncclMax, second, other));
    CHECK_NCCL(ncclGroupEnd());
  }
  self.Wait();
  CHECK_CUDA(cudaStreamSynchronize(other));
  CHECK_NCCL(ncclCommDestroy(second));
  CHECK_NCCL(ncclCommDestroy(self.comm));
}

// Two communicators on two streams; the last rank uses them the other way round.
void LastSwapsCommunicators(Rank& self) {
  self.Join();
  ncclComm_t second = nullptr;
  CHECK_NCCL(ncclCommSplit(self.comm, 0, self.rank, &second, nullptr));
  cudaStream_t other;
  CHECK_CUDA(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
  const auto reduce = [&](ncclComm_t comm, cudaStream_t stream) {
    float* to = self.recv.data() + (comm == second ? kCount : 0);
    CHECK_NCCL(ncclAllReduce(self.send.data(), to, kCount, ncclFloat, ncclSum, comm, stream));
  };
  self.Meet();
  reduce(second, other);
  CHECK_CUDA(cudaStreamSynchronize(other));
  // Each collective begins before the program calls the next, as if collectives took long.
  if (self.last) {
    reduce(second, other);
    usleep(100'000);
    reduce(self.comm, self.stream);
  } else {
    reduce(self.comm, self.stream);
    usleep(100'000);
    reduce(second, other);
  }
  self.Wait();
}

void Group(const std::vector<ncclComm_t>& comms, const std::vector<cudaStream_t>& streams,
           float* data) {
  CHECK_NCCL(ncclGroupStart());
  for (size_t i = 0; i < comms.size(); ++i) {
    CHECK_NCCL(ncclAllReduce(data + i, data + i, 1, ncclFloat, ncclSum, comms[i], streams[i]));
  }
  CHECK_NCCL(ncclGroupEnd());
  for (cudaStream_t stream : streams) CHECK_CUDA(cudaStreamSynchronize(stream));
}

// One process with a rank on each of eight devices: one thread in groups, then
// splits in a group, then a thread for each.
void SingleProcess(Rank& self) {
  constexpr int kDevices = 8;
  std::vector<ncclComm_t> comms(kDevices), halves(kDevices);
  std::vector<cudaStream_t> streams(kDevices);
  CHECK_NCCL(ncclCommInitAll(comms.data(), kDevices, nullptr));
  float* data = nullptr;
  CHECK_CUDA(cudaMallocHost(reinterpret_cast<void**>(&data), kDevices * sizeof(float)));
  for (int i = 0; i < kDevices; ++i) {
    CHECK_CUDA(cudaSetDevice(i));
    CHECK_CUDA(cudaStreamCreate(&streams[i]));
    data[i] = 1;
  }
  Group(comms, streams, data);
  CHECK_NCCL(ncclGroupStart());
  for (int i = 0; i < kDevices; ++i) {
    CHECK_NCCL(ncclCommSplit(comms[i], i % 2, i, &halves[i], nullptr));
  }
  CHECK_NCCL(ncclGroupEnd());
  Group(halves, streams, data);
  std::vector<std::thread> threads;
  for (int i = 0; i < kDevices; ++i) {
    threads.emplace_back([&, i] {
      CHECK_CUDA(cudaSetDevice(i));
      for (int turn = 0; turn < 20; ++turn) {
        CHECK_NCCL(ncclAllReduce(data + i, data + i, 1, ncclFloat, ncclMax, comms[i], streams[i]));
      }
      CHECK_CUDA(cudaStreamSynchronize(streams[i]));
      CHECK_NCCL(ncclCommDestroy(halves[i]));
      CHECK_NCCL(ncclCommDestroy(comms[i]));
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (int i = 0; i < kDevices; ++i) {
    self.ExpectTrue("8 ones, then 4 of those", data[i] == kDevices * kDevices / 2);
  }
}

// Each process has two ranks, which one thread destroys one after the other; the last process never
// does.
void DestroyPairsInTurn(Rank& self) {
  const ncclUniqueId id = ShareUniqueId();
  ncclComm_t pair[2];
  CHECK_NCCL(ncclGroupStart());
  for (int i = 0; i < 2; ++i) {
    CHECK_CUDA(cudaSetDevice(2 * self.rank + i));
    CHECK_NCCL(ncclCommInitRank(&pair[i], 2 * self.size, id, 2 * self.rank + i));
  }
  CHECK_NCCL(ncclGroupEnd());
  self.Say("joined");
  if (self.last && self.size > 1) self.StayAway();
  CHECK_NCCL(ncclCommDestroy(pair[0]));
  self.Say("half done");
  CHECK_NCCL(ncclCommDestroy(pair[1]));
  self.Say("done");
}

// A captured collective runs once for each launch of the graph.
void Graph(Rank& self) {
  self.Join();
  const std::vector<float> ones(kCount, 1);
  CHECK_CUDA(
      cudaMemcpy(self.send.data(), ones.data(), kCount * sizeof(float), cudaMemcpyHostToDevice));
  cudaGraph_t graph;
  cudaGraphExec_t executable;
  CHECK_CUDA(cudaStreamBeginCapture(self.stream, cudaStreamCaptureModeThreadLocal));
  CHECK_NCCL(ncclAllReduce(self.send.data(), self.send.data(), kCount, ncclFloat, ncclSum,
                           self.comm, self.stream));
  CHECK_CUDA(cudaStreamEndCapture(self.stream, &graph));
  CHECK_CUDA(cudaGraphInstantiate(&executable, graph, 0));
  for (int i = 0; i < 3; ++i) CHECK_CUDA(cudaGraphLaunch(executable, self.stream));
  CHECK_CUDA(cudaStreamSynchronize(self.stream));
  float value = 0;
  CHECK_CUDA(cudaMemcpy(&value, self.send.data(), sizeof(value), cudaMemcpyDeviceToHost));
  const float size = static_cast<float>(self.size);
  self.ExpectTrue("three sums of sums", value == size * size * size);
  self.Say("done");
}

const struct {
  const char* name;
  void (*run)(Rank&);
} kScenarios[] = {
    {"last_never_joins", LastNeverJoins},
    {"last_misses_first", LastMissesFirst},
    {"last_misses_second", LastMissesSecond},
    {"last_broadcasts", LastBroadcasts},
    {"all_broadcast", AllBroadcast},
    {"last_sends_more", LastSendsMore},
    {"last_sends_nothing", LastSendsNothing},
    {"last_has_other_root", LastHasOtherRoot},
    {"all_agree", AllAgree},
    {"last_has_other_type", LastHasOtherType},
    {"last_has_other_reduction", LastHasOtherReduction},
    {"send_to_nobody", SendToNobody},
    {"second_send_to_nobody", SecondSendToNobody},
    {"crossing_sends", CrossingSends},
    {"other_size_received", OtherSizeReceived},
    {"sends_keep_order", SendsKeepOrder},
    {"abort_releases_stream", AbortReleasesStream},
    {"abort_releases_host", AbortReleasesHost},
    {"non_blocking", NonBlocking},
    {"non_blocking_alone", NonBlockingAlone},
    {"split", Split},
    {"last_misses_split", LastMissesSplit},
    {"shrink_without_last", ShrinkWithoutLast},
    {"revoked", Revoked},
    {"bad_arguments", BadArguments},
    {"destroy_alone", DestroyAlone},
    {"last_is_killed", LastIsKilled},
    {"mixed_group", MixedGroup},
    {"last_swaps_communicators", LastSwapsCommunicators},
    {"single_process", SingleProcess},
    {"destroy_pairs_in_turn", DestroyPairsInTurn},
    {"graph", Graph},
};

}  // namespace

int main(int argc, char** argv) {
  for (const auto& scenario : kScenarios) {
    if (argc != 2 || strcmp(scenario.name, argv[1]) != 0) continue;
    // Do not destroy: freeing memory waits for the device, which may be stuck.
    scenario.run(*new Rank);
    fflush(stdout);
    _exit(0);
  }
  fprintf(stderr, "usage: sim_rank SCENARIO (see test_semantics.py)\n");
  return 2;
}
