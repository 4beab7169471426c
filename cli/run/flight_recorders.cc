// SPDX-License-Identifier: Apache-2.0
#include "cli/run/flight_recorders.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "agent/processes/proc_files.h"
#include "agent/processes/rank_environment.h"
#include "base/durations.h"
#include "cli/diagnose/ask_for_dump.h"
#include "cli/run/dumped_verdicts.h"
#include "cli/run/recorder_files.h"

namespace rollcall {
namespace {

constexpr int64_t kReadWithinNs = kSecond;
// PyTorch looks at its pipe once a second, and a dump takes about one.
constexpr std::chrono::seconds kDumpsWithin{6};
constexpr std::chrono::milliseconds kLookAtDumpsEvery{100};
constexpr size_t kMostRanks = 64;  // of one host

struct Stamp {
  int64_t time_ns = 0;
  int64_t bytes = -1;  // -1: there is no file

  bool operator==(const Stamp& other) const {
    return time_ns == other.time_ns && bytes == other.bytes;
  }
};

Stamp StampOf(const std::string& path) {
  struct stat about;
  if (stat(path.c_str(), &about) != 0 || !S_ISREG(about.st_mode)) return {};
  return {about.st_mtim.tv_sec * kSecond + about.st_mtim.tv_nsec, about.st_size};
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
  std::string dump;  // its path, as seen from here
  Stamp before, newest;
  std::optional<RankedDump> found;

  // A file that has not grown since the last look is read.
  void Look() {
    const Stamp stamp = StampOf(dump);
    const bool rests = stamp == newest && stamp.bytes > 0 && !(stamp == before);
    newest = stamp;
    if (!rests) return;
    std::vector<std::string> warnings;
    absl::StatusOr<DumpFiles> read = ReadDumps({dump}, &warnings);
    if (read.ok() && read->dumps.size() == 1) found = std::move(read->dumps.front());
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
  thread_ = std::thread([this, ranks = std::move(ranks)] { AskAll(ranks); });
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
  while (is_any_awaited && !is_stopping_ && std::chrono::steady_clock::now() < until) {
    std::this_thread::sleep_for(kLookAtDumpsEvery);
    is_any_awaited = LookAtEach(&all);
  }
  for (Asked& asked : all) {
    if (asked.found) dumps.dumps.push_back(*std::move(asked.found));
  }
  dumps.now_ns = WallNs();
  const MutexLock lock(mutex_);
  dumps_ = std::move(dumps);
}

// Those that have got the request.
std::vector<FlightRecorders::Asked> FlightRecorders::AskEach(const std::vector<Rank>& ranks) {
  std::vector<Asked> all;
  for (const Rank& rank : ranks) {
    const auto files = reads_.Get<RecorderFiles>(
        absl::StrCat("names ", rank.pid),
        [path = ProcPath(proc_root_, rank.pid, "environ"), rank] {
          return FindRecorderFiles(ReadProcFile(path, kMaxEnvironBytes).value_or(""), rank.rank);
        },
        kReadWithinNs);
    if (!files || files->pipe.empty()) continue;
    const auto asked = reads_.Get<std::optional<Asked>>(
        absl::StrCat("ask ", rank.pid),
        [root = ProcPath(proc_root_, rank.pid, "root"), files = *files, rank] {
          Asked one;
          one.rank = rank.rank;
          one.dump = absl::StrCat(root, files.dump);
          one.before = one.newest = StampOf(one.dump);
          return AskForDump(root, files.pipe, geteuid()) ? std::optional<Asked>(one) : std::nullopt;
        },
        kReadWithinNs);
    if (asked && *asked) all.push_back(**asked);
  }
  return all;
}

// Whether dumps are still awaited.
bool FlightRecorders::LookAtEach(std::vector<Asked>* all) {
  bool is_any_awaited = false;
  for (Asked& asked : *all) {
    if (asked.found) continue;
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
