// SPDX-License-Identifier: Apache-2.0
// Collectives, in rounds. Each round moves as much data as the slots hold.
//
// In each round every rank puts a part of its data into its slot, meets the
// others, and reads the data that it needs from their slots. Each rank has two
// slots and uses them in turn: when a rank has met the others in one round, all
// ranks are done with the round before. In the first round the ranks also compare
// their calls.
#include <string.h>

#include <algorithm>

#include "tests/sim/nccl/device_turn.h"
#include "tests/sim/nccl/network.h"
#include "tests/sim/nccl/options.h"
#include "tests/sim/nccl/reduce.h"
#include "tests/sim/nccl/run.h"

namespace rollcall::sim {
namespace {

constexpr size_t kAlign = 64;  // a multiple of every element's size

class Collective {
 public:
  Collective(Comm& comm, const Call& call)
      : comm_(comm),
        call_(call),
        segment_(*comm.segment),
        element_(ElementSize(call.dtype)),
        send_(static_cast<const char*>(call.send)),
        recv_(static_cast<char*>(call.recv)) {}

  void Run() {
    size_t total = call_.bytes;
    const size_t step = Step();
    for (size_t done = 0; done < total; done += step) {
      parity_ = static_cast<int>(comm_.rounds++ % 2);
      if (done == 0) Announce();
      Put(done, std::min(step, total - done));
      if (!comm_.Meet(kDeviceGate)) return;
      if (done == 0 && !Agree(&total)) return HangUntilStopped();
      const size_t size = std::min(step, total - done);
      if (SharesReduction()) {
        ReduceShare(size);
        if (!comm_.Meet(kDeviceGate)) return;
      }
      Take(done, size);
    }
  }

 private:
  // Whether a slot holds one piece for each rank, and not one piece for all.
  bool HasPieces() const {
    return call_.function == Function::kReduceScatter || call_.function == Function::kAlltoAll ||
           call_.function == Function::kScatter;
  }
  // Whether each rank reduces its share of the round for all the others.
  bool SharesReduction() const {
    return call_.function == Function::kAllReduce || call_.function == Function::kReduce;
  }
  bool IsRoot() const { return comm_.rank == call_.root; }

  size_t Step() const {
    const size_t size = HasPieces() ? segment_.slot_bytes() / comm_.nranks : segment_.slot_bytes();
    return size / kAlign * kAlign;
  }
  char* Slot(int rank) const { return segment_.slot(rank, parity_); }

  void Announce() {
    segment_.area(comm_.rank).descriptors[parity_] = {
        call_.bytes, static_cast<int32_t>(call_.function), call_.root,
        static_cast<int32_t>(call_.dtype), static_cast<int32_t>(call_.op)};
  }

  // Compares the calls of all ranks. Like NCCL, does not detect differences in type or reduction.
  // Sets `*total` to the size that all ranks have.
  bool Agree(size_t* total) const {
    const Descriptor& first = segment_.area(0).descriptors[parity_];
    bool same_function = true, same_shape = true;
    for (int rank = 0; rank < comm_.nranks; ++rank) {
      const Descriptor& other = segment_.area(rank).descriptors[parity_];
      same_function &= other.function == first.function;
      same_shape &= other.bytes == first.bytes && other.root == first.root;
      *total = std::min<size_t>(*total, other.bytes);
    }
    return same_function && (same_shape || GoesOnWrongly());
  }

  bool GoesOnWrongly() const {
    const Options& options = GetOptions();
    if (!options.seeded) return options.mismatch_is_wrong;
    return ((options.seed + comm_.rounds) * 0x9e3779b97f4a7c15 >> 63) != 0;
  }

  void HangUntilStopped() const {
    segment_.Wait([] { return false; }, [this] { return comm_.stopped.load(); });
  }

  void Put(size_t done, size_t size) const {
    char* slot = Slot(comm_.rank);
    switch (call_.function) {
      case Function::kBroadcast:
        if (IsRoot()) memcpy(slot, send_ + done, size);
        break;
      case Function::kScatter:
        if (IsRoot()) PutPieces(slot, done, size);
        break;
      case Function::kReduceScatter:
      case Function::kAlltoAll:
        PutPieces(slot, done, size);
        break;
      default:
        PutOne(slot, send_ + done, size);
    }
  }

