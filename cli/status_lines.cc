// SPDX-License-Identifier: Apache-2.0
#include "cli/status_lines.h"

#include <algorithm>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/clean_text.h"
#include "base/utf8.h"
#include "daemon/model/job_key.h"
#include "daemon/report/incident_words.h"
#include "daemon/words/terms.h"

namespace rollcall {
namespace {

std::string CommunicatorName(const v1::CommunicatorStatus& comm) {
  return CleanText(comm.name().empty() ? comm.id() : comm.name());
}

// "last call #5", "last call #5 to #6", "no call yet". Calls count from #0, as in verdicts.
std::string LastCalls(const v1::CommunicatorStatus& comm) {
  if (comm.position_max() < 1) return "no call yet";
  const std::string last = absl::StrFormat("#%.0f", comm.position_max() - 1);
  if (comm.position_min() >= comm.position_max()) return absl::StrCat("last call ", last);
  if (comm.position_min() < 1) return absl::StrCat("last call none to ", last);
  return absl::StrFormat("last call #%.0f to %s", comm.position_min() - 1, last);
}

std::string CommunicatorLine(const v1::CommunicatorStatus& comm) {
  std::string line = absl::StrFormat("  %-20s %3d of %3d ranks   %s", CommunicatorName(comm),
                                     comm.members(), comm.size(), LastCalls(comm));
  if (comm.laggards_total() == 1) {
    absl::StrAppend(&line, "   rank ", comm.laggards(0), " is behind");
  } else if (comm.laggards_total() > 1) {
    absl::StrAppend(&line, "   rank ", comm.laggards(0), " and ", comm.laggards_total() - 1,
                    " more are behind");
  }
  if (comm.waiting() > 0) {
    absl::StrAppendFormat(&line, "   %d waiting in %s for %.1f s", comm.waiting(),
                          comm.operation().empty() ? "a call" : comm.operation(),
                          comm.waited_seconds());
  }
  return line;
}

constexpr int kMostAttempts = 3;

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

// "a-job: hung, 4 of 4 processes alive on 1 host, 2.0 calls/s per rank".
std::string Headline(const v1::JobStatus& job) {
  const auto hosts = static_cast<uint64_t>(job.hosts_size());
  std::string line =
      absl::StrCat(JobName(job), ": ", CleanText(job.state()), ", ", job.processes_alive(), " of ",
                   job.processes(), " processes alive on ", CountInWords(hosts, "host", "hosts"));
  if (job.state() != "ended") {
    absl::StrAppendFormat(&line, ", %.1f calls/s per rank", job.calls_per_second());
  }
  return line;
}

void AddCommunicators(const v1::JobStatus& job, int most, std::vector<StatusLine>* lines) {
  const std::vector<const v1::CommunicatorStatus*> comms = InOrder(job);
  const size_t shown = most == 0 ? comms.size() : std::min(comms.size(), static_cast<size_t>(most));
  for (size_t i = 0; i < shown; ++i) {
    lines->push_back({CommunicatorLine(*comms[i]),
                      comms[i]->laggards_total() > 0 ? LineStyle::kWorse : LineStyle::kPlain});
  }
  const size_t all = std::max(comms.size(), static_cast<size_t>(job.communicators_total()));
  if (all == shown) return;
  lines->push_back({absl::StrCat("  ", CountInWords(all - shown, "communicator", "communicators"),
                                 " more:  rollcall status --all ", CleanText(job.name())),
                    LineStyle::kSoft});
}

}  // namespace

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

LineStyle StateStyle(const std::string& state) {
  if (state == "hung") return LineStyle::kBad;
  if (state == "suspected" || state == "waiting") return LineStyle::kWorse;
  return state == "ended" ? LineStyle::kSoft : LineStyle::kGood;
}

std::string JobName(const v1::JobStatus& job) {
  const bool is_only = job.attempt() == 0 && job.attempts().empty();
  const std::string tenant =
      job.tenant().empty() || job.tenant() == kDefaultTenant ? "" : CleanText(job.tenant()) + "/";
  return absl::StrCat(tenant, CleanText(job.name()),
                      is_only ? "" : absl::StrCat(" attempt ", job.attempt()));
}

std::string JobCount(const v1::StatusResponse& status) {
  const int all = std::max(status.jobs_total(), status.jobs_size());
  return absl::StrCat(all > status.jobs_size() ? absl::StrCat(status.jobs_size(), " of ") : "",
                      CountInWords(static_cast<uint64_t>(all), "job", "jobs"));
}

bool EndedHung(const v1::JobStatus& job) {
  return job.state() == "ended" && job.has_last_incident() &&
         job.last_incident().state() == "ended";
}

std::string VerdictOf(const v1::JobStatus& job) {
  if (!job.summary().empty()) return CleanText(job.summary());
  return EndedHung(job)
             ? absl::StrCat("ended while hung: ", CleanText(job.last_incident().summary()))
             : "";
}

std::string ReferralOf(const v1::JobStatus& job) {
  if (!job.has_waits_for()) return "";
  const v1::WaitedJob& other = job.waits_for();
  JobKey key(CleanText(other.job()), other.attempt());
  if (!other.tenant().empty()) key.tenant = CleanText(other.tenant());
  const std::string incident =
      other.incident().empty() ? "" : absl::StrCat(" (incident ", CleanText(other.incident()), ")");
  return absl::StrCat("waits for job ", ToText(key), incident, ": ", CleanText(other.summary()));
}

std::vector<StatusLine> JobLines(const v1::JobStatus& job, int most) {
  std::vector<StatusLine> lines;
  lines.push_back({Headline(job), StateStyle(job.state())});
  const std::string verdict = VerdictOf(job);
  if (!verdict.empty()) lines.push_back({absl::StrCat("  ", verdict), LineStyle::kBad});
  const std::string referral = ReferralOf(job);
  if (!referral.empty()) lines.push_back({absl::StrCat("  ", referral), LineStyle::kWorse});
  for (const std::string& warning : job.warnings()) {
    lines.push_back({absl::StrCat("  ", CleanText(warning)), LineStyle::kWorse});
  }
  AddAttempts(job, &lines);
  AddCommunicators(job, most, &lines);
  return lines;
}

std::vector<StatusLine> JobScreen(const v1::JobStatus& job, int columns, VerdictShown shown) {
  std::vector<StatusLine> lines;
  const std::string verdict = VerdictOf(job);
  if (verdict.empty() || shown == VerdictShown::kAbove) {
    AddWrapped(Headline(job), columns, StateStyle(job.state()), &lines);
  } else {
    AddWrapped(verdict, columns, LineStyle::kBad, &lines);
  }
  if (job.has_last_incident()) {
    lines.push_back(
        {absl::StrCat("rollcall report ", CleanText(job.last_incident().id())), LineStyle::kSoft});
  }
  AddWrapped(ReferralOf(job), columns, LineStyle::kWorse, &lines);
  for (const std::string& warning : job.warnings()) {
    AddWrapped(CleanText(warning), columns, LineStyle::kWorse, &lines);
  }
  AddAttempts(job, &lines);
  AddCommunicators(job, 0, &lines);
  for (StatusLine& line : lines) line.text = CutToWidth(line.text, columns);
  return lines;
}

std::string CutToWidth(const std::string& text, int columns) {
  const auto width = static_cast<size_t>(std::max(columns, 0));
  const std::string dots(std::min<size_t>(width, 3), '.');
  size_t used = 0, keep = 0;  // characters; bytes that leave room for the dots
  for (size_t i = 0; i < text.size(); ++i) {
    if (IsUtf8Tail(text[i])) continue;
    if (used == width - dots.size()) keep = i;
    if (used++ == width) return text.substr(0, keep) + dots;
  }
  return text;
}

}  // namespace rollcall
