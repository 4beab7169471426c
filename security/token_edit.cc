// SPDX-License-Identifier: Apache-2.0
#include "security/token_edit.h"

#include <algorithm>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace rollcall {
namespace {

using Entries = std::vector<TokenEntry>;

std::string ListText(const std::vector<std::string>& values) {
  return absl::StrCat("[",
                      absl::StrJoin(values, ", ",
                                    [](std::string* out, const std::string& v) {
                                      absl::StrAppend(out, "\"", v, "\"");
                                    }),
                      "]");
}

std::string EntryText(const TokenEntry& entry, size_t indent) {
  const std::string dash(indent, ' ');
  const std::string key(indent + 2, ' ');
  std::string text = absl::StrCat(dash, "- name: \"", entry.name, "\"\n",  //
                                  key, "role: ", std::string(RoleName(entry.role)), "\n", key,
                                  "tenants: ", ListText(entry.tenants), "\n");
  if (!entry.hosts.empty()) absl::StrAppend(&text, key, "hosts: ", ListText(entry.hosts), "\n");
  absl::StrAppend(&text, key, "expires: ", ExpiryText(entry.expires_s), "\n",  //
                  key, "sha256: \"", entry.sha256, "\"\n");
  return text;
}

bool SameEntry(const TokenEntry& a, const TokenEntry& b) {
  return a.name == b.name && a.role == b.role && a.tenants == b.tenants && a.hosts == b.hosts &&
         a.expires_s == b.expires_s && a.sha256 == b.sha256;
}

// Whether `text` has exactly these entries. Guards against layouts unknown to the edits below.
bool Says(absl::string_view text, const Entries& wanted) {
  const absl::StatusOr<Entries> entries = ParseTokens(text);
  return entries.ok() &&
         std::equal(entries->begin(), entries->end(), wanted.begin(), wanted.end(), SameEntry);
}

// The lines with their line feeds.
std::vector<absl::string_view> Lines(absl::string_view text) {
  std::vector<absl::string_view> lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size() - 1) + 1;
    lines.push_back(text.substr(0, end));
    text.remove_prefix(end);
  }
  return lines;
}

bool StartsWithDash(absl::string_view line) {
  return absl::StartsWith(absl::StripLeadingAsciiWhitespace(line), "-");
}

bool IsBlankOrComment(absl::string_view line) {
  const absl::string_view text = absl::StripAsciiWhitespace(line);
  return text.empty() || text[0] == '#';
}

// The line of the entry's dash: its first key may stand below.
size_t DashLine(const std::vector<absl::string_view>& lines, const TokenEntry& entry) {
  size_t line = std::min(entry.line, lines.size() - 1);
  while (line > 0 && !StartsWithDash(lines[line])) --line;
  return line;
}

size_t DashIndent(const std::vector<absl::string_view>& lines, const Entries& entries) {
  if (entries.empty()) return 2;
  const absl::string_view line = lines[DashLine(lines, entries.back())];
  return line.size() - absl::StripLeadingAsciiWhitespace(line).size();
}

}  // namespace

absl::StatusOr<std::string> AppendToken(absl::string_view text, const TokenEntry& entry) {
  absl::StatusOr<Entries> entries = ParseTokens(text);
  if (!entries.ok()) return entries.status();
  const auto has_name = [&entry](const TokenEntry& other) { return other.name == entry.name; };
  if (std::any_of(entries->begin(), entries->end(), has_name)) {
    return absl::AlreadyExistsError(
        absl::StrCat("a token already has the name ", entry.name,
                     ": choose another --name, or revoke that one first"));
  }
  const std::vector<absl::string_view> lines = Lines(text);
  std::string result(text);
  if (!result.empty() && result.back() != '\n') result += '\n';
  if (std::all_of(lines.begin(), lines.end(), IsBlankOrComment)) result += "tokens:\n";
  absl::StrAppend(&result, EntryText(entry, DashIndent(lines, *entries)));
  entries->push_back(entry);
  if (!Says(result, *entries)) {
    return absl::FailedPreconditionError(absl::StrCat(
        "no entry can be added at the end of this file: write its list with one '- name: ...' "
        "for each token, or choose another --file"));
  }
  return result;
}

absl::StatusOr<std::string> RemoveToken(absl::string_view text, absl::string_view name) {
  absl::StatusOr<Entries> entries = ParseTokens(text);
  if (!entries.ok()) return entries.status();
  const auto has_name = [name](const TokenEntry& entry) { return entry.name == name; };
  const auto found = std::find_if(entries->begin(), entries->end(), has_name);
  if (found == entries->end()) {
    return absl::NotFoundError(absl::StrCat("no token has the name ", name,
                                            "; `rollcall token list` shows those there are"));
  }
  const std::vector<absl::string_view> lines = Lines(text);
  const size_t first = DashLine(lines, *found);
  const bool is_last = found + 1 == entries->end();
  size_t end = is_last ? lines.size() : DashLine(lines, *(found + 1));
  // What stands between two entries belongs to the second, or to neither.
  while (end > first + 1 && (IsBlankOrComment(lines[end - 1]))) --end;
  entries->erase(found);
  const std::string result = absl::StrCat(absl::StrJoin(lines.begin(), lines.begin() + first, ""),
                                          absl::StrJoin(lines.begin() + end, lines.end(), ""));
  if (!Says(result, *entries)) {
    return absl::FailedPreconditionError(
        absl::StrCat("the lines of ", name,
                     " cannot be separated from those of other entries: remove them by hand"));
  }
  return result;
}

}  // namespace rollcall
