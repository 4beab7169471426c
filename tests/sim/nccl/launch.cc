// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/nccl/launch.h"

#include <algorithm>

#include "tests/sim/cuda/device.h"
#include "tests/sim/nccl/options.h"
#include "tests/sim/nccl/profiler.h"
#include "tests/sim/nccl/quiet_thread.h"
#include "tests/sim/nccl/run.h"
#include "tests/sim/nccl/warn.h"

namespace rollcall::sim {
namespace {

// One communicator's part of a group.
struct Bundle {
  CommRef comm;
  std::vector<StreamRef> streams;  // each once
  std::vector<Call> calls;
  bool meets_all = false;               // its first collective
  uint64_t connect_times = 0;           // what to wait for at the gate, if so
  std::vector<int> new_send, new_recv;  // peers met for the first time
};

std::vector<Bundle> Sort(std::vector<Pending> calls) {
  std::vector<Bundle> bundles;
  for (Pending& pending : calls) {
    auto bundle = std::find_if(bundles.begin(), bundles.end(),
                               [&](const Bundle& b) { return b.comm == pending.comm; });
    if (bundle == bundles.end()) {
      bundles.push_back({pending.comm, {}, {}, false, 0, {}, {}});
      bundle = bundles.end() - 1;
    }
    auto& streams = bundle->streams;
    if (std::find(streams.begin(), streams.end(), pending.stream) == streams.end()) {
      streams.push_back(pending.stream);
    }
    bundle->calls.push_back(std::move(pending.call));
  }
  return bundles;
}

ncclResult_t CheckSelf(const Bundle& bundle) {
  int unmatched = 0;
  for (const Call& call : bundle.calls) {
    if (!call.is_p2p() || call.root != bundle.comm->rank) continue;
    unmatched += call.function == Function::kSend ? 1 : -1;
  }
  if (unmatched == 0) return ncclSuccess;
  return Warn(ncclInvalidUsage, "Trying to send to self without a matching recv");
}

// Signals to the peers that this rank has arrived. Does not wait.
ncclResult_t ArriveAtPeers(Bundle* bundle) {
  Comm& comm = *bundle->comm;
  Segment& segment = *comm.segment;
  for (const Call& call : bundle->calls) {
    const bool sends = call.function == Function::kSend;
    if (!call.is_p2p()) {
      bundle->meets_all |= !comm.connected;
      continue;
    }
    std::vector<bool>& met = sends ? comm.sends_to : comm.receives_from;
    if (call.root == comm.rank || met[call.root]) continue;
    met[call.root] = true;
    const int from = sends ? comm.rank : call.root, to = sends ? call.root : comm.rank;
    if (!segment.ReserveChannel(from, to)) return Warn(ncclSystemError, "/dev/shm is full");
    Channel& channel = segment.channel(from, to);
    (sends ? channel.sender_there : channel.receiver_there).store(1);
    segment.Ring(call.root);
    (sends ? bundle->new_send : bundle->new_recv).push_back(call.root);
  }
  if (bundle->meets_all) {
    comm.connected = true;
    bundle->connect_times = comm.ArriveAt(kConnectGate);
  }
  return ncclSuccess;
}

bool AllPeersThere(const Bundle& bundle) {
  const Comm& comm = *bundle.comm;
  const Segment& segment = *comm.segment;
  for (const int peer : bundle.new_send) {
    if (segment.channel(comm.rank, peer).receiver_there.load() == 0) return false;
  }
  for (const int peer : bundle.new_recv) {
    if (segment.channel(peer, comm.rank).sender_there.load() == 0) return false;
  }
  return !bundle.meets_all || segment.Passed(kConnectGate, bundle.connect_times);
}

// The first contact: all communicators of the group arrive, then all wait.
ncclResult_t Connect(std::vector<Bundle>* bundles) {
  for (Bundle& bundle : *bundles) {
    if (bundle.comm->nranks == 1) continue;
    std::lock_guard lock(bundle.comm->launch_mutex);
    const ncclResult_t arrived = ArriveAtPeers(&bundle);
    if (arrived != ncclSuccess) return arrived;
  }
  if (!GetOptions().lazy_connect) return ncclSuccess;
  for (const Bundle& bundle : *bundles) {
    Comm& comm = *bundle.comm;
    if (comm.nranks == 1) continue;
    comm.segment->Wait([&] { return AllPeersThere(bundle); }, [&] { return comm.stopped.load(); });
  }
  return ncclSuccess;
}

// Puts the work on its first stream, after the work on all of its streams and after the earlier
// work of the communicator. The other streams wait for it.
void Enqueue(Bundle bundle) {
  const CommRef comm = bundle.comm;
  const StreamRef stream = bundle.streams.front();
  std::lock_guard lock(comm->launch_mutex);
  if (comm->stopped) return;
  if (IsCaptured(stream)) {
    Enqueue(stream, [comm, calls = std::move(bundle.calls)] { Run(*comm, calls); });
    return;
  }
  std::vector<Point> after = {comm->last};
  for (const StreamRef& other : bundle.streams) {
    if (other != stream) after.push_back(StreamTail(other));
  }
  comm->BeginWork();
  comm->last = Enqueue(
      stream,
      [comm, calls = std::move(bundle.calls)] {
        Run(*comm, calls);
        comm->EndWork();
      },
      std::move(after));
  for (const StreamRef& other : bundle.streams) {
    if (other != stream) Enqueue(other, [] {}, {comm->last});
  }
}

ncclResult_t ConnectAndEnqueue(std::vector<Bundle> bundles) {
  const ncclResult_t connected = Connect(&bundles);
  if (connected != ncclSuccess) return connected;
  for (Bundle& bundle : bundles) ProfileLaunch(*bundle.comm, &bundle.calls);
  for (Bundle& bundle : bundles) Enqueue(std::move(bundle));
  return ncclSuccess;
}

}  // namespace

bool IsCaptured(const StreamRef& stream) {
  std::lock_guard lock(DeviceAt(stream->device).mutex);
  return stream->capture != nullptr;
}

ncclResult_t Launch(std::vector<Pending> calls) {
  std::vector<Bundle> bundles = Sort(std::move(calls));
  bool blocking = true;
  for (const Bundle& bundle : bundles) {
    const ncclResult_t checked = CheckSelf(bundle);
    if (checked != ncclSuccess) return checked;
    blocking &= bundle.comm->blocking;
  }
  if (blocking) return ConnectAndEnqueue(std::move(bundles));
  for (const Bundle& bundle : bundles) bundle.comm->SetState(ncclInProgress);
  StartQuietThread([bundles = std::move(bundles)] {
    const ncclResult_t result = ConnectAndEnqueue(bundles);
    for (const Bundle& bundle : bundles) bundle.comm->SetState(result);
  });
  return ncclInProgress;
}

}  // namespace rollcall::sim
