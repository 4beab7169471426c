// SPDX-License-Identifier: Apache-2.0
#include "cli/remote/slurm_nodes.h"

#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/clean_text.h"
#include "base/cut_text.h"

namespace rollcall {
namespace {

constexpr size_t kLongestState = 60;

}  // namespace

Command ShowJobCommand(const std::string& job) {
  return {"scontrol", "--oneliner", "show", "job", job};
}

Command ShowHostnamesCommand(const std::string& nodes) {
  return {"scontrol", "show", "hostnames", nodes};
}

absl::StatusOr<std::string> ParseSlurmJob(absl::string_view text) {
  std::map<std::string, std::string> fields;
  // Of a heterogeneous job or of an array, the first line.
  for (const absl::string_view word : absl::StrSplit(text.substr(0, text.find('\n')), ' ')) {
    const std::pair<absl::string_view, absl::string_view> field =
        absl::StrSplit(word, absl::MaxSplits('=', 1));
    fields.emplace(std::string(field.first), std::string(field.second));
  }
  const std::string state = CutText(CleanText(fields["JobState"]), kLongestState);
  if (state.empty())
    return absl::InvalidArgumentError("scontrol does not say in which state it is");
  const std::string& nodes = fields["NodeList"];
  if ((state != "RUNNING" && state != "SUSPENDED" && state != "COMPLETING") || nodes.empty() ||
      nodes[0] == '-' || nodes[0] == '(') {
    return absl::FailedPreconditionError(absl::StrCat("the job does not run: it is ", state));
  }
  return nodes;
}

}  // namespace rollcall
