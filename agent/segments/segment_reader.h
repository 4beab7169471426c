// SPDX-License-Identifier: Apache-2.0
// Reads segment files of running and of ended processes.
//
// An untrusted process writes the segment. So the reader copies the words, checks the copy, and
// uses only the copy. It reads the file and never maps it, so that a file that is truncated during
// the read is a short read and not a SIGBUS. All text is printable ASCII. The reader leaves out
// inconsistent parts and reports them in `warnings`.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "agent/segments/segment_network.h"
#include "agent/segments/segment_owner.h"
#include "agent/segments/tick_clock.h"
#include "base/unique_fd.h"
#include "interpose/comm_kind.h"
#include "interpose/segment.h"

namespace rollcall {

// Times are nanoseconds of the clock that Read() gets, or since the Unix epoch without one; 0 if
// never.
struct RecordSnapshot {
  uint64_t index = 0;
  uint64_t position = 0;
#define RECORD_COLUMN(type, name) type name = 0;
#include "proto/record_columns.def"
  std::string shape;  // "[1024, 4096]", "all_to_all_single [8, 4]", "barrier"; empty if unknown
  uint32_t site = 0;  // 1 + index into SegmentSnapshot::sites; 0 if unknown
  int64_t entered_ns = 0;
  int64_t returned_ns = 0;
};

// The launch of a CUDA graph that holds calls of the communicator.
struct GraphLaunchSnapshot {
  uint32_t graph = 0;         // nth graph of the process that holds calls, from 1
  uint64_t launch = 0;        // of this graph, from 1
  uint64_t first_record = 0;  // index of its first call's record
  uint64_t records = 0;       // number of its calls on this communicator
};

// Messages of MPI with one peer and one tag (interpose/segment_messages.h).
struct MessagesSnapshot {
  int32_t peer = -1, tag = -1;
  uint32_t sends = 0, receives = 0, sends_awaited = 0, receives_awaited = 0;
};

struct CommSnapshot {
#define COMM_COUNT(type, name) uint64_t name = 0;
#define COMM_SEEN(type, name) uint64_t name = 0;
#define COMM_TIME(name) int64_t name##_ns = 0;
#include "proto/facts.def"
  uint32_t index = 0;
  segment::CommState state = segment::CommState::kEmpty;
  uint32_t flags = 0;
  CommKind kind = CommKind::kNccl;
  uint64_t id = 0, parent_id = 0, split_id = 0;
  uint64_t base_id = 0;                    // hash of its unique id; 0 if unknown
  uint64_t grow_base_id = 0, grow_id = 0;  // of the grown communicator
  int32_t rank = -1, size = 0, device = -1, parent_rank = -1, parent_size = 0;
  std::string name;
  int64_t last_entered_ns = 0;
  uint64_t init_ticks = 0;  // by the process's clock: identifies the communicator in the block
  uint32_t async_error = 0;

  std::vector<std::pair<uint64_t, uint64_t>> checkpoints;  // position, signature; ascending
  std::vector<RecordSnapshot> records;  // in order; new records, and records that have changed
  uint64_t recorded = 0;                // index of the next record
  uint64_t records_lost = 0;            // overwritten before they were read, in total
  std::vector<GraphLaunchSnapshot> graph_launches;  // the newest, in order
  std::vector<MessagesSnapshot> messages;           // by peer and tag
  bool messages_lost = false, messages_cancelled = false;
};

struct BlockedSnapshot {
  uint32_t tid = 0;
  uint32_t op = 0;
  uint32_t comm = segment::kNoComm;  // index
  int64_t since_ns = 0;
  uint64_t stream = 0;  // the stream that the call waits for; for MPI calls 1 + the position
  // The key of a store that the call waits for, the first of `keys`, and the wait's time-out, or 0.
  // Empty if there is no key.
  std::string key = {};
  uint32_t keys = 0;
  uint64_t key_timeout_ms = segment::kUnknownTimeout;
  uint64_t polls = 0;  // of a loop of tests: their number, and the time spent in them
  int64_t poll_ns = 0;
};

// A Python exception that ended a thread.
struct ThreadFailureSnapshot {
  std::string thread;  // its name in Python
  std::string error;   // may be empty
  int64_t failed_ns = 0;
};

struct SegmentSnapshot {
#define PROCESS_TEXT(name) std::string name;
#define PROCESS_NUMBER(type, name) type name = 0;
#define PROCESS_COUNT(name) uint64_t name = 0;
#include "proto/facts.def"
  int32_t pid = 0;  // in its own pid namespace, like BlockedSnapshot::tid
  uint64_t start_time = 0;
  std::string host, boot_id, job;
  int32_t global_rank = -1, world_size = -1, local_rank = -1;
  bool exited = false;
  int64_t exit_ns = 0;
  std::string error;  // an uncaught Python exception, or empty
  int64_t error_ns = 0;
  ThreadFailureSnapshot thread_failure;  // the newest
  int64_t step = -1;                     // -1 if the program does not report steps
  std::string phase;
  int64_t newest_ns = 0;           // the newest timestamp in the file
  std::vector<std::string> sites;  // of calls: "/x/train.py:57 in train_epoch"
  std::vector<BlockedSnapshot> blocked;
  std::vector<CommSnapshot> communicators;
  std::vector<std::string> warnings;  // parts left out, and the reasons
};

class SegmentReader {
 public:
  // Errors: kNotFound, kInvalidArgument (not a segment, or another layout version, which the
  // message names), kDataLoss (truncated), kFailedPrecondition (incomplete: the process is creating
  // it, or ended before it was complete), kUnavailable (cannot be opened now).
  static absl::StatusOr<std::unique_ptr<SegmentReader>> Open(const std::string& path);
  // Reads an open file. Messages call the file `path`.
  static absl::StatusOr<std::unique_ptr<SegmentReader>> FromDescriptor(const std::string& path,
                                                                       UniqueFd fd);
  // Another reader of the same file, for another thread. Errors as for Open(), and kUnavailable.
  absl::StatusOr<std::unique_ptr<SegmentReader>> Again() const;
  ~SegmentReader() = default;
  SegmentReader(const SegmentReader&) = delete;
  SegmentReader& operator=(const SegmentReader&) = delete;

