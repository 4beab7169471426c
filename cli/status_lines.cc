// SPDX-License-Identifier: Apache-2.0
#include "cli/status_lines.h"

#include <algorithm>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "daemon/model/job_key.h"
#include "daemon/report/incident_words.h"
#include "daemon/words/terms.h"
#include "proto/clean_text.h"

namespace rollcall {
namespace {

LineStyle StateStyle(const std::string& state) {
  if (state == "hung") return LineStyle::kBad;
  if (state == "suspected" || state == "waiting") return LineStyle::kWorse;
  return state == "ended" ? LineStyle::kSoft : LineStyle::kGood;
}

std::string CommunicatorName(const v1::CommunicatorStatus& comm) {
  return CleanText(comm.name().empty() ? comm.id() : comm.name());
}

std::string CommunicatorLine(const v1::CommunicatorStatus& comm) {
  std::string line =
      absl::StrFormat("  %-20s %3d of %3d ranks   calls %.0f", CommunicatorName(comm),
                      comm.members(), comm.size(), comm.position_min());
  if (comm.position_max() > comm.position_min()) {
    absl::StrAppendFormat(&line, "-%.0f", comm.position_max());
  }
  if (comm.laggards_total() > 0) {
    absl::StrAppend(&line, "   behind: rank ", comm.laggards(0));
    if (comm.laggards_total() > 1) {
      absl::StrAppend(&line, " and ", comm.laggards_total() - 1, " more");
    }
  }
  if (comm.waiting() > 0) {
    absl::StrAppendFormat(&line, "   %d waiting in %s for %.1f s", comm.waiting(),
                          comm.operation().empty() ? "a call" : comm.operation(),
                          comm.waited_seconds());
  }
  return line;
}

constexpr int kMostAttempts = 3;

// "a-job", "a-job attempt 2".
std::string JobName(const v1::JobStatus& job) {
  const bool is_only = job.attempt() == 0 && job.attempts().empty();
  const std::string tenant =
      job.tenant().empty() || job.tenant() == kDefaultTenant ? "" : CleanText(job.tenant()) + "/";
  return absl::StrCat(tenant, CleanText(job.name()),
                      is_only ? "" : absl::StrCat(" attempt ", job.attempt()));
}

// "attempt 1 ended 2026-11-20 19:30:00 UTC, 3 of 8 processes died; last incident: train.1-1,
// rank_died".
std::string AttemptInWords(const v1::AttemptStatus& attempt) {
  std::string text = absl::StrCat("attempt ", attempt.attempt(), " ");
  if (attempt.state() != "ended") {
    absl::StrAppend(&text, "is ", attempt.state(), ", ", attempt.processes_alive(), " of ",
                    attempt.processes(), " processes alive");
  } else {
    const std::string when = TimeInWords(attempt.ended_at());
    absl::StrAppend(&text, "ended", when.empty() ? "" : " ", when, ", ", attempt.processes_died(),
                    " of ", attempt.processes(), " processes died");
  }
  if (!attempt.has_last_incident()) return text;
  const v1::IncidentSummary& incident = attempt.last_incident();
  return absl::StrCat(text, "; last incident: ", CleanText(incident.id()), ", ",
                      CleanText(incident.cause()));
}

void AddAttempts(const v1::JobStatus& job, std::vector<StatusLine>* lines) {
  for (int i = 0; i < std::min(job.attempts_size(), kMostAttempts); ++i) {
    lines->push_back({absl::StrCat("  ", AttemptInWords(job.attempts(i))), LineStyle::kSoft});
  }
  if (job.attempts_size() <= kMostAttempts) return;
  lines->push_back({absl::StrCat("  ", job.attempts_size() - kMostAttempts,
                                 " more:  rollcall status --attempt=N ", CleanText(job.name())),
                    LineStyle::kSoft});
}

// "12 jobs", "1000 of 5000 jobs".
std::string JobCount(const v1::StatusResponse& status) {
  const int all = std::max(status.jobs_total(), status.jobs_size());
  return absl::StrCat(all > status.jobs_size() ? absl::StrCat(status.jobs_size(), " of ") : "",
                      CountInWords(static_cast<uint64_t>(all), "job", "jobs"));
}

std::string JobRow(const v1::JobStatus& job) {
  return absl::StrFormat("%-10s %-28s %6d ranks %6d/%d alive %9.1f calls/s  %s", job.state(),
                         JobName(job), job.ranks(), job.processes_alive(),
                         job.processes(), job.calls_per_second(), CleanText(job.summary()));
}

// The communicators, those with the longest waits first.
std::vector<const v1::CommunicatorStatus*> InOrder(const v1::JobStatus& job) {
  std::vector<const v1::CommunicatorStatus*> all;
  for (const v1::CommunicatorStatus& comm : job.communicators()) all.push_back(&comm);
  std::stable_sort(all.begin(), all.end(), [](const auto* a, const auto* b) {
    return std::make_tuple(a->waited_seconds(), a->waiting(), a->laggards_total()) >
           std::make_tuple(b->waited_seconds(), b->waiting(), b->laggards_total());
  });
  return all;
}

// Appends `text`, wrapped to `columns`.
void AddWrapped(const std::string& text, int columns, LineStyle style,
                std::vector<StatusLine>* lines) {
  const auto width = static_cast<size_t>(std::max(columns, 20));
  for (size_t at = 0; at < text.size();) {
    size_t end = std::min(text.size(), at + width);
    const size_t blank = text.rfind(' ', end);
    if (end < text.size() && blank != std::string::npos && blank > at) end = blank;
    lines->push_back({text.substr(at, end - at), style});
    at = end + (end < text.size() && text[end] == ' ' ? 1 : 0);
  }
}

}  // namespace

std::string CutToWidth(const std::string& text, int columns) {
  std::string out;
  int used = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool begins = (static_cast<unsigned char>(text[i]) & 0xc0) != 0x80;
    if (begins && ++used > columns) break;
    out += text[i];
  }
  return out;
}

