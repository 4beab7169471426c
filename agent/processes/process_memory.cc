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

size_t ResidentMemory::CountResident(uint64_t address, size_t size) const {
  static const auto page_bytes = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  // Linux, Documentation/admin-guide/mm/pagemap.rst: in memory, or in swap, which is local.
  constexpr uint64_t kPresent = uint64_t{3} << 62;
  if (!pages_.valid()) return size;
  for (size_t done = 0; done < size;) {
    const uint64_t page = (address + done) / page_bytes;
    uint64_t entry = 0;
    const auto at = static_cast<off_t>(page * sizeof(entry));
    if (pread(pages_.get(), &entry, sizeof(entry), at) != sizeof(entry)) return done;
    if ((entry & kPresent) == 0) return done;
    done += page_bytes - (address + done) % page_bytes;
  }
  return size;
}

bool ResidentMemory::Read(uint64_t address, void* to, size_t size) {
  if (!pages_.valid() || size == 0 || address > UINT64_MAX - size) return false;
  return CountResident(address, size) == size && memory_->Read(address, to, size);
}

}  // namespace rollcall
