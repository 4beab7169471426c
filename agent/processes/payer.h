// SPDX-License-Identifier: Apache-2.0
// Whose share of the agent a process takes. All that the agent shares out by users asks here.
//
// A user may have 65,536 subordinate user ids (/etc/subuid), and run the processes of a container
// as any of them. All of these processes are that user's: who owns the user namespace pays.
// Thread-safe.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

namespace rollcall {

// A user of the host; or, because all containers may run as root, root of one namespace: the pid
// namespace, or a user namespace that root has made for a container.
struct Payer {
  uint32_t user = UINT32_MAX;   // UINT32_MAX: not known
  uint64_t root_namespace = 0;  // of root: its inode; else 0

  bool operator<(const Payer& other) const {
    return user != other.user ? user < other.user : root_namespace < other.root_namespace;
  }
};

// By the real user in the status of the process, which may block: see spare_threads.h.
Payer ReadPayer(const std::string& proc_root, pid_t pid);

// All whose user namespace nobody can look at in time share one share.
inline constexpr int64_t kUnknownMaker = -2;

// The same as a number, for reads of this process that may block. -1: there is no such process.
// Answers whatever the process does: by the owner of its folder in /proc, which is its user, or
// root if it must not be traced; in another user namespace, within some milliseconds.
int64_t PayerOfReads(const std::string& proc_root, pid_t pid);

// Whether both processes run as the same user, in all ways of the kernel, and the same user pays:
// what the agent may learn of one it may learn of the other. Both may block.
bool HaveSameUser(const std::string& proc_root, pid_t one, pid_t other);

// Who has made the user namespace that the process is in: the one below this program's own, because
// whoever has one may make others in it. nullopt: it is in this program's own, or the kernel does
// not show it. Does not block.
std::optional<Payer> MakerOfUserNamespace(const std::string& proc_root, pid_t pid);

}  // namespace rollcall
