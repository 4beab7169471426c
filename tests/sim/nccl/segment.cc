// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/nccl/segment.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

#include "tests/sim/nccl/warn.h"

namespace rollcall::sim {
namespace {

constexpr char kFolder[] = "/dev/shm/";
constexpr char kPrefix[] = "rollcall-sim-";
constexpr size_t kPage = 4096;

size_t RoundUp(size_t size, size_t to) { return (size + to - 1) / to * to; }

// What a container has by default is 64 MiB for all communicators.
size_t SlotBytes(int nranks) {
  return std::clamp(RoundUp((size_t{4} << 20) / nranks, kPage), size_t{64} << 10,
                    size_t{512} << 10);
}
size_t ChannelStride(int nranks) { return nranks <= 8 ? size_t{128} << 10 : size_t{16} << 10; }

bool IsLinked(int file) {
  struct stat status;
  return fstat(file, &status) == 0 && status.st_nlink > 0;
}

// Removes the files of jobs that were killed before all ranks had come: those
// that no living process holds a lock on.
void SweepLeftovers() {
  DIR* folder = opendir(kFolder);
  if (folder == nullptr) return;
  while (const dirent* entry = readdir(folder)) {
    if (strncmp(entry->d_name, kPrefix, strlen(kPrefix)) != 0) continue;
    const std::string path = std::string(kFolder) + entry->d_name;
    const int file = open(path.c_str(), O_RDWR | O_CLOEXEC);
    if (file < 0) continue;
    if (flock(file, LOCK_EX | LOCK_NB) == 0) unlink(path.c_str());
    close(file);
  }
  closedir(folder);
}

// Opens the file, under a lock that keeps sweepers away. It may be swept
// between the two, hence the loop.
int OpenLocked(const std::string& path) {
  for (;;) {
    const int file = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (file < 0) return -1;
    while (flock(file, LOCK_SH) != 0 && errno == EINTR) {
    }
    if (IsLinked(file)) return file;
    close(file);
  }
}

}  // namespace

Segment::Segment(int nranks, int rank)
    : nranks_(nranks),
      rank_(rank),
      slot_bytes_(SlotBytes(nranks)),
      slots_offset_(RoundUp(sizeof(Header) + 256, 256) + sizeof(RankArea) * nranks),
      channel_stride_(ChannelStride(nranks)) {
  slots_offset_ = RoundUp(slots_offset_, kPage);
  channels_offset_ = slots_offset_ + size_t{2} * nranks * slot_bytes_;
  size_ = channels_offset_ + size_t{1} * nranks * nranks * channel_stride_;
}

Segment::~Segment() {
  if (base_ != nullptr) munmap(base_, size_);
  if (file_ >= 0) close(file_);
}

ncclResult_t Segment::Open(const std::string& name, int nranks, int rank,
                           std::unique_ptr<Segment>* segment) {
  SweepLeftovers();
  std::unique_ptr<Segment> opened(new Segment(nranks, rank));
  const std::string path = kFolder + (kPrefix + name);
  ncclResult_t result = opened->Map(path);
  if (result == ncclSuccess) result = opened->Attach(path);
  if (result == ncclSuccess) *segment = std::move(opened);
  return result;
}

ncclResult_t Segment::Map(const std::string& path) {
  file_ = OpenLocked(path);
  struct stat status;
  if (file_ < 0 || fstat(file_, &status) != 0) {
    return Warn(ncclSystemError, "cannot open %s: %s", path.c_str(), strerror(errno));
  }
  if (status.st_size != 0 && static_cast<size_t>(status.st_size) != size_) {
    return Warn(ncclInvalidUsage, "mismatch in rank count: this rank says %d", nranks_);
  }
  // The memory is taken now: later, a full /dev/shm would be a SIGBUS.
  const size_t own_slots = slots_offset_ + size_t{2} * rank_ * slot_bytes_;
  if (ftruncate(file_, static_cast<off_t>(size_)) != 0 ||
      posix_fallocate(file_, 0, static_cast<off_t>(slots_offset_)) != 0 ||
      posix_fallocate(file_, static_cast<off_t>(own_slots), static_cast<off_t>(2 * slot_bytes_)) !=
          0) {
    return Warn(ncclSystemError, "/dev/shm is full: the ranks' shared memory needs room there");
  }
  void* base = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file_, 0);
  if (base == MAP_FAILED) {
    return Warn(ncclSystemError, "cannot map %s: %s", path.c_str(), strerror(errno));
  }
  base_ = static_cast<char*>(base);
  header_ = reinterpret_cast<Header*>(base_);
  areas_ = reinterpret_cast<RankArea*>(base_ + RoundUp(sizeof(Header), 256));
  slots_ = base_ + slots_offset_;
  channels_ = base_ + channels_offset_;
  return ncclSuccess;
}

ncclResult_t Segment::Attach(const std::string& path) {
  uint32_t expected = 0;
  if (!header_->nranks.compare_exchange_strong(expected, nranks_) &&
      expected != static_cast<uint32_t>(nranks_)) {
    return Warn(ncclInvalidUsage, "mismatch in rank count: %d here, %u elsewhere", nranks_,
                expected);
  }
  if (areas_[rank_].attached.exchange(1) != 0) {
    return Warn(ncclInvalidUsage, "rank %d of %d has already checked in", rank_, nranks_);
  }
  areas_[rank_].pid.store(getpid());
  if (header_->attached.fetch_add(1) + 1 == static_cast<uint32_t>(nranks_)) {
    unlink(path.c_str());
    RingAll();
  }
  return ncclSuccess;
}

bool Segment::ReserveChannel(int from, int to) const {
  const size_t offset = channels_offset_ + Index(from, to) * channel_stride_;
  return posix_fallocate(file_, static_cast<off_t>(offset), static_cast<off_t>(channel_stride_)) ==
         0;
}

bool Segment::AllAttached() const {
  return header_->attached.load() == static_cast<uint32_t>(nranks_);
}

void Segment::Arrive(Gate gate) {
  const uint64_t arrivals = header_->arrivals[gate].fetch_add(1) + 1;
  if (arrivals % nranks_ == 0) RingAll();
}

bool Segment::Passed(Gate gate, uint64_t times) const {
  return header_->arrivals[gate].load() >= times * nranks_;
}

void Segment::RingAll() const {
  for (int rank = 0; rank < nranks_; ++rank) Ring(rank);
}

void Segment::Ring(int rank) const {
  std::atomic<uint32_t>& bell = areas_[rank].bell;
  bell.fetch_add(1);
  syscall(SYS_futex, &bell, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

void Segment::WaitForBell(uint32_t heard) const {
  syscall(SYS_futex, &areas_[rank_].bell, FUTEX_WAIT, heard, nullptr, nullptr, 0);
}

bool Segment::Wait(const std::function<bool()>& done, const std::function<bool()>& stopped) const {
  for (;;) {
    const uint32_t heard = Listen();
    if (done()) return true;
    if (stopped()) return false;
    WaitForBell(heard);
  }
}

}  // namespace rollcall::sim
