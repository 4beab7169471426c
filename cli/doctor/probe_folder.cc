// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "base/unique_fd.h"
#include "cli/doctor/probes.h"
#include "interpose/measure_room.h"
#include "interpose/segment_folder.h"

namespace rollcall::doctor {
namespace {

struct ServerType {
  uint32_t magic;  // of statfs(2)
  const char* name;
};

constexpr ServerType kServers[] = {
    {0x6969, "nfs"},     {0x0bd00bd0, "lustre"}, {0x65735546, "fuse"}, {0xff534d42, "cifs"},
    {0xfe534d42, "smb"}, {0x00c36400, "ceph"},   {0x47504653, "gpfs"}, {0x19830326, "beegfs"},
    {0x01021997, "9p"},  {0x5346414f, "afs"},    {0x01161970, "gfs2"}, {0x7461636f, "ocfs2"}};

// As the library chooses it (NameFolder() in segment_file.cc).
void NameFolder(const Environment& environment, FolderFacts* facts) {
  const auto at = environment.find("ROLLCALL_DIR");
  facts->is_chosen = at != environment.end() && !at->second.empty();
  if (facts->is_chosen) {
    std::error_code ignored;
    facts->path = std::filesystem::absolute(at->second, ignored).string();
    return;
  }
  char path[kSegmentFolderBytes];
  facts->is_taken = SegmentFolderSearch::Find(path, sizeof(path)) != SegmentFolderChoice::kUsual;
  facts->path = path;
}

// Tries to write without a file that others could see, where the file system can do that.
bool MayWrite(const std::string& folder) {
  const UniqueFd fd(open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (fd.valid()) return true;
  // In a full file system, no user can make a file: that is a matter of room.
  if (errno == ENOSPC || errno == EDQUOT) return true;
  return (errno == EOPNOTSUPP || errno == EISDIR) && access(folder.c_str(), W_OK | X_OK) == 0;
}

void Measure(const std::string& folder, const std::string& shared_memory, FolderFacts* facts) {
  const UniqueFd fd(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid()) return;
  facts->room = MeasureRoom(fd.get(), shared_memory.c_str());
  struct statfs system;
  if (fstatfs(fd.get(), &system) != 0) return;
  for (const ServerType& one : kServers) {
    if (static_cast<uint32_t>(system.f_type) == one.magic) facts->server = one.name;
  }
}

// A folder that is missing: the library makes it, in a parent that is there.
void JudgeParent(const std::string& shared_memory, FolderFacts* facts) {
  const std::string parent = std::filesystem::path(facts->path).parent_path().string();
  if (access(parent.c_str(), W_OK | X_OK) != 0) {
    facts->state = FolderState::kNotMade;
    facts->error = absl::StrCat(parent, ": ", strerror(errno));
    return;
  }
  Measure(parent, shared_memory, facts);
}

}  // namespace

FolderFacts ProbeFolder(const Environment& environment, const std::string& shared_memory) {
  FolderFacts facts;
  NameFolder(environment, &facts);
  struct stat about;
  if (lstat(facts.path.c_str(), &about) != 0) {
    if (errno == ENOENT) {
      JudgeParent(shared_memory, &facts);
    } else {
      facts.state = FolderState::kNotMade;
      facts.error = strerror(errno);
    }
    return facts;
  }
  facts.owner = about.st_uid;
  if (!S_ISDIR(about.st_mode)) {
    facts.state = FolderState::kNoFolder;
  } else if (about.st_uid != geteuid()) {
    facts.state = FolderState::kOtherUser;
  } else if (!MayWrite(facts.path)) {
    facts.state = FolderState::kNotWritable;
    facts.error = strerror(errno);
  } else {
    Measure(facts.path, shared_memory, &facts);
  }
  return facts;
}

SharedMemoryFacts ProbeSharedMemory(const std::string& path) {
  SharedMemoryFacts facts;
  struct statvfs about;
  if (statvfs(path.c_str(), &about) != 0) return facts;
  facts.exists = true;
  facts.total_bytes = static_cast<uint64_t>(about.f_blocks) * about.f_frsize;
  facts.free_bytes = static_cast<uint64_t>(about.f_bavail) * about.f_frsize;
  return facts;
}

}  // namespace rollcall::doctor
