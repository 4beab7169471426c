// SPDX-License-Identifier: Apache-2.0
#include "agent/stacks/stack_work_main.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <string>

#include "agent/processes/process_memory.h"
#include "agent/python/python_symbols.h"
#include "agent/stacks/stack_reader.h"
#include "agent/stacks/stack_work.h"
#include "agent/symbols/file_in_use.h"
#include "base/unique_fd.h"

namespace rollcall {
namespace {

constexpr int kFileInUse = 3;

bool ReadAll(void* to, size_t size) {
  char* at = static_cast<char*>(to);
  while (size > 0) {
    const ssize_t count = read(STDIN_FILENO, at, size);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    at += count;
    size -= static_cast<size_t>(count);
  }
  return true;
}

// False if no request has come for a while. The process's cache of files takes memory.
bool IsAsked() {
  constexpr int kPatienceMs = 60'000;
  pollfd ready = {STDIN_FILENO, POLLIN, 0};
  return poll(&ready, 1, kPatienceMs) > 0;
}

bool WriteAll(const void* from, size_t size) {
  const char* at = static_cast<const char*>(from);
  while (size > 0) {
    const ssize_t count = write(STDOUT_FILENO, at, size);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    at += count;
    size -= static_cast<size_t>(count);
  }
  return true;
}

// This process goes before the agent and before the job where memory is short.
void LimitMyself() {
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  const rlimit memory = {kStackWorkMemory, kStackWorkMemory};
  setrlimit(RLIMIT_DATA, &memory);
#endif
  const rlimit no_core = {0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  const UniqueFd score(open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC));
  static_cast<void>(!write(score.get(), "1000", 4));
}

void ShareFileInUse() {
  void* const shared =
      mmap(nullptr, sizeof(FileInUse), PROT_READ | PROT_WRITE, MAP_SHARED, kFileInUse, 0);
  if (shared != MAP_FAILED) watched_file_in_use = static_cast<FileInUse*>(shared);
}

class Worker {
 public:
  explicit Worker(const std::string& proc_root) : reader_(proc_root), symbols_(proc_root) {}

  std::string Do(const StackWork& work) {
    SetFileInUse({});
    reader_.LeaveOut(work.silent_devices, work.costly_files);
    symbols_.LeaveOut(work.silent_devices, work.costly_files);
    if (work.kind == StackWorkKind::kName) return ToBytes(reader_.Unwind(work.sample, work.limits));
    return ToBytes(symbols_.Find(work.sample.pid, work.file, work.names, nullptr).distances);
  }

 private:
  StackReader reader_;
  SymbolsInFiles symbols_;
};

}  // namespace

int DoStackWork() {
  LimitMyself();
  ShareFileInUse();
  std::unique_ptr<Worker> worker;
  uint64_t size = 0;
  while (IsAsked() && ReadAll(&size, sizeof(size))) {
    if (size > kMostStackWorkBytes) return 1;
    std::string bytes(size, '\0');
    StackWork work;
    if (!ReadAll(bytes.data(), bytes.size()) || !FromBytes(bytes, &work)) return 1;
    if (worker == nullptr) worker = std::make_unique<Worker>(work.proc_root);
    const std::string answer = worker->Do(work);
    SetFileInUse({});
    size = answer.size();
    if (!WriteAll(&size, sizeof(size)) || !WriteAll(answer.data(), answer.size())) return 1;
  }
  return 0;
}

}  // namespace rollcall
