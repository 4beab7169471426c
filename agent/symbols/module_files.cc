// SPDX-License-Identifier: Apache-2.0
#include "agent/symbols/module_files.h"

#include <elf.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "agent/processes/open_in_root.h"
#include "agent/processes/proc_files.h"
#include "base/monotonic_clock.h"
#include "base/open_regular.h"

namespace rollcall {
namespace {

constexpr size_t kMaxOpenFiles = 256;
constexpr const char* kVdsoName = "[vdso]";

// On overlayfs, /proc/PID/maps has the device of a layer, and stat() another one: only the inode
// can be compared.
bool HasUnknownDevice(int fd) {
  struct statfs system;
  return fstatfs(fd, &system) == 0 && system.f_type == OVERLAYFS_SUPER_MAGIC;
}

// Both take a descriptor that is open with O_PATH, which has no side effects. Not valid: no regular
// file, or another one than is mapped.
UniqueFd IfRegular(UniqueFd fd) {
  struct stat status;
  const bool is_file = fd.valid() && fstat(fd.get(), &status) == 0 && S_ISREG(status.st_mode);
  return is_file ? std::move(fd) : UniqueFd();
}

UniqueFd IfMapped(UniqueFd fd, const ProcMap& map) {
  UniqueFd file = IfRegular(std::move(fd));
  struct stat status;
  if (!file.valid() || fstat(file.get(), &status) != 0 || status.st_ino != map.inode) {
    return UniqueFd();
  }
  const bool is_it = HasUnknownDevice(file.get()) || IsMapped(file.get(), map);
  return is_it ? std::move(file) : UniqueFd();
}

UniqueFd OpenPathOnly(const std::string& path) {
  return UniqueFd(open(path.c_str(), O_PATH | O_CLOEXEC));
}

size_t VdsoSize(const char* image) {
  const auto* header = reinterpret_cast<const Elf64_Ehdr*>(image);
  return header->e_shoff + size_t{header->e_shnum} * header->e_shentsize;
}

}  // namespace

ModuleFiles::ModuleFiles(std::string proc_root) : proc_root_(std::move(proc_root)) {}

absl::StatusOr<std::shared_ptr<ElfFile>> ModuleFiles::Vdso() {
  if (vdso_ != nullptr) return vdso_;
  const auto* image = reinterpret_cast<const char*>(getauxval(AT_SYSINFO_EHDR));
  if (image == nullptr) return absl::NotFoundError("this kernel has no vdso");
  UniqueFd fd(memfd_create("rollcall-vdso", MFD_CLOEXEC));
  if (!fd.valid()) return absl::UnavailableError("no memory file for a copy of the vdso");
  const size_t size = VdsoSize(image);
  if (write(fd.get(), image, size) != static_cast<ssize_t>(size)) {
    return absl::UnavailableError("no room for a copy of the vdso");
  }
  absl::StatusOr<std::shared_ptr<ElfFile>> file = ElfFile::Open(std::move(fd), kVdsoName);
  if (file.ok()) vdso_ = *file;
  return file;
}

UniqueFd ModuleFiles::OpenPath(pid_t pid, const ProcMap& map) const {
  const std::string process = absl::StrCat(proc_root_, "/", pid);
  // A link in the path stays in the process's root.
  const auto in_root = [&] {
    return map.deleted ? UniqueFd() : OpenInRoot(process + "/root", map.path, O_PATH);
  };
  UniqueFd fd = IfMapped(in_root(), map);
  if (!fd.valid()) {
    fd =
        IfRegular(OpenPathOnly(absl::StrFormat("%s/map_files/%x-%x", process, map.start, map.end)));
  }
  // On a stacked file system, maps and stat() may report different inodes of the same file.
  if (!fd.valid()) fd = IfRegular(in_root());
  if (!fd.valid() && !map.deleted) fd = IfMapped(OpenPathOnly(map.path), map);
  return fd;
}

void ModuleFiles::LeaveOut(std::vector<uint64_t> devices, std::vector<FileId> files) {
  left_out_devices_ = std::move(devices);
  left_out_files_ = std::move(files);
}

bool ModuleFiles::IsLeftOut(const FileId& file) const {
  const auto has = [](const auto& list, const auto& value) {
    return std::find(list.begin(), list.end(), value) != list.end();
  };
  return has(left_out_devices_, file.device) || has(left_out_files_, file);
}

absl::StatusOr<std::shared_ptr<ElfFile>> ModuleFiles::Find(pid_t pid, const ProcMap& map) {
  if (map.path == kVdsoName) return Vdso();
  if (map.path.empty() || map.path[0] != '/') return absl::NotFoundError("no file is mapped there");
  if (IsLeftOut(IdOf(map))) return absl::UnavailableError(absl::StrCat(map.path, " is left out"));
  SetFileInUse(IdOf(map));
  const UniqueFd path_fd = OpenPath(pid, map);
  struct stat status;
  if (!path_fd.valid() || fstat(path_fd.get(), &status) != 0) {
    return absl::NotFoundError(absl::StrCat("cannot open ", map.path, " of process ", pid));
  }
  const FileKey key(status.st_dev, status.st_ino, status.st_size, NsOf(status.st_mtim));
  const auto found = files_.find(key);
  if (found != files_.end()) return found->second;
  UniqueFd fd = ReopenRegular(path_fd, O_RDONLY);
  if (!fd.valid()) return absl::PermissionDeniedError(absl::StrCat("cannot read ", map.path));
  absl::StatusOr<std::shared_ptr<ElfFile>> file = ElfFile::Open(std::move(fd), map.path, IdOf(map));
  if (!file.ok()) return file.status();
  (*file)->set_root(ProcPath(proc_root_, pid, "root"));
  if (files_.size() >= kMaxOpenFiles) files_.erase(files_.begin());
  files_[key] = *file;
  return file;
}

std::shared_ptr<ElfFile> SampleModules::FindFile(const ProcMap& map) {
  if (map.path.empty() || files_ == nullptr) return nullptr;
  const auto [entry, fresh] = opened_.try_emplace({map.device, map.inode, map.path});
  if (fresh) entry->second = files_->Find(sample_.pid, map).value_or(nullptr);
  return entry->second;
}

LocatedAddress SampleModules::Locate(uint64_t address) {
  LocatedAddress located;
  located.map = FindMap(sample_.maps, address);
  if (located.map == nullptr) return located;
  located.file_offset = located.map->offset + (address - located.map->start);
  located.file = FindFile(*located.map);
  if (located.file != nullptr) {
    located.file_address = located.file->AddressOfOffset(located.file_offset);
  }
  return located;
}

}  // namespace rollcall
