// SPDX-License-Identifier: Apache-2.0
#include "agent/ras/nccl_release.h"

#include <filesystem>
#include <system_error>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "agent/processes/proc_files.h"
#include "agent/processes/proc_maps.h"
#include "base/base_name.h"

namespace rollcall {
namespace {

constexpr char kNcclFile[] = "libnccl.so";
constexpr size_t kMostPackages = 10'000;
constexpr int kFirstWithRas = 22400;
constexpr int kRasSafeSince = 22902;

// A wheel has site-packages/nvidia/nccl/lib/libnccl.so.2 beside site-packages/nvidia_nccl_cu12-....
int VersionBeside(const std::string& root, const std::filesystem::path& library) {
  const std::filesystem::path site =
      library.parent_path().parent_path().parent_path().parent_path();
  std::error_code failed;
  std::filesystem::directory_iterator packages(root + site.string(), failed);
  for (size_t i = 0; !failed && packages != std::filesystem::directory_iterator(); ++i) {
    const std::string name = packages->path().filename().string();
    if (absl::StartsWith(name, "nvidia_nccl") && absl::EndsWith(name, ".dist-info"))
      return NcclVersionInName(name);
    if (i == kMostPackages) return 0;
    packages.increment(failed);
  }
  return 0;
}

}  // namespace

int NcclVersionInName(absl::string_view name) {
  absl::string_view version = name;
  if (absl::ConsumePrefix(&version, "nvidia_nccl")) {
    const size_t dash = version.find('-');
    if (dash == absl::string_view::npos) return 0;
    version.remove_prefix(dash + 1);
  } else if (!absl::ConsumePrefix(&version, "libnccl.so.")) {
    return 0;
  }
  const std::vector<absl::string_view> parts = absl::StrSplit(version, '.');
  int numbers[3] = {};
  if (parts.size() < 3) return 0;
  for (size_t i = 0; i < 3; ++i) {
    if (!absl::SimpleAtoi(parts[i], &numbers[i]) || numbers[i] < 0 || numbers[i] > 99) return 0;
  }
  return numbers[0] * 10'000 + numbers[1] * 100 + numbers[2];
}

int ReadNcclVersion(const std::string& proc_root, pid_t pid) {
  const absl::StatusOr<std::string> text =
      ReadProcFile(ProcPath(proc_root, pid, "maps"), 16 * kProcFileLimit);
  if (!text.ok()) return 0;
  for (const ProcMap& map : ParseProcMaps(*text)) {
    const std::string name(BaseName(map.path));
    if (!absl::StartsWith(name, kNcclFile)) continue;
    const int version = NcclVersionInName(name);
    return version != 0 ? version : VersionBeside(ProcPath(proc_root, pid, "root"), map.path);
  }
  return 0;
}

std::string NcclVersionInWords(int version) {
  if (version <= 0) return "";
  return absl::StrCat(version / 10'000, ".", version / 100 % 100, ".", version % 100);
}

std::string RiskOfAskingRas(int version) {
  if (version >= kRasSafeSince) return "";
  if (version == 0) {
    return "the release of NCCL is unknown, and before 2.29.2 a question to its RAS could end the "
           "job (github.com/NVIDIA/nccl/issues/1762)";
  }
  if (version < kFirstWithRas)
    return absl::StrCat("NCCL ", NcclVersionInWords(version), " has no RAS: 2.24 was the first");
  return absl::StrCat("a question to the RAS of NCCL ", NcclVersionInWords(version),
                      " could end the job (github.com/NVIDIA/nccl/issues/1762, mended in 2.29.2)");
}

}  // namespace rollcall
