// SPDX-License-Identifier: Apache-2.0
// Scores the diagnosis on generated jobs:
//   rollcall_corpus_score [--faults=N] [--healthy=N] [--seed=N] [--max-ranks=N]
//                         [--fault=NAME] [--case=SEED] [--show=N] [--list]
//                         [--ranks_per_process=1|2|4|8]
// Exit status: 0 all verdicts are right, 3 a verdict is wrong, 2 a flag is wrong.
#include <chrono>
#include <cstdio>
#include <map>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/flags/usage.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cases.h"

ABSL_FLAG(int, faults, 10000, "number of jobs with a fault");
ABSL_FLAG(int, healthy, 10000, "number of healthy jobs");
ABSL_FLAG(uint64_t, seed, 1, "seed of the first case; the others follow");
ABSL_FLAG(int, max_ranks, 16384, "highest number of ranks of a job");
ABSL_FLAG(std::string, fault, "", "only this fault; --list prints the names");
ABSL_FLAG(uint64_t, show_case, 0, "print the case of this seed with all its verdicts, and end");
ABSL_FLAG(bool, healthy_case, false, "--show_case shows the healthy case of the seed");
ABSL_FLAG(int, show, 10, "number of wrong cases to print");
ABSL_FLAG(int, ranks_per_process, 1, "ranks that each process holds: 1, 2, 4 or 8");
ABSL_FLAG(bool, list, false, "print the names of the faults, and end");

