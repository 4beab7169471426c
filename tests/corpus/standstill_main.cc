// SPDX-License-Identifier: Apache-2.0
// Scores the diagnosis on generated jobs that stand still outside of recorded calls:
//   rollcall_standstill_score [--hangs=N] [--healthy=N] [--seed=N] [--kind=NAME] [--show=N]
// Exit status: 0 all verdicts are right, 3 a verdict is wrong, 2 a flag is wrong.
#include <algorithm>
#include <cstdio>
#include <map>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/flags/usage.h"
#include "absl/strings/str_join.h"
#include "daemon/diagnosis/diagnose.h"
#include "standstills.h"

ABSL_FLAG(int, hangs, 2000, "number of jobs that stand still");
ABSL_FLAG(int, healthy, 2000, "number of jobs that only look so");
ABSL_FLAG(uint64_t, seed, 1, "seed of the first case; the others follow");
ABSL_FLAG(std::string, kind, "", "only this kind");
ABSL_FLAG(int, show, 10, "number of wrong cases to print");

namespace rollcall::corpus {
namespace {

struct Row {
  int cases = 0, found = 0, right = 0, too_sure = 0;
};

void Show(uint64_t seed, const StandCase& c, const std::vector<Verdict>& verdicts) {
  std::printf("seed %llu, %s of %zu ranks: %s of %s\n", static_cast<unsigned long long>(seed),
              c.kind.c_str(), c.job.processes.size(), c.hangs ? "hangs, because" : "healthy",
              absl::StrJoin(c.culprits, ",").c_str());
  for (const Verdict& v : verdicts) {
    std::printf("  %s (%s): %.500s\n", CauseName(v.cause), CertaintyName(v.certainty),
                v.summary.c_str());
  }
  if (verdicts.empty())
    std::printf("  nothing is said: %s\n", c.job.processes[0].place.functions.c_str());
}

using MakeCase = StandCase (*)(uint64_t seed, const std::string& kind);

Row ScoreAll(const char* title, MakeCase make, int cases, int* left_to_show) {
  std::map<std::string, Row> rows;
  Row all;
  for (int i = 0; i < cases; ++i) {
    const uint64_t seed = absl::GetFlag(FLAGS_seed) + static_cast<uint64_t>(i);
    const StandCase c = make(seed, absl::GetFlag(FLAGS_kind));
    const std::vector<Verdict> verdicts = Diagnose(c.job, c.now_ns, Limits());
    const StandScore score = ScoreStandstill(c, verdicts);
    for (Row* row : {&rows[c.kind], &all}) {
      ++row->cases;
      row->found += score.found;
      row->right += score.right;
      row->too_sure += score.too_sure;
    }
    if ((!score.right || score.too_sure) && (*left_to_show)-- > 0) Show(seed, c, verdicts);
  }
  std::printf("%-18s %6s %6s %6s %8s\n", title, "cases", "found", "right", "too sure");
  rows["all"] = all;
  for (const auto& [name, row] : rows) {
    std::printf("%-18s %6d %6d %6d %8d\n", name.c_str(), row.cases, row.found, row.right,
                row.too_sure);
  }
  return all;
}

bool IsKind(const std::string& name) {
  for (const auto* names : {&StandstillKinds(), &HealthyStandKinds()}) {
    if (std::find(names->begin(), names->end(), name) != names->end()) return true;
  }
  return name.empty();
}

int Main() {
  if (!IsKind(absl::GetFlag(FLAGS_kind))) {
    std::fprintf(stderr, "no kind has the name \"%s\": tests/corpus/standstills.cc lists them\n",
                 absl::GetFlag(FLAGS_kind).c_str());
    return 2;
  }
  int left_to_show = absl::GetFlag(FLAGS_show);
  const Row hangs =
      ScoreAll("standstill", &MakeStandstill, absl::GetFlag(FLAGS_hangs), &left_to_show);
  const Row healthy =
      ScoreAll("healthy", &MakeHealthyStand, absl::GetFlag(FLAGS_healthy), &left_to_show);
  const bool all_right = hangs.right == hangs.cases && healthy.right == healthy.cases;
  return all_right && hangs.too_sure == 0 ? 0 : 3;
}

}  // namespace
}  // namespace rollcall::corpus

int main(int argc, char** argv) {
  absl::SetProgramUsageMessage("Scores the diagnosis on generated jobs that stand still.");
  absl::ParseCommandLine(argc, argv);
  return rollcall::corpus::Main();
}
