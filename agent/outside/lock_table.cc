// SPDX-License-Identifier: Apache-2.0
#include "agent/outside/lock_table.h"

#include <optional>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace rollcall {
namespace {

// "FLOCK", "ADVISORY", "WRITE", "4121", "08:01:7864448", "0", "EOF".
constexpr size_t kPidWord = 3, kFileWord = 4, kFirstWord = 5, kLastWord = 6, kWords = 7;

// "0", "63"; "EOF" is not a number. False if it is not a range.
bool ParseRange(absl::string_view first, absl::string_view last, ByteRange* bytes) {
  if (!absl::SimpleAtoi(first, &bytes->first)) return false;
  return last == "EOF" || absl::SimpleAtoi(last, &bytes->last);
}

// "08:01:7864448": the device in hexadecimal digits, and the inode. False if it is not a file.
bool ParseFile(absl::string_view word, LockRow* row) {
  const std::vector<absl::string_view> parts = absl::StrSplit(word, ':');
  uint32_t major = 0, minor = 0;
  if (parts.size() != 3 || !absl::SimpleHexAtoi(parts[0], &major) ||
      !absl::SimpleHexAtoi(parts[1], &minor) || !absl::SimpleAtoi(parts[2], &row->inode)) {
    return false;
  }
  row->device = DeviceNumber(major, minor);
  return row->inode != 0;
}

// "3: FLOCK  ADVISORY  WRITE 4121 08:01:7864448 0 EOF"; "3: -> FLOCK ..." waits for the one above.
std::optional<LockRow> ParseRow(absl::string_view line) {
  std::vector<absl::string_view> words = absl::StrSplit(line, ' ', absl::SkipWhitespace());
  if (words.empty()) return std::nullopt;
  words.erase(words.begin());
  LockRow row;
  row.waits = !words.empty() && words[0] == "->";
  if (row.waits) words.erase(words.begin());
  if (words.size() < kWords) return std::nullopt;
  row.is_of_descriptor = words[0] == "OFDLCK";
  if (!row.is_of_descriptor && words[0] != "FLOCK" && words[0] != "POSIX") return std::nullopt;
  const bool fits = absl::SimpleAtoi(words[kPidWord], &row.pid) &&
                    ParseFile(words[kFileWord], &row) &&
                    ParseRange(words[kFirstWord], words[kLastWord], &row.bytes);
  return fits ? std::optional<LockRow>(row) : std::nullopt;
}

}  // namespace

std::optional<LockRow> LockTable::Read(absl::string_view line) {
  std::optional<LockRow> row = ParseRow(line);
  if (!row.has_value()) return std::nullopt;
  if (row->waits) {
    row->holder = holder_;
  } else {
    holder_ = row->pid;
  }
  return row;
}

DescriptorLocks ParseDescriptorLocks(absl::string_view text) {
  DescriptorLocks found;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    if (absl::ConsumePrefix(&line, "ino:\t")) {
      static_cast<void>(absl::SimpleAtoi(line, &found.inode));
    } else if (absl::ConsumePrefix(&line, "mnt_id:\t")) {
      static_cast<void>(absl::SimpleAtoi(line, &found.mount));
    } else if (absl::ConsumePrefix(&line, "lock:\t")) {
      const std::optional<LockRow> row = ParseRow(line);
      if (row.has_value()) found.rows.push_back(*row);
    }
  }
  if (found.inode == 0 && !found.rows.empty()) found.inode = found.rows[0].inode;
  return found;
}

// "36 35 98:0 / /mnt ...".
std::map<int, uint64_t> ParseMountDevices(absl::string_view mountinfo) {
  std::map<int, uint64_t> devices;
  for (const absl::string_view line : absl::StrSplit(mountinfo, '\n')) {
    const std::vector<absl::string_view> words = absl::StrSplit(line, absl::MaxSplits(' ', 3));
    if (words.size() < 4) continue;
    const std::pair<absl::string_view, absl::string_view> device = absl::StrSplit(words[2], ':');
    int mount = 0;
    uint32_t major = 0, minor = 0;
    if (absl::SimpleAtoi(words[0], &mount) && absl::SimpleAtoi(device.first, &major) &&
        absl::SimpleAtoi(device.second, &minor)) {
      devices[mount] = DeviceNumber(major, minor);
    }
  }
  return devices;
}

}  // namespace rollcall
