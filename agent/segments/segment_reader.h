// SPDX-License-Identifier: Apache-2.0
// Reads segment files, live ones and those of processes long gone.
//
// A segment is written by a process that we do not trust: its words are copied
// out, checked, and only the copy is used. The file is read, never mapped: one
// that is cut short under us is then a short read and not a SIGBUS. Text comes
// out as printable ASCII. The reader leaves out what is inconsistent and says so in `notes`.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "agent/processes/unique_fd.h"
#include "agent/segments/segment_owner.h"
#include "agent/segments/tick_clock.h"
#include "interpose/segment.h"

namespace rollcall {

// Times in nanoseconds of the clock that Read() is given, else since the Unix epoch; 0: never.
struct RecordSnapshot {
  uint64_t index = 0;
  uint64_t position = 0;
  uint8_t op = 0, dtype = 0, reduction = 0, result = 0, flags = 0;
  int32_t peer = -1;
  uint16_t group = 0;
  uint32_t thread = 0;
  uint64_t count = 0, stream = 0, caller = 0;
  std::string shape;  // "[1024, 4096]", "all_to_all_single [8, 4]", "barrier"; "": not known
  uint32_t site = 0;  // 1 + index into SegmentSnapshot::sites; 0: not known
  int64_t entered_ns = 0;
  int64_t returned_ns = 0;
};

// The launch of a CUDA graph that holds calls of the communicator.
struct GraphLaunchSnapshot {
  uint32_t graph = 0;         // nth graph of the process that holds calls, from 1
  uint64_t launch = 0;        // of this graph, from 1
  uint64_t first_record = 0;  // index of its first call's record
  uint64_t records = 0;       // so many calls
};

struct CommSnapshot {
#define COMM_COUNT(type, name) uint64_t name = 0;
#define COMM_SEEN(type, name) uint64_t name = 0;
#define COMM_TIME(name) int64_t name##_ns = 0;
#include "proto/facts.def"
  uint32_t index = 0;
  segment::CommState state = segment::CommState::kEmpty;
  uint32_t flags = 0;
  uint64_t id = 0, parent_id = 0, split_id = 0;
  uint64_t base_id = 0;                    // hash of its unique id; 0: not known
  uint64_t grow_base_id = 0, grow_id = 0;  // what it will be grown to, if base_id is not 0
  int32_t rank = -1, size = 0, device = -1, parent_rank = -1, parent_size = 0;
  std::string name;
  int64_t last_entered_ns = 0;
  uint64_t init_ticks = 0;  // by the process's clock: another owner of the block has another one
  uint32_t async_error = 0;

  std::vector<std::pair<uint64_t, uint64_t>> checkpoints;  // position, signature; ascending
  std::vector<RecordSnapshot> records;  // in order; those not given before, and those changed since
  uint64_t recorded = 0;                // index of the record that comes next
  uint64_t records_lost = 0;            // overwritten before we came, in all
  std::vector<GraphLaunchSnapshot> graph_launches;  // the newest, in order
};

struct BlockedSnapshot {
  uint32_t tid = 0;
  uint32_t op = 0;
  uint32_t comm = segment::kNoComm;  // index
  int64_t since_ns = 0;
  uint64_t stream = 0;  // what it waits for; for MPI's calls 1 + the position
};

struct SegmentSnapshot {
#define PROCESS_TEXT(name) std::string name;
#define PROCESS_NUMBER(type, name) type name = 0;
#define PROCESS_COUNT(name) uint64_t name = 0;
#include "proto/facts.def"
  int32_t pid = 0;  // as the process sees itself, as is BlockedSnapshot::tid
  uint64_t start_time = 0;
  std::string host, boot_id, job;
  int32_t global_rank = -1, world_size = -1, local_rank = -1;
  bool exited = false;
  int64_t exit_ns = 0;
  std::string error;  // an exception of Python's that nobody caught; "": none
  int64_t error_ns = 0;
  int64_t step = -1;  // -1: the program does not say
  std::string phase;
  int64_t newest_ns = 0;  // the newest time stamp in the file
  std::vector<std::string> sites;  // lines that made calls: "/x/train.py:57 in train_epoch"
  std::vector<BlockedSnapshot> blocked;
  std::vector<CommSnapshot> communicators;
  std::vector<std::string> notes;  // what was left out, and why
};

class SegmentReader {
 public:
  // Errors: kNotFound, kInvalidArgument (not a segment, foreign layout: says
  // which), kDataLoss (cut short), kFailedPrecondition (not complete: it is just
  // being made, or was given up), kUnavailable (cannot be opened now).
  static absl::StatusOr<std::unique_ptr<SegmentReader>> Open(const std::string& path);
  // The same for a file that is open already; `path` is what it is called in messages.
  static absl::StatusOr<std::unique_ptr<SegmentReader>> Take(const std::string& path, UniqueFd fd);
  ~SegmentReader() = default;
  SegmentReader(const SegmentReader&) = delete;
  SegmentReader& operator=(const SegmentReader&) = delete;

