// SPDX-License-Identifier: Apache-2.0
#include "cli/diagnose/say.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/clean_text.h"
#include "cli/diagnose/say_logs.h"
#include "daemon/looks/unanswered.h"
#include "daemon/report/report_text.h"
#include "daemon/report/wrap.h"
#include "daemon/words/terms.h"

namespace rollcall {
namespace {

using Outcome = LookedAtJob::Outcome;

constexpr size_t kMostHostsNamed = 4;
constexpr int kGoesOn = 0, kCannotTell = 2, kHangs = 3;

std::string HostsInWords(const LookedAtJob& job) {
  if (job.hosts.size() > kMostHostsNamed) return CountInWords(job.hosts.size(), "host", "hosts");
  return absl::StrJoin(job.hosts, ", ");
}

// "Job train.py: 4 of 8 ranks, on node-1".
std::string Title(const LookedAtJob& job) {
  const bool sees_all = static_cast<size_t>(std::max(job.world_size, 0)) <= job.ranks;
  const std::string ranks = sees_all ? CountInWords(job.ranks, "rank", "ranks")
                                     : absl::StrCat(job.ranks, " of ", job.world_size, " ranks");
  return absl::StrCat("Job ", CleanText(job.incident.job()), ": ", ranks, ", on ",
                      HostsInWords(job), "\n");
}

std::string Lines(const std::string& title, const std::vector<std::string>& lines) {
  if (lines.empty()) return "";
  std::string text = absl::StrCat("\n", title, "\n");
  for (const std::string& line : lines) text += Wrap("  - ", "    ", CleanText(line));
  return text;
}

// What a look from outside cannot show, and the line to type.
std::string NextTime(const LookedAtJob& job) {
  if (job.is_recorded) return "";
  return absl::StrCat(
      "\nNot seen\n",
      Wrap("  - ", "    ",
           "which calls each rank has made: the job was started without Rollcall's library, which "
           "records them and so shows the first call that differs. Next time:"),
      "      rollcall run COMMAND\n");
}

// What hangs, or may hang.
std::string SayIncident(const LookedAtJob& job, const SayOptions& options) {
  std::string text = absl::StrCat("\n", ToText(job.incident));
  text += LogsInShort(job);
  text += NextTime(job);
  if (!options.reports_kept) {
    text += absl::StrCat("\nKeep this, with all stacks, before you end the job:\n      ",
                         options.again, " --report-dir=./rollcall-reports\n");
  }
  return text;
}

std::string SayCannotTell(const LookedAtJob& job, const SayOptions& options) {
  std::string text = Title(job);
  text += Wrap("", "", absl::StrCat("Cannot tell whether it hangs: ", CleanText(job.why)));
  if (job.incident.verdicts().empty()) {
    text += Lines("Not all was seen", job.unseen);
  } else {
    text += SayIncident(job, options);
  }
  text += absl::StrCat("\nLook again, longer:\n      ", options.again, " --samples-apart=30s\n");
  return text;
}

std::string SayGoesOn(const LookedAtJob& job) {
  std::string title = Title(job);
  title.pop_back();
  return absl::StrCat(title, ": no hang found, ", CleanText(job.why), "\n",
                      Lines("Not all was seen", job.unseen));
}

bool HasRanks(const std::vector<v1::HostLook>& looks) {
  return std::any_of(looks.begin(), looks.end(),
                     [](const v1::HostLook& look) { return look.processes_size() > 0; });
}

}  // namespace

std::string SayJobs(const std::vector<LookedAtJob>& jobs, const std::vector<v1::HostLook>& looks,
                    const SayOptions& options) {
  std::vector<std::string> parts;
  for (const LookedAtJob& job : jobs) {
    parts.push_back(job.outcome == Outcome::kHangs        ? Title(job) + SayIncident(job, options)
                    : job.outcome == Outcome::kCannotTell ? SayCannotTell(job, options)
                                                          : SayGoesOn(job));
  }
  if (!HasRanks(looks)) {
    parts.emplace_back(
        "no process of a distributed job found\n"
        "  of another user?            sudo rollcall diagnose --user=NAME\n"
        "  without a launcher's rank?  rollcall diagnose PID...\n");
  }
  std::string text = absl::StrJoin(parts, absl::StrCat("\n", std::string(72, '='), "\n"));
  return text + Lines("On this host", UnseenOnHosts(looks));
}

int ExitCodeOf(const std::vector<LookedAtJob>& jobs, const std::vector<v1::HostLook>& looks) {
  const auto any = [&jobs](Outcome outcome) {
    return std::any_of(jobs.begin(), jobs.end(),
                       [outcome](const LookedAtJob& job) { return job.outcome == outcome; });
  };
  if (any(Outcome::kHangs)) return kHangs;
  const bool no_look = std::any_of(looks.begin(), looks.end(), [](const v1::HostLook& look) {
    return !look.error().empty() || (look.processes_size() == 0 && look.unseen_size() > 0);
  });
  return any(Outcome::kCannotTell) || no_look ? kCannotTell : kGoesOn;
}

}  // namespace rollcall
