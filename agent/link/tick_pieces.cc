// SPDX-License-Identifier: Apache-2.0
#include "agent/link/tick_pieces.h"

#include <utility>

namespace rollcall {
namespace {

// Estimates are enough, because gRPC's limit is much larger than a piece, and a count of the exact
// bytes costs as much as writing them.
constexpr size_t kProcessBytes = 1024;  // without its sites
constexpr size_t kSiteBytes = 100;
constexpr size_t kCommBytes = 256;
constexpr size_t kLargeValueBytes = 8;  // a position, a count, a time, an address
constexpr size_t kSmallValueBytes = 3;
constexpr size_t kShapeBytes = 100;
constexpr size_t kPairBytes = 20;  // of a checkpoint, or of a launch of a graph

template <typename T>
size_t EstimateBytes(const google::protobuf::RepeatedField<T>& column) {
  return static_cast<size_t>(column.size()) *
         (sizeof(T) > sizeof(uint32_t) ? kLargeValueBytes : kSmallValueBytes);
}

size_t EstimateBytes(const google::protobuf::RepeatedPtrField<std::string>& shapes) {
  return static_cast<size_t>(shapes.size()) * kShapeBytes;
}

// A column with equal values may have one of them only (short_columns.h).
size_t EstimateBytes(const v1::RecordBatch& records) {
  size_t bytes = 0;
#define RECORD_FIELD(name) bytes += EstimateBytes(records.name());
#include "proto/record_columns.def"
  return bytes;
}

size_t EstimateBytes(const v1::CommUpdate& comm) {
  const auto pairs =
      static_cast<size_t>(comm.checkpoint_positions_size() + comm.graph_launches_size() +
                          2 * comm.messages().peer_size());
  return kCommBytes + comm.name().size() + EstimateBytes(comm.records()) + pairs * kPairBytes;
}

size_t EstimateBytes(const v1::ProcessUpdate& update) {
  size_t bytes = kProcessBytes + static_cast<size_t>(update.sites_size()) * kSiteBytes;
  for (const v1::CommUpdate& comm : update.communicators()) bytes += EstimateBytes(comm);
  return bytes;
}

class Pieces {
 public:
  explicit Pieces(size_t most_bytes) : most_bytes_(most_bytes), all_(1) {}

  void Add(v1::ProcessUpdate* update) {
    const size_t bytes = EstimateBytes(*update);
    if (bytes > most_bytes_ && update->communicators_size() > 0) return AddInParts(update);
    AddPart(update, bytes);
  }

  std::vector<v1::Tick> Take() { return std::move(all_); }

 private:
  void AddPart(v1::ProcessUpdate* update, size_t bytes) {
    if (bytes_ != 0 && bytes_ + bytes > most_bytes_) {
      all_.emplace_back();
      bytes_ = 0;
    }
    all_.back().add_processes()->Swap(update);
    bytes_ += bytes;
  }

  void AddInParts(v1::ProcessUpdate* update) {
    v1::ProcessUpdate part;
    part.set_pid(update->pid());
    part.set_start_time(update->start_time());
    const v1::ProcessUpdate id = part;
    google::protobuf::RepeatedPtrField<v1::CommUpdate> communicators;
    communicators.Swap(update->mutable_communicators());
    AddPart(update, EstimateBytes(*update));
    size_t bytes = 0;
    for (v1::CommUpdate& comm : communicators) {
      const size_t added = EstimateBytes(comm);
      if (bytes != 0 && bytes + added > most_bytes_) {
        AddPart(&part, bytes);
        part = id;
        bytes = 0;
      }
      part.add_communicators()->Swap(&comm);
      bytes += added;
    }
    AddPart(&part, bytes);
  }

  const size_t most_bytes_;
  std::vector<v1::Tick> all_;
  size_t bytes_ = 0;  // of the last piece, about
};

}  // namespace

bool IsOnePiece(const v1::Tick& tick, size_t most_bytes) {
  size_t bytes = 0;
  for (const v1::ProcessUpdate& update : tick.processes()) bytes += EstimateBytes(update);
  return bytes <= most_bytes;
}

std::vector<v1::Tick> SplitTick(v1::Tick tick, size_t most_bytes) {
  Pieces pieces(most_bytes);
  for (v1::ProcessUpdate& process : *tick.mutable_processes()) pieces.Add(&process);
  std::vector<v1::Tick> all = pieces.Take();
  for (v1::Tick& piece : all) piece.set_now_ns(tick.now_ns());
  all.back().set_whole(tick.whole());
  all.back().set_dropped_ticks(tick.dropped_ticks());
  all.back().set_left_out_segments(tick.left_out_segments());
  return all;
}

}  // namespace rollcall
