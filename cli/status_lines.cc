// SPDX-License-Identifier: Apache-2.0
#include "cli/status_lines.h"

#include <algorithm>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "proto/clean_text.h"

namespace rollcall {
namespace {

LineStyle StyleOf(const std::string& state) {
  if (state == "hung") return LineStyle::kBad;
  if (state == "suspected" || state == "waiting") return LineStyle::kWorse;
  return state == "ended" ? LineStyle::kSoft : LineStyle::kGood;
}

std::string NameOf(const v1::CommunicatorStatus& comm) {
  return CleanText(comm.name().empty() ? comm.id() : comm.name());
}

std::string CommunicatorLine(const v1::CommunicatorStatus& comm) {
  std::string line = absl::StrFormat("  %-20s %3d of %3d ranks   calls %.0f", NameOf(comm),
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

std::string JobRow(const v1::JobStatus& job) {
  return absl::StrFormat("%-10s %-28s %6d ranks %6d/%d alive %9.1f calls/s  %s", job.state(),
                         CleanText(job.name()), job.ranks(), job.processes_alive(),
                         job.processes(), job.calls_per_second(), CleanText(job.summary()));
}

// Hanging jobs first, then the longest waits.
std::vector<const v1::CommunicatorStatus*> InOrder(const v1::JobStatus& job) {
  std::vector<const v1::CommunicatorStatus*> all;
  for (const v1::CommunicatorStatus& comm : job.communicators()) all.push_back(&comm);
  std::stable_sort(all.begin(), all.end(), [](const auto* a, const auto* b) {
    return std::make_tuple(a->waited_seconds(), a->waiting(), a->laggards_total()) >
           std::make_tuple(b->waited_seconds(), b->waiting(), b->laggards_total());
  });
  return all;
}

// Wraps long lines.
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
    lines.push_back({absl::StrCat(CleanText(job.name()), ": ", job.state(), ", ",
                                  job.processes_alive(), " of ", job.processes(),
                                  " processes alive on ", job.hosts_size(), " hosts",
                                  absl::StrFormat(", %.1f calls/s", job.calls_per_second())),
                     StyleOf(job.state())});
    if (!job.summary().empty()) {
      lines.push_back({absl::StrCat("  ", CleanText(job.summary())), LineStyle::kBad});
    }
    for (const std::string& warning : job.warnings()) {
      lines.push_back({absl::StrCat("  ", CleanText(warning)), LineStyle::kWorse});
    }
    for (const v1::CommunicatorStatus& comm : job.communicators()) {
      lines.push_back({CommunicatorLine(comm)});
    }
  }
  return lines;
}

std::vector<StatusLine> WatchLines(const v1::StatusResponse& status, int selected, int columns,
                                   int rows) {
  std::vector<StatusLine> lines;
  lines.push_back({absl::StrCat("rollcall: ", status.jobs_size(), " jobs, ", status.agents(),
                                " agents   (arrows select a job, q quits)"),
                   LineStyle::kTitle});
  const int room = std::max(1, rows / 2 - 1);
  const int first = std::clamp(selected - room + 1, 0, std::max(0, status.jobs_size() - room));
  for (int i = first; i < std::min(status.jobs_size(), first + room); ++i) {
    const v1::JobStatus& job = status.jobs(i);
    lines.push_back({absl::StrCat(i == selected ? "> " : "  ", JobRow(job)), StyleOf(job.state())});
  }
  if (selected >= 0 && selected < status.jobs_size()) {
    const v1::JobStatus& job = status.jobs(selected);
    lines.push_back({});
    AddWrapped(job.summary().empty() ? absl::StrCat(CleanText(job.name()), ": ", job.state())
                                     : CleanText(job.summary()),
               columns, StyleOf(job.state()), &lines);
    if (job.has_last_incident()) {
      lines.push_back({absl::StrCat("rollcall report ", CleanText(job.last_incident().id())),
                       LineStyle::kSoft});
    }
    for (const std::string& warning : job.warnings()) {
      AddWrapped(CleanText(warning), columns, LineStyle::kWorse, &lines);
    }
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