  const std::string& path() const { return path_; }

  // Whether the file has been unlinked. A file with this name now is another file.
  bool Deleted() const;
  bool IsFile(uint64_t device, uint64_t inode) const {
    return device == device_ && inode == inode_;
  }
  uint64_t device() const { return device_; }
  uint64_t inode() const { return inode_; }
  uint32_t user() const { return user_; }  // who owns the file

  // Whether a read may block without limit: the file is on a network or FUSE file system.
  bool MayBlock() const { return may_block_; }

  HeldLock Lock() const { return QueryLock(fd_.get()); }

  // The owner by the header, and the state of the life lock. Errors as for Open().
  absl::StatusOr<SegmentClaim> Claim() const;

  // Returns the current state of the segment, without the records that an earlier Read() returned
  // completed. `host`: the clocks of this host; the process's CLOCK_MONOTONIC is `ahead_ns` ahead
  // of them (HostClock::ClockFor). Without `host`, times are on the wall clock. Errors as for
  // Open().
  absl::StatusOr<SegmentSnapshot> Read(const HostClock* host = nullptr, int64_t ahead_ns = 0);

  // Returns the states of NCCL's transfers over the network, by communicator; of ended
  // communicators none. `host` and `ahead_ns` as for Read(). `wanted`: ids of communicators, of
  // which the first kMostNetworkComms in the segment are read; nullptr means all ids. Empty if the
  // library records none, and on errors.
  std::vector<NetworkSnapshot> ReadNetwork(const HostClock* host = nullptr, int64_t ahead_ns = 0,
                                           const std::vector<uint64_t>* wanted = nullptr);

  // The next Read() returns every record that the ring still holds.
  void StartOver() { progress_.clear(); }

 private:
  struct ReadProgress {
    uint64_t id = 0;
    uint64_t next = 0;  // Read() has returned all records before this one, completed
    uint64_t lost = 0;
    uint64_t started = 0, finished = 0, p2p_started = 0, p2p_finished = 0;
  };

  SegmentReader(std::string path, UniqueFd fd) : path_(std::move(path)), fd_(std::move(fd)) {}
  bool ReadAt(uint64_t offset, void* out, size_t size) const;
  const TickClock& Clock(const segment::SegmentHeader& header, const HostClock* host,
                         int64_t ahead_ns);
  bool ReadComm(uint32_t index, const TickClock& clock, SegmentSnapshot* snapshot);
  void ReadSites(uint32_t count);
  std::vector<NetworkEntryCopy> ReadNetworkEntries(uint32_t chunks) const;
  std::map<uint32_t, NetworkComm> ReadNetworkComms(const std::vector<NetworkEntryCopy>& entries,
                                                   uint32_t count,
                                                   const std::vector<uint64_t>* wanted) const;
  void ReadMarkers(uint32_t index, ReadProgress* progress, CommSnapshot* comm) const;
  void ReadGraphMarkers(uint32_t index, ReadProgress* progress) const;
  void ReadMessages(uint32_t index, CommSnapshot* comm) const;
  void ReadRecords(const TickClock& clock, uint64_t capacity, ReadProgress* progress,
                   CommSnapshot* comm);
  bool ReadRing(uint32_t index, uint64_t capacity, uint64_t begin, uint64_t end,
                segment::RecordEntry* records) const;
  const std::string& ReadShape(uint8_t number);

  const std::string path_;
  const UniqueFd fd_;
  uint64_t device_ = 0, inode_ = 0;
  uint32_t user_ = 0;
  bool may_block_ = false;
  std::vector<ReadProgress> progress_;
  // Two copies of new records, made one after the other; nullptr if there were none so far.
  std::unique_ptr<segment::RecordEntry[]> records_, again_;
  std::vector<std::string> sites_;   // read so far; a site never changes
  std::vector<std::string> shapes_;  // by index; a shape never changes; empty if not read yet
  std::optional<TickClock> clock_;
};

// Whether the name is that of a segment file: "<pid>-<start time>.seg", or
// "<pid>-<start time>-<n>.seg" if a process of another pid namespace already uses the first name.
bool IsSegmentName(const std::string& name);

// Returns at most `most` bytes of the text, up to its NUL. Replaces all but printable ASCII by '?'.
std::string Printable(const char* text, size_t most);

}  // namespace rollcall
