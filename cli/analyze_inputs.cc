// SPDX-License-Identifier: Apache-2.0
#include "cli/analyze_inputs.h"

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "agent/collector/collector.h"
#include "base/read_file.h"
#include "cli/flight_recorder/dump.h"
#include "daemon/ras/ras_output.h"

namespace rollcall {
namespace {

namespace fs = std::filesystem;

constexpr size_t kHead = 4096;        // bytes that show what a file is
constexpr size_t kMostLogs = 20'000;  // of all folders

absl::Status Wrong(const std::string& path, const std::string& why) {
  return absl::InvalidArgumentError(absl::StrCat(path, ": ", why));
}

std::string ReadHead(const fs::path& path) { return ReadFile(path, kHead).value_or(""); }

bool IsLogName(const fs::path& path) {
  const std::string extension = path.extension().string();
  return extension == ".log" || extension == ".out" || extension == ".err" || extension == ".txt";
}

// A file that is neither a segment nor a dump.
void AddText(const fs::path& path, const std::string& head, AnalyzeInputs* inputs) {
  if (inputs->ras.size() + inputs->logs.size() >= kMostLogs) return;
  (IsRasOutput(head) ? inputs->ras : inputs->logs).push_back(path.string());
}

void AddTextsBelow(const fs::path& folder, AnalyzeInputs* inputs) {
  std::error_code error;
  for (auto at = fs::recursive_directory_iterator(
           folder, fs::directory_options::skip_permission_denied, error);
       !error && at != fs::recursive_directory_iterator(); at.increment(error)) {
    std::error_code ignored;
    if (!IsLogName(at->path()) || !fs::is_regular_file(at->symlink_status(ignored))) continue;
    AddText(at->path(), ReadHead(at->path()), inputs);
  }
}

}  // namespace

absl::Status AddSegmentFolders(const std::string& path, std::set<std::string>* folders) {
  std::error_code error;
  const fs::path real = fs::canonical(path, error);  // counts a folder with two names once
  if (error == std::errc::no_such_file_or_directory) return Wrong(path, "no such file or folder");
  if (error) return Wrong(path, error.message());
  if (!fs::is_directory(real, error)) {
    if (!IsSegmentName(real.filename())) {
      return Wrong(path, "neither a folder nor the name of a segment");
    }
    folders->insert(real.parent_path());
    return absl::OkStatus();
  }
  for (auto at = fs::recursive_directory_iterator(
           real, fs::directory_options::skip_permission_denied, error);
       !error && at != fs::recursive_directory_iterator(); at.increment(error)) {
    if (IsSegmentName(at->path().filename())) folders->insert(at->path().parent_path());
  }
  return absl::OkStatus();
}

absl::Status SortInputs(const std::vector<std::string>& paths, AnalyzeInputs* inputs) {
  for (const std::string& path : paths) {
    std::error_code error;
    const fs::path real = fs::canonical(path, error);
    const bool is_file = !error && !fs::is_directory(real, error);
    if (!is_file || IsSegmentName(real.filename())) {
      const absl::Status status = AddSegmentFolders(path, &inputs->folders);
      if (!status.ok()) return status;
      if (is_file) continue;
      inputs->dumps.push_back(path);
      AddTextsBelow(path, inputs);
      continue;
    }
    if (!fs::is_regular_file(real, error)) return Wrong(path, "not a regular file");
    const std::string head = ReadHead(real);
    if (LooksLikeDump(head)) {
      inputs->dumps.push_back(path);
    } else {
      AddText(path, head, inputs);
    }
  }
  return absl::OkStatus();
}

}  // namespace rollcall
