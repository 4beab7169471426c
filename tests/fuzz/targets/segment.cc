// SPDX-License-Identifier: Apache-2.0
// Segments, as an untrusted process writes them: the reader, and the update that the agent makes of
// what it has read. The process may change the file between two reads, and between two calls of
// pread() within a read.
#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/str_replace.h"
#include "agent/collector/comm_update.h"
#include "agent/processes/this_host.h"
#include "agent/segments/segment_reader.h"
#include "fuzz_target.h"
#include "interpose/segment_messages.h"
#include "memory_file.h"
#include "segment_pieces.h"

namespace rollcall {
namespace fuzz {
namespace {

constexpr int64_t kNowNs = 1'800'000'000'000'000'000;
constexpr size_t kMostRecordsSent = 256;

void CheckText(const std::string& text) {
  for (const char c : text) Promise(c >= ' ' && c <= '~', "all text is printable ASCII");
}

void CheckTime(int64_t time_ns) {
  Promise(time_ns >= 0 && time_ns <= kLatestNs, "times have a limit");
}

void CheckMessages(const CommSnapshot& comm) {
  Promise(comm.messages.size() <= segment::kMessageEntries, "a table of messages has a capacity");
  for (const MessagesSnapshot& messages : comm.messages) {
    Promise(messages.peer >= segment::kAnySource && messages.peer < comm.size,
            "a peer is a rank of the communicator, or any");
    Promise(messages.tag >= segment::kMixedTags, "a tag is one of MPI's, or one of ours");
  }
}

void CheckComm(const CommSnapshot& comm) {
  CheckMessages(comm);
  CheckText(comm.name);
  CheckTime(comm.init_entered_ns);
  CheckTime(comm.last_entered_ns);
  Promise(comm.records.size() <= segment::kRingCapacity, "a ring has a capacity");
  uint64_t next = 0;
  for (const RecordSnapshot& record : comm.records) {
    Promise(record.index >= next, "records ascend");
    Promise(record.returned_ns == 0 || record.returned_ns >= record.entered_ns,
            "a call returns after it was entered");
    CheckTime(record.entered_ns);
    CheckText(record.shape);
    next = record.index + 1;
  }
}

void CheckSnapshot(const SegmentSnapshot& snapshot) {
  for (const std::string* text :
       {&snapshot.host, &snapshot.boot_id, &snapshot.job, &snapshot.error, &snapshot.phase}) {
    CheckText(*text);
  }
  CheckText(absl::StrReplaceAll(snapshot.command, {{"\n", " "}}));
  for (const std::string& site : snapshot.sites) CheckText(site);
  for (const BlockedSnapshot& blocked : snapshot.blocked) CheckText(blocked.key);
  CheckTime(snapshot.exit_ns);
  CheckTime(snapshot.error_ns);
  Promise(snapshot.global_rank >= -1 && snapshot.world_size >= -1, "ranks are numbers, or none");
  for (const CommSnapshot& comm : snapshot.communicators) CheckComm(comm);
}

void CheckNetwork(const std::vector<NetworkSnapshot>& all) {
  Promise(all.size() <= kMostNetworkComms, "communicators have a limit");
  for (const NetworkSnapshot& comm : all) {
    Promise(!comm.states.empty() && comm.states.size() <= kMostNetworkStates,
            "states have a limit");
    for (const NetworkStateSnapshot& state : comm.states) {
      Promise(state.ended <= state.begun && state.peer >= 0, "a state is consistent");
      Promise(static_cast<uint32_t>(state.wait) < kNetworkWaits, "a wait is one of ours");
      CheckTime(state.since_ns);
    }
  }
}

// What the collector does with a snapshot.
void Send(const SegmentSnapshot& snapshot, std::map<uint32_t, CommHistory>* histories) {
  for (const CommSnapshot& comm : snapshot.communicators) {
    v1::CommUpdate update;
    const HostWaits waits = FindHostWaits(snapshot, comm);
    FillProgress(comm, waits, kNowNs, &(*histories)[comm.index], &update);
    FillRecords(comm, kMostRecordsSent, update.mutable_records());
    ApplyWaitFloor(kNowNs / 2, &update);
    const v1::RecordBatch& batch = update.records();
    Promise(batch.op_size() == batch.position_size() && batch.op_size() == batch.flags_size(),
            "all columns have one length");
  }
}

// The process that owns the segment.
class Process {
 public:
  explicit Process(uint64_t most_bytes) : most_bytes_(most_bytes) {
    file_.Resize(0);
    file_.Resize(most_bytes);
    current_ = this;
  }
  ~Process() { current_ = nullptr; }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  const MemoryFile& file() const { return file_; }
  void Write(const Piece& piece) {
    if (piece.bytes.empty()) {
      file_.Resize(std::min(piece.offset, most_bytes_));
    } else {
      file_.Write(piece.offset, piece.bytes, most_bytes_);
    }
  }
  // The reader's next pread() but `calls` finds the piece.
  void WriteLater(int calls, const Piece& piece) { later_.emplace_back(calls, piece); }

