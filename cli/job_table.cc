// SPDX-License-Identifier: Apache-2.0
#include "cli/job_table.h"

#include <algorithm>
#include <array>
#include <set>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "base/clean_text.h"
#include "base/utf8.h"
#include "daemon/model/job_key.h"
#include "daemon/words/terms.h"

namespace rollcall {
namespace {

constexpr std::array<const char*, 5> kStates = {"hung", "suspected", "waiting", "running", "ended"};
constexpr int kWidestName = 40;
constexpr int kWidestColumn[] = {10, kWidestName, 15, 8};  // STATE, JOB, RANKS, FOR

size_t Urgency(const v1::JobStatus& job) {
  const auto at = std::find(kStates.begin(), kStates.end(), job.state());
  return static_cast<size_t>(at - kStates.begin());
}

absl::Time ToTime(const google::protobuf::Timestamp& time) {
  return absl::FromUnixSeconds(time.seconds()) + absl::Nanoseconds(time.nanos());
}

// When the job came into its state, as far as it is known; else absl::InfinitePast().
absl::Time StateSince(const v1::JobStatus& job) {
  const bool hangs = job.state() == "hung" || job.state() == "suspected";
  if (hangs && job.has_last_incident()) return ToTime(job.last_incident().opened_at());
  if (job.state() == "ended" && job.has_ended_at()) return ToTime(job.ended_at());
  absl::Time since;
  std::string problem;
  return absl::ParseTime(absl::RFC3339_full, job.since(), &since, &problem) ? since
                                                                            : absl::InfinitePast();
}

// "48s", "4m12s", "3h05m", "2d04h": at most six characters below a hundred days.
std::string InShort(absl::Duration duration) {
  const int64_t seconds = std::max<int64_t>(absl::ToInt64Seconds(duration), 0);
  if (seconds < 60) return absl::StrCat(seconds, "s");
  if (seconds < 3600) return absl::StrFormat("%dm%02ds", seconds / 60, seconds % 60);
  if (seconds < 86400) return absl::StrFormat("%dh%02dm", seconds / 3600, seconds % 3600 / 60);
  return absl::StrFormat("%dd%02dh", seconds / 86400, seconds % 86400 / 3600);
}

constexpr int kMostUnrecordedShown = 10;

// "  team/train.py  not recorded: 3 of 4 ranks on 2 hosts, user 1000, for 3m12s".
std::string UnrecordedInWords(const v1::UnrecordedJob& job, absl::Time now) {
  const bool is_default = job.tenant().empty() || job.tenant() == kDefaultTenant;
  const std::string name =
      absl::StrCat(is_default ? "" : CleanText(job.tenant()) + "/", CleanText(job.name()));
  const std::string ranks =
      job.world_size() > job.ranks()
          ? absl::StrCat(job.ranks(), " of ", job.world_size(), " ranks")
          : CountInWords(static_cast<uint64_t>(std::max(job.ranks(), 0)), "rank", "ranks");
  const std::string user = job.has_uid() ? absl::StrCat(", user ", job.uid()) : "";
  return absl::StrCat("  ", name, "  not recorded: ", ranks, " on ",
                      CountInWords(static_cast<uint64_t>(job.hosts_size()), "host", "hosts"), user,
                      ", for ", InShort(now - ToTime(job.since())));
}

// "8", or "5/8": alive of all processes.
std::string RanksInShort(const v1::JobStatus& job) {
  if (job.state() == "ended" || job.processes_alive() == job.processes()) {
    return absl::StrCat(job.ranks());
  }
  return absl::StrCat(job.processes_alive(), "/", job.processes(), " alive");
}

std::string VerdictInShort(const v1::JobStatus& job) {
  const std::string verdict = VerdictOf(job);
  if (!verdict.empty()) return verdict;
  const std::string referral = ReferralOf(job);
  if (!referral.empty()) return referral;
  if (!job.warnings().empty()) return CleanText(job.warnings(0));
  if (job.state() == "running") {
    return absl::StrFormat("%.1f calls/s per rank", job.calls_per_second());
  }
  return "";
}

// "ended hung" for a job that ended while it hung, else its state.
std::string StateInShort(const v1::JobStatus& job) {
  return EndedHung(job) ? "ended hung" : CleanText(job.state());
}

using Row = std::array<std::string, 5>;

Row RowOf(const v1::JobStatus& job, absl::Time now) {
  const absl::Time since = StateSince(job);
  return {StateInShort(job), CutToWidth(JobName(job), kWidestName), RanksInShort(job),
          since == absl::InfinitePast() ? "-" : InShort(now - since), VerdictInShort(job)};
}

// Returns text of this width, with two blanks after it. Counts characters, not bytes.
std::string Padded(const std::string& text, size_t width) {
  const size_t used = static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return !IsUtf8Tail(c); }));
  return text + std::string(width - std::min(used, width) + 2, ' ');
}

}  // namespace

