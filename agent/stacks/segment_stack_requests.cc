// SPDX-License-Identifier: Apache-2.0
#include "agent/stacks/segment_stack_requests.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sched.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "agent/processes/as_user.h"
#include "agent/processes/open_in_root.h"
#include "agent/processes/proc_files.h"
#include "agent/segments/segment_file.h"
#include "agent/segments/word_copies.h"
#include "base/monotonic_clock.h"
#include "base/open_regular.h"
#include "interpose/measure_room.h"

namespace rollcall {
namespace {

using segment::StackSlot;

// A sleeping thread answers within some ten microseconds. A sleep of our own would take longer,
// several times so on a virtual machine, so yield first.
constexpr int64_t kYieldNs = 1'000'000;
constexpr int64_t kPauseNs = 50'000;
constexpr int64_t kMemoryNs = 50'000'000;  // from the answer to the descriptor of the memory
constexpr size_t kFirstRequests = 3;       // one by one, until a thread answers
constexpr size_t kSlotBytes = sizeof(StackSlot);

// Starts at the current time: the numbers must differ from those of an earlier requester.
uint64_t NextRequestNumber() {
  static std::atomic<uint64_t> next{static_cast<uint64_t>(UnixNs()) >> 8};
  return ++next;
}

// A read from another file could block.
bool IsProcFile(int fd) {
  struct statfs about;
  return fstatfs(fd, &about) == 0 && about.f_type == PROC_SUPER_MAGIC;
}

// Returns the number after `label` in a status file; 0 if there is no such label.
uint32_t ReadCount(const std::string& status, const std::string& label) {
  const size_t at = status.find(label);
  uint32_t count = 0;
  if (at == std::string::npos) return 0;
  const size_t begin = at + label.size();
  const bool is_number = absl::SimpleAtoi(
      absl::string_view(status).substr(begin, status.find('\n', begin) - begin), &count);
  return is_number ? count : 0;
}

const ProcMap* FindSegmentMap(const std::vector<ProcMap>& maps) {
  for (const ProcMap& map : maps) {
    const std::string name = map.path.substr(map.path.rfind('/') + 1);
    if (IsSegmentName(name) && map.offset == 0 && !map.deleted) return &map;
  }
  return nullptr;
}

// The folder of the segment, opened once, so that all that follows happens in it. An absolute link
// in the path stays in the root of the process.
absl::StatusOr<UniqueFd> OpenFolder(const std::string& root, const std::string& segment) {
  const std::string path = segment.substr(0, segment.rfind('/') + 1);
  UniqueFd folder = OpenInRoot(root, path, O_RDONLY | O_DIRECTORY);
  if (folder.valid()) return folder;
  return absl::PermissionDeniedError(
      absl::StrCat("cannot open the folder of its segment, ", path, ": ", strerror(errno)));
}

absl::StatusOr<UniqueFd> OpenSegment(const UniqueFd& folder, const ProcMap& map) {
  const std::string name = map.path.substr(map.path.rfind('/') + 1);
  UniqueFd fd = OpenRegularAt(folder.get(), name, O_RDWR);
  if (!fd.valid() && errno != EINVAL) {
    return absl::PermissionDeniedError(
        absl::StrCat("cannot write its segment ", map.path, ": ", strerror(errno)));
  }
  if (!fd.valid() || !IsMapped(fd.get(), map)) {
    return absl::NotFoundError("its segment is not where it was made");
  }
  return fd;
}

}  // namespace

absl::StatusOr<SegmentStackRequests::Answers> SegmentStackRequests::ReadAnswers(int fd) {
  alignas(segment::SegmentHeader) unsigned char bytes[sizeof(segment::SegmentHeader)];
  const auto* header = reinterpret_cast<const segment::SegmentHeader*>(bytes);
  if (pread(fd, bytes, sizeof(bytes), 0) != static_cast<ssize_t>(sizeof(bytes)) ||
      Get(header->magic) != segment::kMagic || header->layout_version != segment::kLayoutVersion ||
      header->stack_slots != segment::kStackSlots) {
    return absl::UnavailableError("its library is of another version than this program");
  }
  const auto signal = static_cast<int>(Get(header->stack_signal));
  if (signal < SIGRTMIN || signal > SIGRTMAX) {
    return absl::UnavailableError(
        "its library answers no signal (ROLLCALL_STACK_SIGNAL=0, no communicator yet, none was "
        "free, or a thread has too small a stack for signals)");
  }
  return Answers{signal, Get(header->seccomp_filters)};
}

absl::StatusOr<std::unique_ptr<SegmentStackRequests>> SegmentStackRequests::Open(
    const std::string& proc_root, pid_t pid, const std::vector<ProcMap>& maps) {
  const ProcMap* map = FindSegmentMap(maps);
  if (map == nullptr) {
    return absl::NotFoundError("Rollcall's library is not in there, or has seen no NCCL call yet");
  }
  const std::optional<FileUser> user = ReadFileUser(proc_root, pid);
  if (!user.has_value()) {
    return absl::PermissionDeniedError("it runs with the rights of several users at once");
  }
  const AsUser as_user(*user);  // from here on, the process's user owns every name
  if (!as_user.acts()) {
    return absl::PermissionDeniedError(
        absl::StrCat("it belongs to user ", user->uid, ": this program may not act for that user"));
  }
  const std::string root = ProcPath(proc_root, pid, "root");
  absl::StatusOr<UniqueFd> folder = OpenFolder(root, map->path);
  if (!folder.ok()) return folder.status();
  absl::StatusOr<UniqueFd> segment = OpenSegment(*folder, *map);
  if (!segment.ok()) return segment.status();
  const absl::StatusOr<Answers> answers = ReadAnswers(segment->get());
  if (!answers.ok()) return answers.status();
  if (flock(segment->get(), LOCK_EX | LOCK_NB) != 0) {
    return absl::UnavailableError("another program is taking its stacks at this moment");
  }
  std::unique_ptr<SegmentStackRequests> requests(
      new SegmentStackRequests(proc_root, pid, *std::move(segment), *answers));
  const Room room = MeasureRoom(folder->get(), absl::StrCat(root, "/dev/shm").c_str());
  if (!requests->MakeRoom(room)) {
    return absl::UnavailableError(absl::StrCat("no room for the stack area of ", map->path, ": ",
                                               room.free_bytes >> 20, " MiB are free there"));
  }
  // Without the socket only the Python frames are missing.
  auto socket = DescriptorSocket::Listen(
      *std::move(folder),
      absl::StrCat(segment::kRequesterSocketPrefix, getpid(), segment::kSocketSuffix));
  if (socket.ok()) requests->socket_ = *std::move(socket);
  return requests;
}

SegmentStackRequests::SegmentStackRequests(std::string proc_root, pid_t pid, UniqueFd segment,
                                           const Answers& answers)
    : proc_root_(std::move(proc_root)),
      pid_(pid),
      segment_(std::move(segment)),
      answers_(answers) {}

// Whether the kernel may kill the thread for the system calls of an answer. A container's filter
// was there when the segment was made.
bool SegmentStackRequests::HasLockedItselfIn(pid_t thread) const {
  constexpr uint32_t kStrict = 1;
  const std::string status =
      ReadProcFile(absl::StrCat(ProcPath(proc_root_, pid_, "task/"), thread, "/status"))
          .value_or("");
  if (ReadCount(status, "\nSeccomp:") == kStrict) return true;
  return answers_.seccomp_filters != 0 &&
         ReadCount(status, "\nSeccomp_filters:") >= answers_.seccomp_filters;
}

SegmentStackRequests::~SegmentStackRequests() {
  for (uint32_t slot = 0; slot < slots_; ++slot) {
    WriteWord(slot, offsetof(StackSlot, requested), 0);
  }
  // While a thread still writes, the room stays until the next request.
  if (FreeSlots().size() != segment::kStackSlots) return;
  fallocate(segment_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
            static_cast<off_t>(segment::kStackAreaOffset),
            static_cast<off_t>(segment::kStackAreaBytes));
}

// Reserves the pages: a handler's write to a missing page would be a SIGBUS in the job. The library
// applies the same rule to the folder's room.
bool SegmentStackRequests::MakeRoom(const Room& room) {
  for (slots_ = segment::kStackSlots; slots_ > 0; slots_ /= 2) {
    if (!HasRoom(room, slots_ * segment::kStackCopyBytes, RoomFor::kStacks)) continue;
    if (fallocate(segment_.get(), 0, static_cast<off_t>(segment::kStackAreaOffset),
                  static_cast<off_t>(slots_ * segment::kStackCopyBytes)) == 0) {
      const auto requester = static_cast<uint32_t>(getpid());
      return pwrite(segment_.get(), &requester, sizeof(requester),
                    offsetof(segment::SegmentHeader, requester)) == sizeof(requester);
    }
  }
  return false;
}

bool SegmentStackRequests::WriteWord(uint32_t slot, size_t offset, uint64_t value) {
  const size_t at = segment::kStackSlotsOffset + slot * kSlotBytes + offset;
  return pwrite(segment_.get(), &value, sizeof(value), static_cast<off_t>(at)) == sizeof(value);
}

bool SegmentStackRequests::ReadSlots() {
  return pread(segment_.get(), copy_.data(), copy_.size(),
               static_cast<off_t>(segment::kStackSlotsOffset)) ==
         static_cast<ssize_t>(copy_.size());
}

const StackSlot& SegmentStackRequests::Slot(uint32_t index) const {
  return *reinterpret_cast<const StackSlot*>(copy_.data() + index * kSlotBytes);
}

// The slots that no thread writes to. A thread that answers too late may still write to its slot.
std::vector<uint32_t> SegmentStackRequests::FreeSlots() {
  std::vector<uint32_t> free;
  if (!ReadSlots()) return free;
  for (uint32_t slot = 0; slot < segment::kStackSlots; ++slot) {
    if (Get(Slot(slot).claimed) == Get(Slot(slot).answered)) free.push_back(slot);
  }
  return free;
}

// Requests from one thread first: a program that has since installed its own handler must not get
// the signal a hundred times.
void SegmentStackRequests::RequestStacks(const std::vector<RawThread*>& threads, size_t most_bytes,
                                         int64_t thread_timeout_ns, int64_t deadline_ns) {
  parts_ = FairParts(most_bytes, threads.size());
  bool answered = false;
  const char* reason = "left alone: threads that were asked before it did not answer";
  size_t done = 0;
  while (done < threads.size() && (answered || done < kFirstRequests)) {
    std::vector<uint32_t> slots = FreeSlots();
    slots.erase(std::lower_bound(slots.begin(), slots.end(), slots_), slots.end());
    if (slots.empty()) {
      reason = "left alone: no room for its copy, because late threads may still write theirs";
      break;
    }
    const size_t count = answered ? std::min(slots.size(), threads.size() - done) : 1;
    RequestBatch(&threads[done], count, slots,
                 std::min(MonotonicNs() + thread_timeout_ns, deadline_ns));
    answered = answered || threads[done]->taken();
    done += count;
  }
  for (; done < threads.size(); ++done) {
    threads[done]->error = reason;
  }
}

void SegmentStackRequests::RequestBatch(RawThread* const* threads, size_t count,
                                        const std::vector<uint32_t>& slots, int64_t deadline_ns) {
  std::vector<Request> batch(count);
  const int64_t begun = MonotonicNs();
  size_t open = 0;
  for (size_t i = 0; i < count; ++i) {
    batch[i].thread = threads[i];
    batch[i].slot = slots[i];
    open += SendRequest(&batch[i]);
  }
  while (open > 0) {
    CollectReplies(&batch);
    open = static_cast<size_t>(std::count_if(batch.begin(), batch.end(),
                                             [](const Request& request) { return !request.done; }));
    if (open == 0 || MonotonicNs() > deadline_ns) break;
    if (MonotonicNs() - begun < kYieldNs) {
      sched_yield();
    } else {
      const timespec pause = {0, kPauseNs};
      nanosleep(&pause, nullptr);
    }
  }
  for (const Request& request : batch) {
    if (request.done) continue;
    WriteWord(request.slot, offsetof(StackSlot, requested), 0);
    request.thread->how = HowTaken::kFailed;
    request.thread->error = "did not answer the signal in time";
  }
}

// False if the request failed, and is done.
bool SegmentStackRequests::SendRequest(Request* request) {
  if (HasLockedItselfIn(request->thread->tid)) {
    request->done = true;
    request->thread->how = HowTaken::kFailed;
    request->thread->error = "left alone: it has forbidden itself system calls (seccomp)";
    return false;
  }
  request->number = NextRequestNumber() << 8 | request->slot;
  // The first thread that answers passes the memory on.
  request->with_memory = socket_ != nullptr && !memory_promised_;
  const uint64_t flags =
      request->with_memory ? uint64_t{segment::kRequestMemory} : 0;  // and zero stack_bytes
  const bool written = WriteWord(request->slot, offsetof(StackSlot, flags), flags) &&
                       WriteWord(request->slot, offsetof(StackSlot, requested), request->number);
  siginfo_t info = {};
  info.si_code = SI_QUEUE;
  info.si_pid = getpid();
  info.si_uid = getuid();
  info.si_value.sival_ptr = reinterpret_cast<void*>(request->number);
  request->sent_ns = MonotonicNs();
  if (written &&
      syscall(SYS_rt_tgsigqueueinfo, pid_, request->thread->tid, answers_.signal, &info) == 0) {
    return true;
  }
  request->done = true;
  request->thread->how = HowTaken::kFailed;
  request->thread->error =
      errno == ESRCH ? "it has ended" : absl::StrCat("could not be asked: ", strerror(errno));
  return false;
}

void SegmentStackRequests::CollectReplies(std::vector<Request>* batch) {
  if (!ReadSlots()) return;
  for (Request& request : *batch) {
    if (request.done || Get(Slot(request.slot).answered) != request.number) continue;
    ReadCopy(&request);
    request.done = true;
    WriteWord(request.slot, offsetof(StackSlot, requested), 0);
    memory_promised_ = memory_promised_ || request.with_memory;
  }
}

void SegmentStackRequests::ReadCopy(Request* request) {
  RawThread* thread = request->thread;
  const off_t at =
      static_cast<off_t>(segment::kStackAreaOffset + request->slot * segment::kStackCopyBytes);
  const size_t bytes = std::min<size_t>(
      {Get(Slot(request->slot).stack_bytes), segment::kMaxStackInCopy, parts_.most()});
  parts_.Take(bytes);
  thread->stack.resize(bytes);
  thread->stopped_ns = MonotonicNs() - request->sent_ns;
  if (pread(segment_.get(), &thread->registers, sizeof(thread->registers), at) !=
          static_cast<ssize_t>(sizeof(thread->registers)) ||
      pread(segment_.get(), thread->stack.data(), bytes,
            at + static_cast<off_t>(segment::kRegistersBytes)) != static_cast<ssize_t>(bytes)) {
    thread->error = "its answer could not be read";
    thread->how = HowTaken::kFailed;
    return;
  }
  thread->stack_base = StackPointer(thread->registers);
  thread->how = HowTaken::kAnswered;
}

void SegmentStackRequests::ReceiveMemory() {
  if (socket_ == nullptr || !memory_promised_) return;
  std::optional<PassedDescriptor> passed = socket_->Receive(kMemoryNs);
  if (!passed.has_value() || passed->pid != pid_ || passed->kind != segment::kMemoryDescriptor ||
      !IsProcFile(passed->fd.get())) {
    return;
  }
  memory_ = std::move(passed->fd);
}

UniqueFd SegmentStackRequests::TakeMemory() {
  ReceiveMemory();
  return std::move(memory_);
}

}  // namespace rollcall