  static void BeforePread() {
    if (current_ != nullptr) current_->WriteWhatIsDue();
  }

 private:
  void WriteWhatIsDue() {
    for (auto& [calls, piece] : later_) {
      if (calls-- == 0) Write(piece);
    }
  }

  static inline thread_local Process* current_ = nullptr;
  static inline MemoryFile& file_ = *new MemoryFile();
  const uint64_t most_bytes_;
  std::vector<std::pair<int, Piece>> later_;
};

class Reading {
 public:
  explicit Reading(uint8_t flags) : by_host_clock_((flags & kByHostClock) != 0) {}

  void Read(const MemoryFile& file) {
    if (reader_ == nullptr) {
      auto opened = SegmentReader::FromDescriptor("x.seg", UniqueFd(file.Duplicate()));
      if (!opened.ok()) return;
      reader_ = *std::move(opened);
    }
    (void)reader_->file().Claim();
    static const auto& host = *new HostClock();
    const auto snapshot = reader_->Read(by_host_clock_ ? &host : nullptr, 0);
    if (!snapshot.ok()) return;
    CheckSnapshot(*snapshot);
    Send(*snapshot, &histories_);
    CheckNetwork(reader_->ReadNetwork(by_host_clock_ ? &host : nullptr, 0));
  }

 private:
  const bool by_host_clock_;
  std::unique_ptr<SegmentReader> reader_;
  std::map<uint32_t, CommHistory> histories_;
};

void Run(Input input) {
  const auto flags = input.Take<uint8_t>();
  const auto kilobytes = input.Take<uint16_t>();
  Process process((flags & kCutShort) != 0 ? uint64_t{kilobytes} << 10 : segment::kMappedBytes);
  if ((flags & kOfThisBoot) != 0) {
    process.Write({offsetof(segment::SegmentHeader, boot_id), OwnBootId()});
  }
  Reading reading(flags);
  while (!input.empty()) {
    const auto kind = input.Take<uint8_t>();
    if (kind == kSegmentRead) {
      reading.Read(process.file());
    } else if (kind == kSegmentLater) {
      const auto calls = input.Take<uint8_t>();
      process.WriteLater(calls, TakePiece(input.Take<uint8_t>(), &input));
    } else {
      process.Write(TakePiece(kind, &input));
    }
  }
  reading.Read(process.file());
}

const Registered kTarget({"segment", 16384, &Run});

}  // namespace

}  // namespace fuzz
}  // namespace rollcall

// The linker gives all calls of pread() to the wrapper (CMakeLists.txt).
extern "C" {
ssize_t __real_pread(int fd, void* to, size_t size, off_t offset);
ssize_t __wrap_pread(int fd, void* to, size_t size, off_t offset);

ssize_t __wrap_pread(int fd, void* to, size_t size, off_t offset) {
  rollcall::fuzz::Process::BeforePread();
  return __real_pread(fd, to, size, offset);
}
}