  void PutPieces(char* slot, size_t done, size_t size) const {
    for (int rank = 0; rank < comm_.nranks; ++rank) {
      PutOne(slot + rank * Step(), send_ + rank * call_.bytes + done, size);
    }
  }

  void PutOne(char* to, const char* from, size_t size) const {
    if (call_.scale == nullptr) {
      memcpy(to, from, size);
      return;
    }
    const PreMultiply& scale = *call_.scale;
    Scale(call_.dtype, scale.device_scalar != nullptr ? scale.device_scalar : scale.scalar, from,
          size / element_, to);
  }

  // The elements that `rank` reduces in a round of `size` bytes, as bytes.
  size_t ShareBegin(int rank, size_t size) const {
    return size / element_ * rank / comm_.nranks * element_;
  }

  void ReduceShare(size_t size) const {
    const size_t begin = ShareBegin(comm_.rank, size);
    const size_t end = ShareBegin(comm_.rank + 1, size);
    ReduceSlots(begin, (end - begin) / element_, Slot(comm_.rank) + begin);
  }

  void ReduceSlots(size_t offset, size_t count, char* out) const {
    std::vector<const char*> sources;
    for (int rank = 0; rank < comm_.nranks; ++rank) sources.push_back(Slot(rank) + offset);
    Reduce(call_.dtype, call_.op, sources, count, out);
  }

  void Take(size_t done, size_t size) const {
    switch (call_.function) {
      case Function::kAllReduce:
        return TakeShares(done, size);
      case Function::kReduce:
        if (IsRoot()) TakeShares(done, size);
        return;
      case Function::kBroadcast:
        memcpy(recv_ + done, Slot(call_.root), size);
        return;
      case Function::kScatter:
        memcpy(recv_ + done, Slot(call_.root) + comm_.rank * Step(), size);
        return;
      case Function::kReduceScatter:
        return ReduceSlots(comm_.rank * Step(), size / element_, recv_ + done);
      case Function::kGather:
        if (IsRoot()) TakeFromAll(done, size, 0);
        return;
      case Function::kAlltoAll:
        return TakeFromAll(done, size, comm_.rank * Step());
      default:
        return TakeFromAll(done, size, 0);
    }
  }

  void TakeShares(size_t done, size_t size) const {
    for (int rank = 0; rank < comm_.nranks; ++rank) {
      const size_t begin = ShareBegin(rank, size);
      memcpy(recv_ + done + begin, Slot(rank) + begin, ShareBegin(rank + 1, size) - begin);
    }
  }

  void TakeFromAll(size_t done, size_t size, size_t offset) const {
    for (int rank = 0; rank < comm_.nranks; ++rank) {
      memcpy(recv_ + rank * call_.bytes + done, Slot(rank) + offset, size);
    }
  }

  Comm& comm_;
  const Call& call_;
  const Segment& segment_;
  const size_t element_;
  const char* const send_;
  char* const recv_;
  int parity_ = 0;
};

// With one rank, every collective is a copy; a reduction scales first.
void RunAlone(const Call& call) {
  if (call.scale != nullptr) {
    const PreMultiply& scale = *call.scale;
    Scale(call.dtype, scale.device_scalar != nullptr ? scale.device_scalar : scale.scalar,
          static_cast<const char*>(call.send), call.count, static_cast<char*>(call.recv));
  } else if (call.recv != call.send) {
    memmove(call.recv, call.send, call.bytes);
  }
}

}  // namespace

void RunCollective(Comm& comm, const Call& call) {
  if (comm.nranks == 1) {
    RunAlone(call);
  } else if (RunNetwork(comm, call)) {
    Collective(comm, call).Run();
  }
}

void Run(Comm& comm, const std::vector<Call>& calls) {
  std::lock_guard lock(comm.run_mutex);
  const DeviceTurn turn(comm);
  std::vector<Call> transfers;
  for (const Call& call : calls) {
    if (comm.stopped) return;
    if (call.is_p2p()) {
      transfers.push_back(call);
    } else {
      RunCollective(comm, call);
    }
  }
  if (!transfers.empty() && !comm.stopped) RunTransfers(comm, transfers);
}

}  // namespace rollcall::sim
