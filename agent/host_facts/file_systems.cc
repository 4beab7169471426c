// SPDX-License-Identifier: Apache-2.0
// The file systems that the job's processes see, and whether one answers.
#include <sys/statvfs.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "agent/host_facts/probes.h"

namespace rollcall {
namespace {

constexpr size_t kMostMounts = 32;

// Type names begin so. Those of servers come first: only they stop answering.
constexpr const char* kOfServers[] = {
    "nfs", "lustre", "ceph", "fuse",     "gpfs",      "beegfs", "cifs", "smb",      "9p",
    "afs", "weka",   "pvfs", "orangefs", "glusterfs", "ocfs2",  "gfs2", "virtiofs", "wekafs"};
constexpr const char* kLocal[] = {"ext", "xfs", "btrfs", "zfs", "bcachefs", "overlay", "tmpfs"};
// Nothing of a job lies below these.
constexpr const char* kNotOfJobs[] = {"/proc", "/sys",  "/run",          "/boot",
                                      "/snap", "/etc/", "/dev/hugepages"};

struct Mount {
  std::string device;  // "0:52"
  std::string point;
  std::string type;
  std::string source;
  bool is_of_server = false;
};

bool BeginsWithAny(const std::string& text, const char* const* begin, const char* const* end) {
  return std::any_of(begin, end, [&](const char* word) { return absl::StartsWith(text, word); });
}

// mountinfo writes a blank as \040.
std::string Unescape(absl::string_view text) {
  std::string plain;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 3 < text.size()) {
      plain +=
          static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 + text[i + 3] - '0');
      i += 3;
    } else {
      plain += text[i];
    }
  }
  return plain;
}

// A line of /proc/PID/mountinfo: "36 35 98:0 /root /point rw,noatime shared:1 - ext3 /dev/sda rw".
bool ReadMount(absl::string_view line, Mount* mount) {
  const std::pair<absl::string_view, absl::string_view> halves =
      absl::StrSplit(line, absl::MaxSplits(" - ", 1));
  const std::vector<absl::string_view> first = absl::StrSplit(halves.first, ' ');
  const std::vector<absl::string_view> second = absl::StrSplit(halves.second, ' ');
  if (first.size() < 6 || second.size() < 2) return false;
  mount->device = std::string(first[2]);
  mount->point = Unescape(first[4]);
  mount->type = std::string(second[0]);
  mount->source = Unescape(second[1]);
  mount->is_of_server = BeginsWithAny(mount->type, std::begin(kOfServers), std::end(kOfServers));
  if (mount->type == "fusectl" || mount->type == "nfsd") return false;
  const bool is_local = BeginsWithAny(mount->type, std::begin(kLocal), std::end(kLocal));
  const bool is_read_only = absl::StartsWith(first[5], "ro");
  return mount->is_of_server ||
         (is_local && !is_read_only &&
          !BeginsWithAny(mount->point, std::begin(kNotOfJobs), std::end(kNotOfJobs)));
}

}  // namespace

ProbeResult ListMounts(const ProbeInput& input) {
  ProbeResult result;
  std::set<std::string> known;
  std::vector<Fact> of_servers, local;
  for (const pid_t pid : input.pids) {
    const std::string text =
        input.files.Read(absl::StrCat("/proc/", pid, "/mountinfo")).value_or("");
    for (const absl::string_view line : absl::StrSplit(text, '\n')) {
      Mount mount;
      if (!ReadMount(line, &mount) || !known.insert(mount.device).second) continue;
      Fact fact = {HostFactKind::kMount,
                   mount.point,
                   0,
                   absl::StrCat(mount.type, " ", mount.source),
                   0,
                   pid};
      (mount.is_of_server ? of_servers : local).push_back(std::move(fact));
    }
  }
  result.facts = std::move(of_servers);
  result.facts.insert(result.facts.end(), local.begin(), local.end());
  if (result.facts.size() > kMostMounts) result.facts.resize(kMostMounts);
  return result;
}

ProbeResult AskFileSystem(const ProbeInput& input) {
  ProbeResult result;
  struct statvfs status;
  if (statvfs(input.files.Path(input.path).c_str(), &status) != 0) {
    result.outcome =
        errno == EACCES || errno == EPERM ? ProbeOutcome::kDenied : ProbeOutcome::kFailed;
    result.note = absl::StrCat("statfs: ", strerror(errno));
    return result;
  }
  constexpr uint64_t kFullBelow = 1;  // percent
  const auto percent = [](uint64_t free, uint64_t all) {
    return all == 0 ? 100 : free * 100 / all;
  };
  const uint64_t bytes = percent(status.f_bavail, status.f_blocks);
  const uint64_t files = percent(status.f_favail, status.f_files);
  if (std::min(bytes, files) >= kFullBelow) return result;
  result.facts.push_back({HostFactKind::kDiskFull, input.path,
                          static_cast<int64_t>(std::min(bytes, files)),
                          bytes < kFullBelow ? "no room" : "no room for more files", 0, 0});
  return result;
}

}  // namespace rollcall
