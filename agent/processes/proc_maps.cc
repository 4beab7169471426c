// SPDX-License-Identifier: Apache-2.0
#include "agent/processes/proc_maps.h"

#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>

#include <algorithm>
#include <charconv>

#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace rollcall {
namespace {

// Removes the text up to `separator` from the front of `*line` and returns it.
absl::string_view TakeField(absl::string_view* line, char separator) {
  const size_t end = std::min(line->find(separator), line->size());
  const absl::string_view field = line->substr(0, end);
  line->remove_prefix(std::min(end + 1, line->size()));
  return field;
}

bool ParseNumber(absl::string_view text, int base, uint64_t* value) {
  const char* end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, *value, base);
  return result.ec == std::errc() && result.ptr == end && !text.empty();
}

}  // namespace

bool ParseProcMap(absl::string_view line, ProcMap* map) {
  if (!ParseNumber(TakeField(&line, '-'), 16, &map->start)) return false;
  if (!ParseNumber(TakeField(&line, ' '), 16, &map->end)) return false;
  const absl::string_view permissions = TakeField(&line, ' ');
  if (permissions.size() != 4 || map->end <= map->start) return false;
  map->readable = permissions[0] == 'r';
  map->writable = permissions[1] == 'w';
  map->executable = permissions[2] == 'x';
  if (!ParseNumber(TakeField(&line, ' '), 16, &map->offset)) return false;
  absl::string_view device = TakeField(&line, ' ');
  uint64_t major_number = 0, minor_number = 0;
  if (!ParseNumber(TakeField(&device, ':'), 16, &major_number)) return false;
  if (!ParseNumber(device, 16, &minor_number)) return false;
  map->device = makedev(static_cast<unsigned>(major_number), static_cast<unsigned>(minor_number));
  if (!ParseNumber(TakeField(&line, ' '), 10, &map->inode)) return false;
  line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
  map->deleted = map->inode != 0 && absl::ConsumeSuffix(&line, " (deleted)");
  map->path = std::string(line);
  return true;
}

std::vector<ProcMap> ParseProcMaps(absl::string_view text) {
  std::vector<ProcMap> maps;
  for (absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    ProcMap map;
    if (!ParseProcMap(line, &map)) continue;
    if (!maps.empty() && map.start < maps.back().end) continue;
    maps.push_back(std::move(map));
  }
  return maps;
}

const ProcMap* FindMap(const std::vector<ProcMap>& maps, uint64_t address) {
  const auto after =
      std::upper_bound(maps.begin(), maps.end(), address,
                       [](uint64_t value, const ProcMap& map) { return value < map.end; });
  if (after == maps.end() || address < after->start) return nullptr;
  return &*after;
}

bool IsMapped(int fd, const ProcMap& map) {
  struct stat about;
  if (fstat(fd, &about) != 0 || !S_ISREG(about.st_mode) || about.st_ino != map.inode) return false;
  struct statfs system;
  // On btrfs, /proc/PID/maps and stat() report different devices.
  return about.st_dev == map.device ||
         (fstatfs(fd, &system) == 0 && system.f_type == BTRFS_SUPER_MAGIC);
}

}  // namespace rollcall
