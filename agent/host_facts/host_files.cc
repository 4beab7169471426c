// SPDX-License-Identifier: Apache-2.0
#include "agent/host_facts/host_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>

#include "absl/strings/ascii.h"
#include "base/durations.h"
#include "base/read_file.h"
#include "base/unique_fd.h"

namespace rollcall {
namespace {

constexpr size_t kMostBytes = 1 << 20;
constexpr size_t kMostEntries = 4096;

std::optional<int64_t> ToNumber(const char* text) {
  char* end = nullptr;
  errno = 0;
  const int64_t number = std::strtoll(text, &end, 10);
  if (end == text || errno != 0) return std::nullopt;
  return number;
}

}  // namespace

std::optional<std::string> HostFiles::Read(const std::string& path) const {
  const UniqueFd file(open(Path(path).c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid()) return std::nullopt;
  const std::optional<std::string> text = ReadUpTo(file.get(), kMostBytes);
  if (!text.has_value()) return std::nullopt;  // the port of a card that is gone
  return std::string(absl::StripAsciiWhitespace(*text));
}

std::optional<int64_t> HostFiles::Number(const std::string& path) const {
  const auto text = Read(path);
  return text.has_value() ? ToNumber(text->c_str()) : std::nullopt;
}

std::optional<int64_t> HostFiles::Number(const std::string& path, std::string_view word) const {
  const auto text = Read(path);
  return text.has_value() ? NumberAfter(*text, word) : std::nullopt;
}

bool HostFiles::Exists(const std::string& path) const {
  struct stat status;
  return stat(Path(path).c_str(), &status) == 0;
}

std::vector<std::string> HostFiles::List(const std::string& path) const {
  std::vector<std::string> names;
  DIR* const folder = opendir(Path(path).c_str());
  if (folder == nullptr) return names;
  while (const dirent* entry = readdir(folder)) {
    if (entry->d_name[0] != '.' && names.size() < kMostEntries) names.emplace_back(entry->d_name);
  }
  closedir(folder);
  std::sort(names.begin(), names.end());
  return names;
}

std::string HostFiles::LinkName(const std::string& path) const {
  const std::string target = ReadLink(Path(path));
  return target.substr(target.rfind('/') + 1);
}

std::optional<int64_t> NumberAfter(std::string_view text, std::string_view word) {
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    if (line.substr(0, word.size()) == word) {
      return ToNumber(std::string(line.substr(word.size())).c_str());
    }
    text.remove_prefix(std::min(text.size(), line.size() + 1));
  }
  return std::nullopt;
}

void Pause(int64_t ns) {
  timespec left = {ns / kSecond, ns % kSecond};
  while (nanosleep(&left, &left) != 0 && errno == EINTR) {
  }
}

}  // namespace rollcall
