// SPDX-License-Identifier: Apache-2.0
#include "agent/processes/process_memory.h"

#include <sys/uio.h>
#include <unistd.h>

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

}  // namespace rollcall
