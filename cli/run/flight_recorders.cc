// SPDX-License-Identifier: Apache-2.0
#include "cli/run/flight_recorders.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "agent/processes/open_in_root.h"
#include "agent/processes/proc_files.h"
#include "agent/processes/rank_environment.h"
#include "base/durations.h"
#include "base/open_regular.h"
#include "base/read_file.h"
#include "base/threads.h"
#include "base/unique_fd.h"
#include "cli/diagnose/ask_for_dump.h"
#include "cli/run/dumped_verdicts.h"
#include "cli/run/recorder_files.h"

namespace rollcall {
namespace {

constexpr int64_t kReadWithinNs = kSecond;
constexpr std::chrono::seconds kAskedWithin{4};  // all ranks
// PyTorch looks at its pipe once a second, and a dump takes about one.
constexpr std::chrono::seconds kDumpsWithin{6};
constexpr std::chrono::milliseconds kLookAtDumpsEvery{100};
constexpr size_t kMostRanks = 64;  // of one host
constexpr off_t kMostDumpBytes = off_t{32} << 20;

struct Stamp {
  int64_t time_ns = 0;
  int64_t bytes = -1;  // -1 if there is no file that may be read

  bool operator==(const Stamp& other) const {
    return time_ns == other.time_ns && bytes == other.bytes;
  }
};

// Of a file that is open with O_PATH. In /tmp every user can be the first to make it.
Stamp StampOf(const UniqueFd& path_only) {
  struct stat about;
  if (!path_only.valid() || fstat(path_only.get(), &about) != 0) return {};
  if (!S_ISREG(about.st_mode) || about.st_uid != geteuid()) return {};
  if (about.st_size > kMostDumpBytes) return {};
  return {about.st_mtim.tv_sec * kSecond + about.st_mtim.tv_nsec, about.st_size};
}

std::optional<Dump> ReadDumpAt(const UniqueFd& path_only) {
  const UniqueFd file = ReopenRegular(path_only, O_RDONLY);
  if (!file.valid()) return std::nullopt;
  const std::optional<std::string> bytes = ReadUpTo(file.get(), kMostDumpBytes);
  if (!bytes) return std::nullopt;
  absl::StatusOr<Dump> dump = ReadDump(*bytes);
  return dump.ok() ? std::optional<Dump>(*std::move(dump)) : std::nullopt;
}

int64_t WallNs() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

}  // namespace

// An older dump may lie where the new one will.
struct FlightRecorders::Asked {
  int32_t rank = -1;
  std::string root, dump;  // the rank's root folder, and the path in it
  Stamp before, newest;
  std::optional<RankedDump> found;

  UniqueFd Find() const { return OpenInRoot(root, dump, O_PATH | O_NOFOLLOW); }

  // nullopt if it has not got the request.
  static std::optional<Asked> Ask(const std::string& proc_root, const Rank& rank,
                                  const RecorderFiles& files) {
    if (!HasPipeOpen(proc_root, rank.pid, files.pipe)) return std::nullopt;
    Asked asked;
    asked.rank = rank.rank;
    asked.root = ProcPath(proc_root, rank.pid, "root");
    asked.dump = files.dump;
    asked.before = asked.newest = StampOf(asked.Find());
    if (!AskForDump(asked.root, files.pipe, geteuid())) return std::nullopt;
    return asked;
  }

