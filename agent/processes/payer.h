// SPDX-License-Identifier: Apache-2.0
// Finds the user whose share of the agent a process takes. All limits by user ask here.
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

// A user of the host; or, because all containers may run as root, root of one container.
struct Payer {
  uint32_t user = UINT32_MAX;  // UINT32_MAX if unknown
  // For root, a number of its container. Where the control groups name none: the inode of its pid
  // namespace, if it is another one than this program's, or of the user namespace that root has
  // made. It cannot be changed from inside a container: not by control groups below its own, nor by
  // user namespaces. Else 0.
  uint64_t container = 0;

  bool operator<(const Payer& other) const {
    return user != other.user ? user < other.user : container < other.container;
  }
};

// By the real user in the status of the process, which may block: see spare_threads.h.
Payer ReadPayer(const std::string& proc_root, pid_t pid);

// The same as a number, for reads of this process that may block. -1 if there is no such process.
// Answers whatever the process does: by the owner of its folder in /proc, which is its user, or
// root if it must not be traced; in another user namespace, within some milliseconds. If it is not
// known by then who has made that namespace, it is the user whose ids the namespace has.
int64_t PayerOfReads(const std::string& proc_root, pid_t pid);

// Returns the same of files with this owner: one user has many subordinate ids.
int64_t PayerOfFiles(uid_t owner);

// Names such a number: "user 1000", "root of a container".
std::string PayerInWords(int64_t payer);

// Whether both processes run as the same user, in all ways of the kernel, in the same user
// namespace, and the same user pays: what the agent may learn of one it may learn of the other.
// Both may block.
bool HaveSameUser(const std::string& proc_root, pid_t one, pid_t other);

// Returns the maker of the user namespace that the process is in: the one below this program's own,
// because its owner may make others in it. nullopt if it is in this program's own, or the kernel
// does not show it. May block before Linux 6.11.
std::optional<Payer> MakerOfUserNamespace(const std::string& proc_root, pid_t pid);

}  // namespace rollcall
