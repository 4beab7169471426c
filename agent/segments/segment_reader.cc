// SPDX-License-Identifier: Apache-2.0
#include "agent/segments/segment_reader.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"
#include "agent/processes/this_host.h"
#include "agent/segments/network_reader.h"
#include "agent/segments/segment_copy.h"

namespace rollcall {
namespace {

using segment::CommEntry;
using segment::SegmentHeader;

constexpr int kTries = 3;

absl::StatusOr<std::unique_ptr<SegmentReader>> ReaderOf(absl::StatusOr<SegmentFile> file) {
  if (!file.ok()) return file.status();
  return std::make_unique<SegmentReader>(*std::move(file));
}

}  // namespace

absl::StatusOr<std::unique_ptr<SegmentReader>> SegmentReader::Open(const std::string& path) {
  return ReaderOf(SegmentFile::Open(path));
}

absl::StatusOr<std::unique_ptr<SegmentReader>> SegmentReader::FromDescriptor(
    const std::string& path, UniqueFd fd) {
  return ReaderOf(SegmentFile::FromDescriptor(path, std::move(fd)));
}

absl::StatusOr<std::unique_ptr<SegmentReader>> SegmentReader::Again() const {
  return ReaderOf(file_.Again());
}

const TickClock& SegmentReader::Clock(const SegmentHeader& header, const HostClock* host,
                                      int64_t ahead_ns) {
  const bool live = Text(header.boot_id) == OwnBootId();
  if (live && host != nullptr) return clock_.emplace(host->ClockFor(header.clock_source, ahead_ns));
  if (!clock_) clock_.emplace(header.clock_source, SampleFrom(header.first_clock));
  const ClockSample last = SampleFrom(header.last_clock);
  if (live) {
    clock_->Update(SampleClocks());
  } else if (last.ticks != 0) {
    clock_->Update(last);
  }
  return *clock_;
}

absl::StatusOr<SegmentSnapshot> SegmentReader::Read(const HostClock* host, int64_t ahead_ns) {
  Copy<SegmentHeader> header;
  Copy<segment::BlockedEntry[segment::kBlockedCapacity]> blocked;
  absl::Status status = file_.ReadHeader(&header);
  if (!status.ok()) return status;
  if (!file_.ReadAt(segment::kBlockedOffset, &blocked)) {
    return absl::DataLossError(absl::StrCat(file_.path(), ": cut short"));
  }
  const TickClock& clock = Clock(*header, host, ahead_ns);
  SegmentSnapshot snapshot;
  CopyHeader(*header, clock, &snapshot);
  snapshot.blocked = CopyBlocked(*header, *blocked, clock);
  ReadSites(Get(header->site_count));
  snapshot.sites = sites_;
  const uint32_t count = std::min(Get(header->comm_count), segment::kCommCapacity);
  progress_.resize(std::max<size_t>(progress_.size(), count));
  for (uint32_t i = 0; i < count; ++i) {
    if (!ReadComm(i, clock, &snapshot)) {
      snapshot.warnings.push_back(absl::StrCat(file_.path(), ": cut short: ", i, " of ", count,
                                               " communicators are in the file"));
      break;
    }
  }
  IgnoreExitOfChild(&snapshot);
  return snapshot;
}

void SegmentReader::ReadSites(uint32_t count) {
  while (sites_.size() < std::min(count, segment::kSiteCapacity)) {
    Copy<segment::Site> site;
    if (!file_.ReadAt(segment::kSitesOffset + sites_.size() * sizeof(segment::Site), &site)) return;
    sites_.push_back(SiteText(*site));
  }
}

bool SegmentReader::ReadComm(uint32_t index, const TickClock& clock, SegmentSnapshot* snapshot) {
  const uint64_t offset = segment::CommBlockOffset(index);
  Copy<CommEntry> entry, again;
  bool stable = false;
  // The process writes position and signature one after the other, so read both again.
  constexpr size_t kWithProgress = offsetof(CommEntry, graph_launch);
  for (int i = 0; i < kTries && !stable; ++i) {
    if (!file_.ReadAt(offset, &entry) || !file_.ReadAt(offset, again.bytes, kWithProgress)) {
      return false;
    }
    stable = Get(entry->entered) == Get(again->entered) &&
             Get(entry->signature) == Get(again->signature) && Get(entry->id) == Get(again->id);
  }
  CommSnapshot comm;
  comm.index = index;
  CopyEntry(*entry, clock, &comm);
  if (comm.state == segment::CommState::kEmpty) return true;
  if (!stable) comm.signature = 0;
  const std::string wrong = FindInconsistency(comm);
  if (!wrong.empty()) {
    snapshot->warnings.push_back(
        absl::StrCat(file_.path(), ": communicator ", index, " left out: ", wrong));
    return true;
  }
  ReadProgress* progress = &progress_[index];
  const uint64_t id = Get(entry->init_entered);
  if (progress->id != id) *progress = {id, {}, {}};
  ReadMarkers(index, &progress->markers, &comm);
  const uint64_t capacity = RingCapacity(*entry);
  if ((comm.flags & segment::kFlagRing) != 0 && capacity != 0) {
    if (comm.recorded < progress->ring.next) *progress = {id, {}, {}};
    ring_.Read(file_, clock, capacity, &progress->ring, &comm);
  }
  snapshot->newest_ns = std::max({snapshot->newest_ns, comm.last_entered_ns, comm.state_since_ns});
  snapshot->communicators.push_back(std::move(comm));
  return true;
}

void SegmentReader::ReadMarkers(uint32_t index, Markers* markers, CommSnapshot* comm) const {
  if ((comm->flags & segment::kFlagHostCalls) != 0) {
    // A call of MPI or gloo has finished when it has returned, so the return replaces the marker.
    comm->flags |= segment::kFlagMarkers;
    comm->started = comm->entered;
    comm->finished = std::min(comm->returned, comm->entered);
    if ((comm->flags & segment::kFlagMessages) != 0) ReadMessages(index, comm);
    comm->p2p_started = comm->p2p_entered;
    comm->p2p_finished = std::min(comm->p2p_returned, comm->p2p_entered);
    return;
  }
  if ((comm->flags & segment::kFlagMarkers) == 0) return;
  if (!comm->graph_launches.empty()) ReadGraphMarkers(index, markers);
  Copy<segment::MarkerLane[segment::kMarkerLanes]> lanes;
  if (!file_.ReadAt(segment::CommBlockOffset(index) + segment::kMarkersOffset, &lanes)) return;
  for (const segment::MarkerLane& lane : *lanes) {
    markers->started = std::max(markers->started, Get(lane.started));
    markers->finished = std::max(markers->finished, Get(lane.finished));
    markers->p2p_started = std::max(markers->p2p_started, Get(lane.p2p_started));
    markers->p2p_finished = std::max(markers->p2p_finished, Get(lane.p2p_finished));
  }
  // The reader reads the markers after the counters, so the markers may be ahead.
  comm->started = std::min(markers->started, comm->entered);
  comm->finished = std::min(markers->finished, comm->entered);
  comm->p2p_started = std::min(markers->p2p_started, comm->p2p_entered);
  comm->p2p_finished = std::min(markers->p2p_finished, comm->p2p_entered);
}

void SegmentReader::ReadMessages(uint32_t index, CommSnapshot* comm) const {
  Copy<segment::MessageTable> table;
  if (file_.ReadAt(segment::CommBlockOffset(index) + segment::kMarkersOffset, &table))
    CopyMessages(*table, comm);
}

void SegmentReader::ReadGraphMarkers(uint32_t index, Markers* markers) const {
  Copy<segment::GraphLane[segment::kGraphLanes]> lanes;
  if (!file_.ReadAt(segment::CommBlockOffset(index) + segment::kGraphLanesOffset, &lanes)) return;
  const auto add = [](uint64_t base, uint64_t word, uint64_t* started, uint64_t* finished) {
    if (word == 0) return;
    *started = std::max(*started, base + (word & UINT32_MAX));
    *finished = std::max(*finished, base + (word >> 32));
  };
  for (const segment::GraphLane& lane : *lanes) {
    add(Get(lane.base), Get(lane.reached), &markers->started, &markers->finished);
    add(Get(lane.p2p_base), Get(lane.p2p_reached), &markers->p2p_started, &markers->p2p_finished);
  }
}

std::vector<NetworkSnapshot> SegmentReader::ReadNetwork(const HostClock* host, int64_t ahead_ns,
                                                        const std::vector<uint64_t>* wanted) {
  Copy<SegmentHeader> header;
  if (!file_.ReadHeader(&header).ok()) return {};
  const std::vector<NetworkEntryCopy> entries =
      ReadNetworkEntries(file_, Get(header->network_chunks));
  if (entries.empty()) return {};
  // Read after the entries: a block that another communicator has taken since does not fit them.
  const std::map<uint32_t, NetworkComm> comms = ReadNetworkComms(
      file_, entries, std::min(Get(header->comm_count), segment::kCommCapacity), wanted);
  std::vector<NetworkSnapshot> all =
      ToNetworkSnapshots(entries, comms, Clock(*header, host, ahead_ns));
  const bool is_whole = Get(header->lost_network_states) == 0 &&
                        (Get(header->left_out) & segment::kLeftOutNetwork) == 0;
  for (NetworkSnapshot& one : all) one.is_whole = one.is_whole && is_whole;
  return all;
}

}  // namespace rollcall
