// SPDX-License-Identifier: Apache-2.0
#include "agent/outside/lock_table.h"

#include <optional>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace rollcall {
namespace {

// "FLOCK", "ADVISORY", "WRITE", "4121", "08:01:7864448", "0", "EOF".
constexpr size_t kPidWord = 3, kFileWord = 4, kFirstWord = 5, kLastWord = 6, kWords = 7;

// "0", "63"; "EOF" is no number. False: not a range.
bool ParseRange(absl::string_view first, absl::string_view last, ByteRange* bytes) {
  if (!absl::SimpleAtoi(first, &bytes->first)) return false;
  return last == "EOF" || absl::SimpleAtoi(last, &bytes->last);
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
  const absl::string_view file = words[kFileWord];
  const bool fits = absl::SimpleAtoi(words[kPidWord], &row.pid) &&
                    absl::SimpleAtoi(file.substr(file.rfind(':') + 1), &row.inode) &&
                    ParseRange(words[kFirstWord], words[kLastWord], &row.bytes);
  return fits && row.inode != 0 ? std::optional<LockRow>(row) : std::nullopt;
}

}  // namespace

std::vector<LockRow> ParseLockTable(absl::string_view text) {
  std::vector<LockRow> rows;
  pid_t holder = 0;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    std::optional<LockRow> row = ParseRow(line);
    if (!row.has_value()) continue;
    if (row->waits) {
      row->holder = holder;
    } else {
      holder = row->pid;
    }
    rows.push_back(*row);
  }
  return rows;
}

DescriptorLocks ParseDescriptorLocks(absl::string_view text) {
  DescriptorLocks found;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    if (absl::ConsumePrefix(&line, "ino:\t")) {
      static_cast<void>(absl::SimpleAtoi(line, &found.inode));
    } else if (absl::ConsumePrefix(&line, "lock:\t")) {
      const std::optional<LockRow> row = ParseRow(line);
      if (row.has_value()) found.rows.push_back(*row);
    }
  }
  if (found.inode == 0 && !found.rows.empty()) found.inode = found.rows[0].inode;
  return found;
}

}  // namespace rollcall
