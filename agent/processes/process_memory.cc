// SPDX-License-Identifier: Apache-2.0
#include "agent/processes/process_memory.h"

#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include "agent/processes/proc_files.h"

namespace rollcall {

bool TracerMemory::Read(uint64_t address, void* to, size_t size) {
  const iovec local = {to, size};
  const iovec remote = {reinterpret_cast<void*>(address), size};
  return process_vm_readv(pid_, &local, 1, &remote, 1, 0) == static_cast<ssize_t>(size);
}

bool FileMemory::Read(uint64_t address, void* to, size_t size) {
  if (address > INT64_MAX) return false;
  return pread(fd_.get(), to, size, static_cast<off_t>(address)) == static_cast<ssize_t>(size);
}

ResidentMemory::ResidentMemory(ProcessMemory* memory, const std::string& proc_root, pid_t pid)
    : memory_(memory),
      pages_(open(ProcPath(proc_root, pid, "pagemap").c_str(), O_RDONLY | O_CLOEXEC)) {}

bool ResidentMemory::Read(uint64_t address, void* to, size_t size) {
  static const auto page_bytes = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  // Linux, Documentation/admin-guide/mm/pagemap.rst: in memory, or in swap, which is local.
  constexpr uint64_t kPresent = uint64_t{3} << 62;
  if (size == 0 || address > UINT64_MAX - size) return false;
  const uint64_t last = (address + size - 1) / page_bytes;
  for (uint64_t page = address / page_bytes; page <= last; ++page) {
    uint64_t entry = 0;
    const auto at = static_cast<off_t>(page * sizeof(entry));
    if (pread(pages_.get(), &entry, sizeof(entry), at) != sizeof(entry)) return false;
    if ((entry & kPresent) == 0) return false;
  }
  return memory_->Read(address, to, size);
}

}  // namespace rollcall
