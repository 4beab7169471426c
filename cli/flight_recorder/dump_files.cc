// SPDX-License-Identifier: Apache-2.0
#include "cli/flight_recorder/dump_files.h"

#include <fcntl.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/read_file.h"
#include "base/unique_fd.h"

namespace rollcall {
namespace {

namespace fs = std::filesystem;

constexpr uintmax_t kMostBytes = uintmax_t{256} << 20;  // of a file
constexpr size_t kHeadBytes = 16;                       // show whether a file is a dump
constexpr size_t kMostFiles = 200'000;
constexpr size_t kMostFileWarnings = 100;

// The file's name without an extension: "_host07_40" for "_host07_40.json".
std::string NameOf(const fs::path& path) {
  std::string name = path.filename().string();
  for (const char* extension : {".json", ".pickle", ".pkl", ".pt", ".bin"}) {
    const std::string end = extension;
    if (name.size() > end.size() && name.compare(name.size() - end.size(), end.size(), end) == 0) {
      name.resize(name.size() - end.size());
    }
  }
  return name;
}

// The number at the end of the name: 40 for "_host07_40.json".
std::optional<int32_t> ParseRank(const fs::path& path) {
  const std::string name = NameOf(path);
  size_t first = name.size();
  while (first > 0 && name[first - 1] >= '0' && name[first - 1] <= '9') --first;
  int32_t rank = 0;
  if (first == name.size() || !absl::SimpleAtoi(name.substr(first), &rank)) return std::nullopt;
  return rank;
}

// The host in a name like "nccl_trace_rank_node-17_3" or "trace_host07_3": the word before the
// rank, if it has letters and a digit, else "".
std::string HostInName(const fs::path& path) {
  std::string name = NameOf(path);
  while (!name.empty() && absl::ascii_isdigit(static_cast<unsigned char>(name.back()))) {
    name.pop_back();
  }
  while (!name.empty() && (name.back() == '_' || name.back() == '-')) name.pop_back();
  const std::string word = name.substr(name.rfind('_') + 1);
  const auto is_digit = [](char c) { return absl::ascii_isdigit(static_cast<unsigned char>(c)); };
  const auto is_letter = [](char c) { return absl::ascii_isalpha(static_cast<unsigned char>(c)); };
  const bool fits = std::any_of(word.begin(), word.end(), is_digit) &&
                    std::any_of(word.begin(), word.end(), is_letter);
  return fits ? word : "";
}

// Dumps that were collected into one folder for each host.
std::string HostOfFolder(const fs::path& path) { return path.parent_path().filename().string(); }

void SetHosts(std::vector<RankedDump>* dumps) {
  std::set<std::string> folders;
  for (const RankedDump& dump : *dumps) folders.insert(fs::path(dump.path).parent_path());
  for (RankedDump& dump : *dumps) {
    dump.host = dump.dump.host.empty() ? HostInName(dump.path) : dump.dump.host;
    if (dump.host.empty() && folders.size() > 1) dump.host = HostOfFolder(dump.path);
  }
}

class Files {
 public:
  explicit Files(std::vector<std::string>* warnings) : warnings_(warnings) {}

  absl::Status Find(const std::vector<std::string>& paths) {
    for (const std::string& path : paths) {
      std::error_code error;
      const fs::file_status status = fs::status(path, error);
      if (!fs::exists(status)) {
        return absl::InvalidArgumentError(absl::StrCat(path, ": no such file or folder"));
      }
      if (fs::is_directory(status)) {
        Search(path);
      } else {
        found_.emplace(path, true);
      }
    }
    return absl::OkStatus();
  }

  DumpFiles Read() {
    std::map<int32_t, RankedDump> by_rank;
    for (const auto& [path, asked_for] : found_) ReadOne(path, asked_for, &by_rank);
    DumpFiles files;
    for (auto& [rank, dump] : by_rank) files.dumps.push_back(std::move(dump));
    files.damaged = damaged_;
    SetHosts(&files.dumps);
    return files;
  }

 private:
  void Report(const std::string& warning) { AddWarning(warning, warnings_); }

  // Finds the files below a folder that have a name like a dump's. Does not follow links.
  void Search(const std::string& folder) {
    std::error_code error;
    for (auto at = fs::recursive_directory_iterator(
             folder, fs::directory_options::skip_permission_denied, error);
         !error && at != fs::recursive_directory_iterator(); at.increment(error)) {
      std::error_code ignored;
      if (!fs::is_regular_file(at->symlink_status(ignored)) || !ParseRank(at->path())) continue;
      if (found_.size() < kMostFiles) found_.emplace(at->path().string(), false);
    }
    if (error) Report(absl::StrCat(folder, ": ", error.message()));
  }

  void ReadOne(const std::string& path, bool asked_for, std::map<int32_t, RankedDump>* by_rank) {
    const std::optional<int32_t> rank = ParseRank(path);
    if (!rank) {
      Report(absl::StrCat(path,
                          ": left out: the name does not end in a number, so the rank is unknown"));
      return;
    }
    std::error_code error;
    const uintmax_t size = fs::file_size(path, error);
    if (error || size > kMostBytes) {
      Report(absl::StrCat(path, ": left out: ",
                          error ? error.message() : "larger than 256 MiB, the limit for a dump"));
      return;
    }
    const UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
    std::string bytes = ReadUpTo(file.get(), kHeadBytes).value_or("");
    if (!asked_for && !LooksLikeDump(bytes)) return;
    bytes += ReadUpTo(file.get(), kMostBytes).value_or("");
    absl::StatusOr<Dump> dump = ReadDump(bytes);
    if (!dump.ok()) {
      damaged_ += LooksLikeDump(bytes);
      Report(absl::StrCat(path, ": left out: ", dump.status().message()));
      return;
    }
    for (const std::string& warning : dump->warnings) {
      Report(absl::StrCat(path, ": ", warning));
    }
    Keep({path, *rank, *std::move(dump), ""}, by_rank);
  }

  // If two dumps belong to one rank, keeps the one that has more calls.
  void Keep(RankedDump dump, std::map<int32_t, RankedDump>* by_rank) {
    const auto at = by_rank->find(dump.rank);
    if (at == by_rank->end()) {
      by_rank->emplace(dump.rank, std::move(dump));
      return;
    }
    RankedDump& known = at->second;
    if (known.dump.calls.size() < dump.dump.calls.size()) std::swap(known, dump);
    Report(absl::StrCat(dump.path, ": left out: ", known.path, " belongs to rank ", known.rank,
                        ", too, and holds more calls"));
  }

  std::vector<std::string>* const warnings_;
  int damaged_ = 0;
  std::map<std::string, bool> found_;  // path -> whether the user named this file
};

}  // namespace

void AddWarning(const std::string& warning, std::vector<std::string>* warnings) {
  if (warnings->size() < kMostFileWarnings) warnings->push_back(warning);
}

absl::StatusOr<DumpFiles> ReadDumps(const std::vector<std::string>& paths,
                                    std::vector<std::string>* warnings) {
  Files files(warnings);
  const absl::Status status = files.Find(paths);
  if (!status.ok()) return status;
  return files.Read();
}

}  // namespace rollcall