  // A file that has not grown since the last look is read.
  void Look() {
    const UniqueFd file = Find();
    const Stamp stamp = StampOf(file);
    const bool rests = stamp == newest && stamp.bytes > 0 && !(stamp == before);
    newest = stamp;
    if (!rests) return;
    std::optional<Dump> read = ReadDumpAt(file);
    if (!read) return;
    const std::string host = read->host;
    found = RankedDump{absl::StrCat(root, dump), rank, *std::move(read), host};
  }
};

FlightRecorders::~FlightRecorders() {
  is_stopping_ = true;
  reads_.Cancel();
  std::thread thread;
  {
    const MutexLock lock(mutex_);
    thread = std::move(thread_);
  }
  if (thread.joinable()) thread.join();
}

bool FlightRecorders::Ask(const JobState& job, const std::vector<int32_t>& processes) {
  std::vector<Rank> ranks;
  for (const int32_t index : processes) {
    const Process& process = job.processes[static_cast<size_t>(index)];
    ranks.push_back({process.global_rank, process.pid});
  }
  const MutexLock lock(mutex_);
  if (thread_.joinable() || ranks.empty() || ranks.size() > kMostRanks) return false;
  std::optional<std::thread> thread =
      TryThread([this, ranks = std::move(ranks)] { AskAll(ranks); });
  if (!thread.has_value()) return false;
  thread_ = *std::move(thread);
  return true;
}

void FlightRecorders::AskAll(const std::vector<Rank>& ranks) {
  Dumps dumps;
  dumps.ranks = ranks.size();
  std::vector<Asked> all = AskEach(ranks);
  dumps.asked = all.size();
  const auto until = std::chrono::steady_clock::now() + kDumpsWithin;
  // The numbers of some ranks show nothing of one that does not answer.
  bool is_any_awaited = all.size() == ranks.size();
  while (is_any_awaited && GoesOn(until)) {
    std::this_thread::sleep_for(kLookAtDumpsEvery);
    is_any_awaited = LookAtEach(until, &all);
  }
  for (Asked& asked : all) {
    if (asked.found) dumps.dumps.push_back(*std::move(asked.found));
  }
  dumps.now_ns = WallNs();
  const MutexLock lock(mutex_);
  dumps_ = std::move(dumps);
}

bool FlightRecorders::GoesOn(Deadline until) const {
  return !is_stopping_ && std::chrono::steady_clock::now() < until;
}

// Returns the ranks that have got the request.
std::vector<FlightRecorders::Asked> FlightRecorders::AskEach(const std::vector<Rank>& ranks) {
  std::vector<Asked> all;
  const Deadline until = std::chrono::steady_clock::now() + kAskedWithin;
  for (const Rank& rank : ranks) {
    if (!GoesOn(until)) break;
    const auto files = reads_.Get<RecorderFiles>(
        absl::StrCat("names ", rank.pid),
        [path = ProcPath(proc_root_, rank.pid, "environ"), rank] {
          return FindRecorderFiles(ReadProcFile(path, kMaxEnvironBytes).value_or(""), rank.rank);
        },
        kReadWithinNs);
    if (!files || files->pipe.empty()) continue;
    const auto asked = reads_.Get<std::optional<Asked>>(
        absl::StrCat("ask ", rank.pid),
        [root = proc_root_, files = *files, rank] { return Asked::Ask(root, rank, files); },
        kReadWithinNs);
    if (asked && *asked) all.push_back(**asked);
  }
  return all;
}

// Whether dumps are still awaited.
bool FlightRecorders::LookAtEach(Deadline until, std::vector<Asked>* all) {
  bool is_any_awaited = false;
  for (Asked& asked : *all) {
    if (asked.found) continue;
    if (!GoesOn(until)) return true;
    auto looked = reads_.Get<Asked>(
        absl::StrCat("dump ", asked.rank),
        [copy = asked]() mutable {
          copy.Look();
          return copy;
        },
        kReadWithinNs);
    if (looked) asked = *std::move(looked);
    is_any_awaited = is_any_awaited || !asked.found;
  }
  return is_any_awaited;
}

std::optional<RecorderAnswer> FlightRecorders::Answer(const JobState& job) {
  Dumps dumps;
  {
    const MutexLock lock(mutex_);
    if (!dumps_) return std::nullopt;
    dumps = *dumps_;
  }
  RecorderAnswer answer;
  if (dumps.asked == 0) return answer;  // the job does not use it
  if (dumps.dumps.size() < dumps.ranks) {
    answer.note = absl::StrCat("PyTorch's Flight Recorder was asked: ", dumps.dumps.size(), " of ",
                               dumps.ranks, " ranks have answered, too few to compare their calls");
    return answer;
  }
  answer.verdicts = JudgeDumps(std::move(dumps.dumps), job, dumps.now_ns);
  answer.note = answer.verdicts.empty()
                    ? "PyTorch's Flight Recorder was asked: by its sequence numbers no call of a "
                      "process group waits"
                    : "the calls and their numbers are those of PyTorch's Flight Recorder, which "
                      "was asked once";
  return answer;
}

}  // namespace rollcall
