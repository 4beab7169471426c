// SPDX-License-Identifier: Apache-2.0
#include "agent/segments/segment_file.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "agent/processes/this_host.h"
#include "agent/segments/segment_copy.h"
#include "base/open_regular.h"

namespace rollcall {
namespace {

using segment::SegmentHeader;

// Whether the file is on a local file system, which no server implements. Older headers lack xfs.
bool IsLocal(int fd) {
  constexpr long kXfsMagic = 0x58465342;
  struct statfs about;
  if (fstatfs(fd, &about) != 0) return false;
  for (const long magic : {long{TMPFS_MAGIC}, long{RAMFS_MAGIC}, long{EXT4_SUPER_MAGIC}, kXfsMagic,
                           long{BTRFS_SUPER_MAGIC}, long{OVERLAYFS_SUPER_MAGIC}}) {
    if (about.f_type == magic) return true;
  }
  return false;
}

// Whether the same call may succeed later: no free descriptors or memory, an unreachable server.
bool IsTransient(int error) {
  for (const int transient : {EMFILE, ENFILE, ENOMEM, EINTR, EIO, ESTALE, ETIMEDOUT, ENOTCONN}) {
    if (error == transient) return true;
  }
  return false;
}

}  // namespace

absl::StatusOr<SegmentFile> SegmentFile::Open(const std::string& path) {
  UniqueFd fd = OpenRegular(path, O_RDONLY);
  if (!fd.valid()) {
    const int error = errno;
    if (error == EINVAL) {
      return absl::InvalidArgumentError(absl::StrCat(path, ": not a regular file"));
    }
    const std::string why = absl::StrCat(path, ": ", strerror(error));
    if (error == ENOENT) return absl::NotFoundError(why);
    return IsTransient(error) ? absl::UnavailableError(why) : absl::InvalidArgumentError(why);
  }
  return FromDescriptor(path, std::move(fd));
}

absl::StatusOr<SegmentFile> SegmentFile::FromDescriptor(const std::string& path, UniqueFd fd) {
  SegmentFile file(path, std::move(fd));
  struct stat about;
  if (fstat(file.fd_.get(), &about) != 0 || !S_ISREG(about.st_mode)) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": not a regular file"));
  }
  file.device_ = about.st_dev;
  file.inode_ = about.st_ino;
  file.user_ = about.st_uid;
  file.may_block_ = !IsLocal(file.fd_.get());
  Copy<SegmentHeader> header;
  absl::Status status = file.ReadHeader(&header);
  if (absl::IsDataLoss(status)) {
    return absl::DataLossError(absl::StrCat(path, ": cut short: ", about.st_size,
                                            " bytes, a segment has at least ",
                                            segment::kHeaderBytes));
  }
  if (!status.ok()) return status;
  return file;
}

absl::StatusOr<SegmentFile> SegmentFile::Again() const {
  UniqueFd fd(fcntl(fd_.get(), F_DUPFD_CLOEXEC, 0));
  if (!fd.valid()) return absl::UnavailableError(absl::StrCat(path_, ": ", strerror(errno)));
  return FromDescriptor(path_, std::move(fd));
}

absl::StatusOr<SegmentClaim> SegmentFile::Claim() const {
  Copy<SegmentHeader> header;
  absl::Status status = ReadHeader(&header);
  if (!status.ok()) return status;
  SegmentClaim claim;
  claim.pid = header->pid;
  claim.start_time = header->start_time;
  claim.pid_namespace = header->pid_namespace;
  claim.of_this_boot = Text(header->boot_id) == OwnBootId();
  claim.life_lock = Get(header->life_lock) == 1;
  claim.lock = Lock();
  return claim;
}

bool SegmentFile::Deleted() const {
  struct stat about;
  return fstat(fd_.get(), &about) == 0 && about.st_nlink == 0;
}

bool SegmentFile::ReadAt(uint64_t offset, void* out, size_t size) const {
  size_t done = 0;
  while (done < size) {
    const ssize_t n = pread(fd_.get(), static_cast<char*>(out) + done, size - done,
                            static_cast<off_t>(offset + done));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    done += static_cast<size_t>(n);
  }
  return true;
}

absl::Status SegmentFile::ReadHeader(Copy<SegmentHeader>* header) const {
  if (!ReadAt(0, header)) return absl::DataLossError(absl::StrCat(path_, ": cut short"));
  return CheckHeader(path_, **header);
}

bool IsSegmentName(const std::string& name) {
  absl::string_view rest = name;
  if (!absl::ConsumeSuffix(&rest, ".seg")) return false;
  const std::vector<absl::string_view> numbers = absl::StrSplit(rest, '-');
  if (numbers.size() != 2 && numbers.size() != 3) return false;
  return std::all_of(numbers.begin(), numbers.end(), [](absl::string_view number) {
    return !number.empty() &&
           std::all_of(number.begin(), number.end(), [](char c) { return c >= '0' && c <= '9'; });
  });
}

}  // namespace rollcall