namespace rollcall::corpus {
namespace {

struct Row {
  int cases = 0, cause = 0, culprits = 0, diverging = 0, divergence = 0, kind = 0;
  int certain = 0, wrong_certain = 0, wrong_likely = 0, right = 0;
};

void Add(const Score& score, Row* row) {
  ++row->cases;
  row->cause += score.cause;
  row->culprits += score.culprits;
  row->diverging += score.has_divergence;
  row->divergence += score.has_divergence && score.divergence;
  row->kind += score.kind;
  row->certain += score.certain;
  row->wrong_certain += score.wrong_certain;
  row->wrong_likely += score.wrong_likely;
  row->right += score.right();
}

void Print(const std::string& name, const Row& row) {
  std::printf("%-22s %6d %6d %8d %5d/%-5d %5d %8d %6d %7d %7d\n", name.c_str(), row.cases,
              row.cause, row.culprits, row.divergence, row.diverging, row.kind, row.certain,
              row.wrong_certain, row.wrong_likely, row.right);
}

std::string Expected(const Truth& truth) {
  if (!truth.hangs) return "no incident";
  std::vector<std::string> causes;
  for (const Cause cause : truth.causes) causes.push_back(CauseName(cause));
  std::string text =
      absl::StrCat(absl::StrJoin(causes, " or "), " of ", absl::StrJoin(truth.culprits, ","));
  if (truth.comm >= 0) absl::StrAppend(&text, " at #", truth.position, " of comm ", truth.comm);
  return absl::StrCat(text, ", at most ", CertaintyName(truth.most));
}

void Show(const Case& c, const Outcome& outcome, size_t most_verdicts) {
  std::printf("%s (markers %d, lost %d%%, late %d%%)\n  expected: %s\n", c.name.c_str(),
              c.sight.markers, c.sight.lost_records_percent, c.sight.late_hosts_percent,
              Expected(c.truth).c_str());
  if (!outcome.confirmed) std::printf("  no confirmed incident\n");
  for (const Verdict& v : outcome.warnings) std::printf("  warning: %s\n", v.summary.c_str());
  for (size_t i = 0; i < std::min(most_verdicts, outcome.verdicts.size()); ++i) {
    const Verdict& v = outcome.verdicts[i];
    std::printf("  %s%s (%s): %.600s\n", v.is_consequence ? "  then " : "", CauseName(v.cause),
                CertaintyName(v.certainty), v.summary.c_str());
  }
}

void PrintHead() {
  std::printf("%-22s %6s %6s %8s %11s %5s %8s %6s %7s %7s\n", "fault", "cases", "cause", "culprits",
              "divergence", "kind", "certain", "wrong", "wrong_l", "right");
}

// False if the case needs a process for each rank.
bool Hold(Case* c) {
  const int held = absl::GetFlag(FLAGS_ranks_per_process);
  return held == 1 || HoldSeveral(held, c);
}

int ShowOne() {
  const uint64_t seed = absl::GetFlag(FLAGS_show_case);
  const int most = absl::GetFlag(FLAGS_max_ranks);
  Case c = absl::GetFlag(FLAGS_healthy_case) ? MakeHealthy(seed, most)
                                             : MakeFault(seed, most, absl::GetFlag(FLAGS_fault));
  Hold(&c);
  const Outcome outcome = Watch(c.plan, c.timeline, c.sight);
  Show(c, outcome, 100);
  for (const Verdict& v : outcome.verdicts) {
    std::printf("\n%s\n", v.summary.c_str());
    for (const std::string& line : v.evidence) std::printf("  + %.300s\n", line.c_str());
    for (const std::string& line : v.missing_evidence) std::printf("  ? %.300s\n", line.c_str());
  }
  return ScoreOutcome(c, outcome).right() ? 0 : 3;
}

int ScoreAll() {
  const uint64_t seed = absl::GetFlag(FLAGS_seed);
  const int most = absl::GetFlag(FLAGS_max_ranks);
  int left_to_show = absl::GetFlag(FLAGS_show);
  const auto begun = std::chrono::steady_clock::now();
  std::map<std::string, Row> rows;
  Row all;
  for (int i = 0; i < absl::GetFlag(FLAGS_faults); ++i) {
    Case c = MakeFault(seed + static_cast<uint64_t>(i), most, absl::GetFlag(FLAGS_fault));
    if (!Hold(&c)) continue;
    const Outcome outcome = Watch(c.plan, c.timeline, c.sight);
    const Score score = ScoreOutcome(c, outcome);
    Add(score, &rows[c.fault]);
    Add(score, &all);
    if (!score.right() && left_to_show-- > 0) Show(c, outcome, 3);
  }
  int incidents = 0, suspected = 0;
  const int healthy = absl::GetFlag(FLAGS_healthy);
  for (int i = 0; i < healthy; ++i) {
    Case c = MakeHealthy(seed + static_cast<uint64_t>(i), most);
    Hold(&c);
    const Outcome outcome = Watch(c.plan, c.timeline, c.sight);
    incidents += outcome.confirmed;
    suspected += outcome.suspected > 0;
    if (outcome.confirmed && left_to_show-- > 0) Show(c, outcome, 3);
  }
  PrintHead();
  for (const auto& [name, row] : rows) Print(name, row);
  Print("all faults", all);
  std::printf("healthy jobs: %d, incidents confirmed: %d (suspected: %d)\n", healthy, incidents,
              suspected);
  const auto took = std::chrono::steady_clock::now() - begun;
  std::printf("took %.0f s\n", std::chrono::duration<double>(took).count());
  return all.right == all.cases && incidents == 0 ? 0 : 3;
}

int Main() {
  if (absl::GetFlag(FLAGS_list)) {
    for (const std::string& name : FaultNames()) std::printf("%s\n", name.c_str());
    return 0;
  }
  const std::string fault = absl::GetFlag(FLAGS_fault);
  const auto& names = FaultNames();
  if (!fault.empty() && std::find(names.begin(), names.end(), fault) == names.end()) {
    std::fprintf(stderr, "no fault has the name \"%s\": --list prints the names\n", fault.c_str());
    return 2;
  }
  if (8 % std::max(absl::GetFlag(FLAGS_ranks_per_process), 1) != 0) {
    std::fprintf(stderr, "--ranks_per_process must be 1, 2, 4 or 8\n");
    return 2;
  }
  return absl::GetFlag(FLAGS_show_case) != 0 ? ShowOne() : ScoreAll();
}

}  // namespace
}  // namespace rollcall::corpus

int main(int argc, char** argv) {
  absl::SetProgramUsageMessage("Scores the diagnosis on generated jobs.");
  absl::ParseCommandLine(argc, argv);
  return rollcall::corpus::Main();
}