std::vector<StatusLine> StatusLines(const v1::StatusResponse& status) {
  std::vector<StatusLine> lines;
  if (status.jobs().empty()) {
    return {{absl::StrCat("no jobs; ", status.agents(), " agents connected")}};
  }
  for (const v1::JobStatus& job : status.jobs()) {
    lines.push_back({absl::StrCat(JobName(job), ": ", job.state(), ", ",
                                  job.processes_alive(), " of ", job.processes(),
                                  " processes alive on ", job.hosts_size(), " hosts",
                                  absl::StrFormat(", %.1f calls/s", job.calls_per_second())),
                     StateStyle(job.state())});
    if (!job.summary().empty()) {
      lines.push_back({absl::StrCat("  ", CleanText(job.summary())), LineStyle::kBad});
    }
    for (const std::string& warning : job.warnings()) {
      lines.push_back({absl::StrCat("  ", CleanText(warning)), LineStyle::kWorse});
    }
    AddAttempts(job, &lines);
    for (const v1::CommunicatorStatus& comm : job.communicators()) {
      lines.push_back({CommunicatorLine(comm)});
    }
  }
  if (status.jobs_total() > status.jobs_size()) {
    lines.push_back({absl::StrCat(JobCount(status), "; all of them:  rollcall status"),
                     LineStyle::kSoft});
  }
  return lines;
}

std::vector<StatusLine> WatchLines(const v1::StatusResponse& status, int selected, int columns,
                                   int rows) {
  std::vector<StatusLine> lines;
  lines.push_back({absl::StrCat("rollcall: ", JobCount(status), ", ", status.agents(),
                                " agents   (arrows select a job, q quits)"),
                   LineStyle::kTitle});
  const int room = std::max(1, rows / 2 - 1);
  const int first = std::clamp(selected - room + 1, 0, std::max(0, status.jobs_size() - room));
  for (int i = first; i < std::min(status.jobs_size(), first + room); ++i) {
    const v1::JobStatus& job = status.jobs(i);
    lines.push_back(
        {absl::StrCat(i == selected ? "> " : "  ", JobRow(job)), StateStyle(job.state())});
  }
  if (selected >= 0 && selected < status.jobs_size()) {
    const v1::JobStatus& job = status.jobs(selected);
    lines.push_back({});
    AddWrapped(job.summary().empty() ? absl::StrCat(JobName(job), ": ", job.state())
                                     : CleanText(job.summary()),
               columns, StateStyle(job.state()), &lines);
    if (job.has_last_incident()) {
      lines.push_back({absl::StrCat("rollcall report ", CleanText(job.last_incident().id())),
                       LineStyle::kSoft});
    }
    for (const std::string& warning : job.warnings()) {
      AddWrapped(CleanText(warning), columns, LineStyle::kWorse, &lines);
    }
    AddAttempts(job, &lines);
    for (const v1::CommunicatorStatus* comm : InOrder(job)) {
      lines.push_back({CommunicatorLine(*comm),
                       comm->laggards_total() > 0 ? LineStyle::kWorse : LineStyle::kPlain});
    }
  }
  if (static_cast<int>(lines.size()) > rows) lines.resize(static_cast<size_t>(std::max(rows, 0)));
  for (StatusLine& line : lines) line.text = CutToWidth(line.text, columns);
  return lines;
}

}  // namespace rollcall
