// SPDX-License-Identifier: Apache-2.0
// The folder of a user's segments where ROLLCALL_DIR names none: /dev/shm/rollcall-<uid>. Everybody
// may make a folder in /dev/shm and can guess that name. If another user has it, the folder is
// /dev/shm/rollcall-<uid>-<8 random hexadecimal digits>, which all processes of the user find again
// by its owner. Uses only system calls and the stack, for the library and the programs.
#pragma once

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

namespace rollcall {

inline constexpr char kSharedMemory[] = "/dev/shm";
inline constexpr size_t kSegmentFolderBytes = 64;  // of the longest name, with its end

enum class SegmentFolderChoice {
  kUsual,    // it does not exist yet, or is this user's
  kFound,    // another user has the usual one: a folder of this user with a random name
  kInvented  // the same, and no such folder is there yet: make this one
};

class SegmentFolderSearch {
 public:
  // `out`: at least kSegmentFolderBytes. `parent` is another folder in tests.
  static SegmentFolderChoice Find(char* out, size_t size, const char* parent = kSharedMemory) {
    const auto user = static_cast<unsigned>(geteuid());
    snprintf(out, size, "%s/rollcall-%u", parent, user);
    struct stat about;
    if (Look(AT_FDCWD, out, &about) != 0 || IsOwn(about)) return SegmentFolderChoice::kUsual;
    char best[kRandomNameBytes] = "";
    FindByOwner(parent, user, best);
    const bool found = best[0] != '\0';
    if (!found) snprintf(best, sizeof(best), "rollcall-%u-%08x", user, RandomNumber());
    snprintf(out, size, "%s/%s", parent, best);
    return found ? SegmentFolderChoice::kFound : SegmentFolderChoice::kInvented;
  }

 private:
  static constexpr size_t kRandomNameBytes = 40;
  static constexpr int kMostBlocks = 4096;  // some 100,000 names: somebody may have made very many
  static constexpr size_t kRandomDigits = 8;
  // Offsets in a directory entry of the kernel (struct linux_dirent64).
  static constexpr size_t kLengthAt = 16, kNameAt = 19;

  // A system call: glibc 2.33 gave stat() a new symbol version.
  static long Look(int folder, const char* name, struct stat* about) {
    return syscall(SYS_newfstatat, folder, name, about, AT_SYMLINK_NOFOLLOW);
  }

  static bool IsOwn(const struct stat& about) {
    return S_ISDIR(about.st_mode) && about.st_uid == geteuid();
  }

  static uint32_t RandomNumber() {
    uint32_t number = 0;
    if (syscall(SYS_getrandom, &number, sizeof(number), 1 /* GRND_NONBLOCK */) ==
        static_cast<long>(sizeof(number))) {
      return number;
    }
    timespec now = {};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<uint32_t>(now.tv_nsec) * 2654435761u ^ static_cast<uint32_t>(getpid());
  }

  // Sets `best` to the first name in alphabetical order, so that all processes choose the same one.
  static void FindByOwner(const char* parent, unsigned user, char* best) {
    const int folder = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0) return;
    char prefix[kRandomNameBytes];
    snprintf(prefix, sizeof(prefix), "rollcall-%u-", user);
    alignas(8) char entries[4096];
    long bytes = 0;
    for (int block = 0; block < kMostBlocks; ++block) {
      bytes = syscall(SYS_getdents64, folder, entries, sizeof(entries));
      if (bytes <= 0) break;
      uint16_t length = 0;
      for (long at = 0; at < bytes; at += length) {
        memcpy(&length, entries + at + kLengthAt, sizeof(length));
        if (length == 0) break;
        const char* name = entries + at + kNameAt;
        const bool is_better = best[0] == '\0' || strcmp(name, best) < 0;
        if (is_better && IsRandomName(folder, name, prefix)) strcpy(best, name);
      }
    }
    close(folder);
  }

  static bool IsRandomName(int folder, const char* name, const char* prefix) {
    const size_t start = strlen(prefix);
    struct stat about;
    return strncmp(name, prefix, start) == 0 && strlen(name) == start + kRandomDigits &&
           Look(folder, name, &about) == 0 && IsOwn(about);
  }
};

}  // namespace rollcall
