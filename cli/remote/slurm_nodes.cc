// SPDX-License-Identifier: Apache-2.0
#include "cli/remote/slurm_nodes.h"

#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/clean_text.h"
#include "base/cut_text.h"
#include "cli/remote/remote_hosts.h"

namespace rollcall {
namespace {

constexpr size_t kLongestState = 60;
constexpr size_t kMostTasksNamed = 4;

// The fields of one job: "JobState" and its value.
using Fields = std::map<std::string, std::string>;

// A line for each job, of those that have a number and a state.
std::vector<Fields> ParseLines(absl::string_view text) {
  std::vector<Fields> jobs;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    Fields fields;
    for (const absl::string_view word : absl::StrSplit(line, ' ')) {
      const std::pair<absl::string_view, absl::string_view> field =
          absl::StrSplit(word, absl::MaxSplits('=', 1));
      fields.emplace(std::string(field.first), std::string(field.second));
    }
    if (IsSlurmJob(fields["JobId"]) && !fields["JobState"].empty())
      jobs.push_back(std::move(fields));
  }
  return jobs;
}

bool Runs(const Fields& job) {
  const std::string& state = job.at("JobState");
  const auto nodes = job.find("NodeList");
  return (state == "RUNNING" || state == "SUSPENDED" || state == "COMPLETING") &&
         nodes != job.end() && !nodes->second.empty() && nodes->second[0] != '-' &&
         nodes->second[0] != '(';
}

absl::Status NoneRuns(const std::vector<Fields>& jobs) {
  if (jobs.empty()) return absl::InvalidArgumentError("scontrol prints no state of it");
  return absl::FailedPreconditionError(
      absl::StrCat("the job does not run: it is ",
                   CutText(CleanText(jobs.front().at("JobState")), kLongestState)));
}

absl::Status ManyTasks(const std::vector<const Fields*>& running) {
  std::vector<std::string> names;
  for (const Fields* job : running) {
    const auto array = job->find("ArrayJobId"), task = job->find("ArrayTaskId");
    if (array == job->end() || task == job->end() || names.size() == kMostTasksNamed) continue;
    names.push_back(CleanText(absl::StrCat("--slurm=", array->second, "_", task->second)));
  }
  return absl::FailedPreconditionError(absl::StrCat("it is an array of which ", running.size(),
                                                    " tasks run, each a job of its own: name one, ",
                                                    absl::StrJoin(names, " or ")));
}

}  // namespace

Command ShowJobCommand(const std::string& job) {
  return {"scontrol", "--oneliner", "show", "job", job};
}

Command ShowHostnamesCommand(const std::string& nodes) {
  return {"scontrol", "show", "hostnames", nodes};
}

absl::StatusOr<SlurmJob> ParseSlurmJob(absl::string_view text) {
  const std::vector<Fields> jobs = ParseLines(text);
  std::vector<const Fields*> running;
  for (const Fields& job : jobs) {
    if (Runs(job)) running.push_back(&job);
  }
  if (running.empty()) return NoneRuns(jobs);
  // The first component stands for a heterogeneous job.
  const Fields& first = *running.front();
  if (running.size() > 1 && first.count("ArrayTaskId") != 0) return ManyTasks(running);
  return SlurmJob{first.at("JobId"), first.at("NodeList")};
}

}  // namespace rollcall