  const std::string& path() const { return path_; }

  // Whether the file has no name any more: one that has it now is another.
  bool Deleted() const;
  bool IsFile(uint64_t device, uint64_t inode) const { return device == device_ && inode == inode_; }
  uint64_t device() const { return device_; }
  uint64_t inode() const { return inode_; }

  // Whether reading it may block for as long as somebody else likes: it lies on a file system that a
  // server or a program answers for.
  bool MayBlock() const { return may_block_; }

  HeldLock Lock() const { return AskLock(fd_.get()); }

  // Whose it says it is, and whether its lock is held. Errors as of Read().
  absl::StatusOr<SegmentClaim> Claim() const;

  // The segment as it stands. Records that an earlier Read gave whole (returned)
  // are not given again. `host`: the clocks for a process of this host, which is `ahead_ns` ahead
  // of them (HostClock::ClockFor); without it the times are those of the wall
  // clock.
  absl::StatusOr<SegmentSnapshot> Read(const HostClock* host = nullptr, int64_t ahead_ns = 0);

  // The next Read gives every record that is still there.
  void StartOver() { seen_.clear(); }

 private:
  struct Seen {
    uint64_t id = 0;
    uint64_t next = 0;  // records before this one were given whole
    uint64_t lost = 0;
    uint64_t started = 0, finished = 0, p2p_started = 0, p2p_finished = 0;
  };

  SegmentReader(std::string path, UniqueFd fd) : path_(std::move(path)), fd_(std::move(fd)) {}
  bool ReadAt(uint64_t offset, void* out, size_t size) const;
  const TickClock& Clock(const segment::SegmentHeader& header, const HostClock* host,
                         int64_t ahead_ns);
  bool ReadComm(uint32_t index, const TickClock& clock, SegmentSnapshot* snapshot);
  void ReadSites(uint32_t count);
  void ReadMarkers(uint32_t index, Seen* seen, CommSnapshot* comm) const;
  void ReadGraphMarkers(uint32_t index, Seen* seen) const;
  void ReadRecords(const TickClock& clock, uint64_t capacity, Seen* seen, CommSnapshot* comm);
  const std::string& ReadShape(uint8_t number);

  const std::string path_;
  const UniqueFd fd_;
  uint64_t device_ = 0, inode_ = 0;
  bool may_block_ = false;
  std::vector<Seen> seen_;
  std::vector<std::string> sites_;   // those read; they never change
  std::vector<std::string> shapes_;  // likewise, by index; "": not read yet
  std::optional<TickClock> clock_;
};

// Whether the file's name is that of a segment: "<pid>-<start time>.seg", or
// "<pid>-<start time>-<n>.seg" where a process of another pid namespace has that name.
bool IsSegmentName(const std::string& name);

// The text with everything but printable ASCII replaced by '?'.
std::string Printable(const char* text, size_t most);

}  // namespace rollcall