const char* NameOf(JobOrder order) {
  constexpr const char* kNames[] = {"urgency", "name", "time", "ranks"};
  return kNames[static_cast<size_t>(order)];
}

void SortJobs(JobOrder order, v1::StatusResponse* status) {
  using Key = std::tuple<int64_t, int64_t, std::string>;
  const auto key = [order](const v1::JobStatus& job) {
    const int64_t since = absl::ToUnixNanos(StateSince(job));
    // Of ended jobs, the last one first.
    const int64_t age = job.state() == "ended" ? -since : since;
    switch (order) {
      case JobOrder::kUrgency:
        return Key(Urgency(job), age, JobName(job));
      case JobOrder::kTime:
        return Key(since, 0, JobName(job));
      case JobOrder::kRanks:
        return Key(-int64_t{job.ranks()}, 0, JobName(job));
      case JobOrder::kName:
        break;
    }
    return Key(0, 0, JobName(job));
  };
  std::vector<std::pair<Key, v1::JobStatus*>> keyed;
  for (v1::JobStatus& job : *status->mutable_jobs()) keyed.emplace_back(key(job), &job);
  std::stable_sort(keyed.begin(), keyed.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  google::protobuf::RepeatedPtrField<v1::JobStatus> sorted;
  sorted.Reserve(static_cast<int>(keyed.size()));
  for (auto& [unused, job] : keyed) sorted.Add()->Swap(job);
  status->mutable_jobs()->Swap(&sorted);
}

std::vector<StatusLine> JobTable(const v1::StatusResponse& status, int columns) {
  const absl::Time now = ToTime(status.now());
  std::vector<std::pair<Row, LineStyle>> rows = {
      {{"STATE", "JOB", "RANKS", "FOR", "VERDICT"}, LineStyle::kTitle}};
  for (const v1::JobStatus& job : status.jobs()) {
    rows.emplace_back(RowOf(job, now), StateStyle(job.state()));
  }
  std::array<size_t, 4> widths = {};
  for (size_t column = 0; column < widths.size(); ++column) {
    for (const auto& [row, style] : rows) {
      widths[column] = std::max(widths[column], row[column].size());
    }
    widths[column] = std::min(widths[column], static_cast<size_t>(kWidestColumn[column]));
  }
  std::vector<StatusLine> lines;
  for (const auto& [row, style] : rows) {
    std::string line;
    for (size_t column = 0; column < widths.size(); ++column) {
      line += Padded(row[column], widths[column]);
    }
    line += row.back();
    line.erase(line.find_last_not_of(' ') + 1);
    lines.push_back({columns == 0 ? line : CutToWidth(line, columns), style});
  }
  return lines;
}

std::string CountJobs(const v1::StatusResponse& status) {
  std::vector<std::string> states;
  for (const char* state : kStates) {
    const auto count = std::count_if(status.jobs().begin(), status.jobs().end(),
                                     [&](const auto& job) { return job.state() == state; });
    if (count != 0) states.push_back(absl::StrCat(count, " ", state));
  }
  const auto agents = static_cast<uint64_t>(std::max(status.agents(), 0));
  return absl::StrCat(status.jobs().empty() ? "no jobs" : JobCount(status),
                      states.empty() ? "" : ": ", absl::StrJoin(states, ", "), "; ",
                      CountInWords(agents, "agent", "agents"), " connected");
}

std::string SilentDaemons(const v1::StatusResponse& status) {
  std::vector<std::string> silent;
  for (const std::string& name : status.silent_daemons()) silent.push_back(CleanText(name));
  if (silent.empty()) return "";
  std::set<std::string> all(silent.begin(), silent.end());
  for (const v1::JobStatus& job : status.jobs()) all.insert(CleanText(job.daemon()));
  all.erase("");
  const bool is_one = silent.size() == 1;
  return absl::StrCat("of ", CountInWords(all.size(), "daemon", "daemons"), ", ",
                      absl::StrJoin(silent, ", "), is_one ? " does" : " do",
                      " not answer: jobs of ", is_one ? "it" : "them", " may be missing here");
}

std::vector<StatusLine> UnrecordedLines(const v1::StatusResponse& status, int columns) {
  std::vector<StatusLine> lines;
  if (status.unrecorded().empty()) return lines;
  const auto count = static_cast<uint64_t>(status.unrecorded_size());
  lines.push_back({absl::StrCat(CountInWords(count, "distributed job is", "distributed jobs are"),
                                " not recorded: started without Rollcall's library"),
                   LineStyle::kSoft});
  const int shown = std::min(status.unrecorded_size(), kMostUnrecordedShown);
  for (int i = 0; i < shown; ++i) {
    lines.push_back({UnrecordedInWords(status.unrecorded(i), ToTime(status.now()))});
  }
  if (shown < status.unrecorded_size()) {
    lines.push_back({absl::StrCat("  and ", status.unrecorded_size() - shown,
                                  " more:  rollcall status --format=json"),
                     LineStyle::kSoft});
  }
  lines.push_back({"  does one hang?  rollcall diagnose JOB --daemon=HOST:PORT", LineStyle::kSoft});
  lines.push_back({"  the next start:  rollcall run COMMAND", LineStyle::kSoft});
  for (StatusLine& line : lines) {
    if (columns > 0) line.text = CutToWidth(line.text, columns);
  }
  return lines;
}

const v1::JobStatus* WorstJob(const v1::StatusResponse& status) {
  const v1::JobStatus* worst = nullptr;
  for (const v1::JobStatus& job : status.jobs()) {
    if (job.state() != "hung" || VerdictOf(job).empty()) continue;
    if (worst == nullptr || StateSince(job) < StateSince(*worst)) worst = &job;
  }
  return worst;
}

std::vector<StatusLine> WorstVerdict(const v1::StatusResponse& status, int columns) {
  std::vector<StatusLine> lines;
  const v1::JobStatus* worst = WorstJob(status);
  if (worst == nullptr) return lines;
  const std::string text = absl::StrCat(JobName(*worst), ": ", VerdictOf(*worst));
  if (columns == 0) {
    lines.push_back({text, LineStyle::kBad});
  } else {
    AddWrapped(text, columns, LineStyle::kBad, &lines);
  }
  return lines;
}

std::vector<StatusLine> StatusTable(const v1::StatusResponse& status, int columns) {
  const std::string counts = CountJobs(status);
  std::vector<StatusLine> lines = {{columns == 0 ? counts : CutToWidth(counts, columns)}};
  for (StatusLine& line : WorstVerdict(status, columns)) lines.push_back(std::move(line));
  if (!status.jobs().empty()) {
    for (StatusLine& line : JobTable(status, columns)) lines.push_back(std::move(line));
  }
  for (StatusLine& line : UnrecordedLines(status, columns)) lines.push_back(std::move(line));
  const std::string silent = SilentDaemons(status);
  if (!silent.empty()) {
    lines.push_back({columns == 0 ? silent : CutToWidth(silent, columns), LineStyle::kWorse});
  }
  return lines;
}

int CountHung(const v1::StatusResponse& status) {
  return static_cast<int>(
      std::count_if(status.jobs().begin(), status.jobs().end(),
                    [](const v1::JobStatus& job) { return job.state() == "hung"; }));
}

}  // namespace rollcall
