// SPDX-License-Identifier: Apache-2.0
#include "agent/stacks/stack_questions.h"

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
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "agent/processes/monotonic_clock.h"
#include "agent/processes/proc_files.h"
#include "interpose/measure_room.h"

namespace rollcall {
namespace {

using segment::StackSlot;

// Threads that sleep answer within some ten microseconds each: to sleep oneself would take longer,
// on a virtual machine several times so.
constexpr int64_t kYieldNs = 1'000'000;
constexpr int64_t kPauseNs = 50'000;
constexpr int64_t kMemoryNs = 50'000'000;  // for the memory to come after the answer
constexpr size_t kFirstAsked = 3;          // one by one, until one answers
constexpr size_t kSlotBytes = sizeof(StackSlot);

// Numbers of questions must differ from those of an asker before us.
uint64_t NextQuestion() {
  static std::atomic<uint64_t> next{static_cast<uint64_t>(UnixNs()) >> 8};
  return ++next;
}

uint64_t Get(const segment::Word& word) { return word.load(std::memory_order_relaxed); }
uint32_t Get(const segment::HalfWord& word) { return word.load(std::memory_order_relaxed); }

const ProcMap* FindSegmentMap(const std::vector<ProcMap>& maps) {
  for (const ProcMap& map : maps) {
    if (absl::EndsWith(map.path, ".seg") && map.offset == 0 && !map.deleted) return &map;
  }
  return nullptr;
}

absl::StatusOr<UniqueFd> OpenSegment(const std::string& path, uint64_t inode) {
  UniqueFd fd(open(path.c_str(), O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
  if (!fd.valid()) {
    return absl::PermissionDeniedError(
        absl::StrCat("cannot write its segment ", path, ": ", strerror(errno)));
  }
  struct stat about;
  if (fstat(fd.get(), &about) != 0 || !S_ISREG(about.st_mode) || about.st_ino != inode) {
    return absl::NotFoundError("its segment is not where it was made");
  }
  return fd;
}

absl::StatusOr<int> ReadSignal(int fd) {
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
  return signal;
}

Room RoomIn(const std::string& directory, const std::string& shared_memory) {
  const UniqueFd folder(open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  return folder.valid() ? MeasureRoom(folder.get(), shared_memory.c_str()) : Room();
}

// Reading anything else could block.
bool IsOfProc(int fd) {
  struct statfs about;
  return fstatfs(fd, &about) == 0 && about.f_type == PROC_SUPER_MAGIC;
}

}  // namespace

absl::StatusOr<std::unique_ptr<StackQuestions>> StackQuestions::Open(
    const std::string& proc_root, pid_t pid, const std::vector<ProcMap>& maps) {
  const ProcMap* map = FindSegmentMap(maps);
  if (map == nullptr) {
    return absl::NotFoundError("Rollcall's library is not in there, or has seen no NCCL call yet");
  }
  const std::string path = absl::StrCat(ProcPath(proc_root, pid, "root"), map->path);
  absl::StatusOr<UniqueFd> segment = OpenSegment(path, map->inode);
  if (!segment.ok()) return segment.status();
  const absl::StatusOr<int> signal = ReadSignal(segment->get());
  if (!signal.ok()) return signal.status();
  if (flock(segment->get(), LOCK_EX | LOCK_NB) != 0) {
    return absl::UnavailableError("another program is taking its stacks at this moment");
  }
  std::unique_ptr<StackQuestions> questions(new StackQuestions(pid, *std::move(segment), *signal));
  const std::string directory = path.substr(0, path.rfind('/') + 1);
  const Room room = RoomIn(directory, absl::StrCat(ProcPath(proc_root, pid, "root"), "/dev/shm"));
  if (!questions->MakeRoom(room)) {
    return absl::UnavailableError(absl::StrCat("no room for the stack area of ", map->path, ": ",
                                               room.free_bytes >> 20, " MiB are free there"));
  }
  // Without the socket there are no Python frames, but all else.
  auto socket = DescriptorSocket::Listen(
      absl::StrCat(directory, segment::kAskerSocketPrefix, getpid(), segment::kSocketSuffix));
  if (socket.ok()) questions->socket_ = *std::move(socket);
  return questions;
}

StackQuestions::StackQuestions(pid_t pid, UniqueFd segment, int signal)
    : pid_(pid), segment_(std::move(segment)), signal_(signal) {}

StackQuestions::~StackQuestions() {
  for (uint32_t slot = 0; slot < slots_; ++slot) {
    WriteWord(slot, offsetof(StackSlot, asked), 0);
  }
  // Where a thread still writes, its room stays until the next one asks.
  if (QuietSlots().size() != segment::kStackSlots) return;
  fallocate(segment_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
            static_cast<off_t>(segment::kStackAreaOffset),
            static_cast<off_t>(segment::kStackAreaBytes));
}

// A page that is not there when a handler writes to it would be a SIGBUS in the job. What the
// segments' folder has room for, the library knows by the same rule.
bool StackQuestions::MakeRoom(const Room& room) {
  for (slots_ = segment::kStackSlots; slots_ > 0; slots_ /= 2) {
    if (!HasRoom(room, slots_ * segment::kStackCopyBytes, RoomFor::kStacks)) continue;
    if (fallocate(segment_.get(), 0, static_cast<off_t>(segment::kStackAreaOffset),
                  static_cast<off_t>(slots_ * segment::kStackCopyBytes)) == 0) {
      const auto asker = static_cast<uint32_t>(getpid());
      return pwrite(segment_.get(), &asker, sizeof(asker),
                    offsetof(segment::SegmentHeader, asker)) == sizeof(asker);
    }
  }
  return false;
}

bool StackQuestions::WriteWord(uint32_t slot, size_t offset, uint64_t value) {
  const size_t at = segment::kStackSlotsOffset + slot * kSlotBytes + offset;
  return pwrite(segment_.get(), &value, sizeof(value), static_cast<off_t>(at)) == sizeof(value);
}

bool StackQuestions::ReadSlots() {
  return pread(segment_.get(), copy_.data(), copy_.size(),
               static_cast<off_t>(segment::kStackSlotsOffset)) ==
         static_cast<ssize_t>(copy_.size());
}

const StackSlot& StackQuestions::Slot(uint32_t index) const {
  return *reinterpret_cast<const StackSlot*>(copy_.data() + index * kSlotBytes);
}

// Those that no thread writes. One that answers too late may still be at it.
std::vector<uint32_t> StackQuestions::QuietSlots() {
  std::vector<uint32_t> quiet;
  if (!ReadSlots()) return quiet;
  for (uint32_t slot = 0; slot < segment::kStackSlots; ++slot) {
    if (Get(Slot(slot).claimed) == Get(Slot(slot).answered)) quiet.push_back(slot);
  }
  return quiet;
}

// One thread first: a program that has since taken the signal for itself shall not get it a hundred
// times.
void StackQuestions::Ask(const std::vector<RawThread*>& threads, int64_t thread_timeout_ns,
                         int64_t deadline_ns) {
  bool answered = false;
  const char* reason = "left alone: threads that were asked before it did not answer";
  size_t done = 0;
  while (done < threads.size() && (answered || done < kFirstAsked)) {
    std::vector<uint32_t> slots = QuietSlots();
    slots.erase(std::lower_bound(slots.begin(), slots.end(), slots_), slots.end());
    if (slots.empty()) {
      reason = "left alone: there is no room for its copy, late threads may still write theirs";
      break;
    }
    const size_t count = answered ? std::min(slots.size(), threads.size() - done) : 1;
    AskTurn(&threads[done], count, slots, std::min(MonotonicNs() + thread_timeout_ns, deadline_ns));
    answered = answered || threads[done]->taken();
    done += count;
  }
  for (; done < threads.size(); ++done) {
    threads[done]->error = reason;
  }
}

void StackQuestions::AskTurn(RawThread* const* threads, size_t count,
                             const std::vector<uint32_t>& slots, int64_t deadline_ns) {
  std::vector<Asked> turn(count);
  const int64_t begun = MonotonicNs();
  size_t open = 0;
  for (size_t i = 0; i < count; ++i) {
    turn[i].thread = threads[i];
    turn[i].slot = slots[i];
    open += AskOne(&turn[i]);
  }
  while (open > 0) {
    Collect(&turn);
    open = static_cast<size_t>(
        std::count_if(turn.begin(), turn.end(), [](const Asked& asked) { return !asked.done; }));
    if (open == 0 || MonotonicNs() > deadline_ns) break;
    if (MonotonicNs() - begun < kYieldNs) {
      sched_yield();
    } else {
      const timespec pause = {0, kPauseNs};
      nanosleep(&pause, nullptr);
    }
  }
  for (const Asked& asked : turn) {
    if (asked.done) continue;
    WriteWord(asked.slot, offsetof(StackSlot, asked), 0);
    asked.thread->how = HowTaken::kFailed;
    asked.thread->error = "did not answer the signal in time";
  }
}

// False: done with it already.
bool StackQuestions::AskOne(Asked* asked) {
  asked->question = NextQuestion() << 8 | asked->slot;
  // The first that answers passes it on.
  asked->asked_memory = socket_ != nullptr && !memory_promised_;
  const uint64_t flags =
      asked->asked_memory ? uint64_t{segment::kAskMemory} : 0;  // and no bytes of stack yet
  const bool written = WriteWord(asked->slot, offsetof(StackSlot, flags), flags) &&
                       WriteWord(asked->slot, offsetof(StackSlot, asked), asked->question);
  siginfo_t info = {};
  info.si_code = SI_QUEUE;
  info.si_pid = getpid();
  info.si_uid = getuid();
  info.si_value.sival_ptr = reinterpret_cast<void*>(asked->question);
  asked->asked_ns = MonotonicNs();
  if (written && syscall(SYS_rt_tgsigqueueinfo, pid_, asked->thread->tid, signal_, &info) == 0) {
    return true;
  }
  asked->done = true;
  asked->thread->how = HowTaken::kFailed;
  asked->thread->error =
      errno == ESRCH ? "it has ended" : absl::StrCat("could not be asked: ", strerror(errno));
  return false;
}

void StackQuestions::Collect(std::vector<Asked>* turn) {
  if (!ReadSlots()) return;
  for (Asked& asked : *turn) {
    if (asked.done || Get(Slot(asked.slot).answered) != asked.question) continue;
    ReadCopy(&asked);
    asked.done = true;
    WriteWord(asked.slot, offsetof(StackSlot, asked), 0);
    memory_promised_ = memory_promised_ || asked.asked_memory;
  }
}

void StackQuestions::ReadCopy(Asked* asked) {
  RawThread* thread = asked->thread;
  const off_t at =
      static_cast<off_t>(segment::kStackAreaOffset + asked->slot * segment::kStackCopyBytes);
  const size_t bytes =
      std::min<size_t>(Get(Slot(asked->slot).stack_bytes), segment::kMaxStackInCopy);
  thread->stack.resize(bytes);
  thread->stopped_ns = MonotonicNs() - asked->asked_ns;
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

void StackQuestions::ReceiveMemory() {
  if (socket_ == nullptr || !memory_promised_) return;
  std::optional<PassedDescriptor> passed = socket_->Receive(kMemoryNs);
  if (!passed.has_value() || passed->pid != pid_ || passed->what != segment::kMemoryDescriptor ||
      !IsOfProc(passed->fd.get())) {
    return;
  }
  memory_ = std::move(passed->fd);
}

UniqueFd StackQuestions::TakeMemory() {
  ReceiveMemory();
  return std::move(memory_);
}

}  // namespace rollcall
