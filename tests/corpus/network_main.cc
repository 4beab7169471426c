// SPDX-License-Identifier: Apache-2.0
// Scores the walk over NCCL's transfers on generated collectives:
//   rollcall_network_score [--faults=N] [--healthy=N] [--seed=N] [--kind=NAME] [--show=N]
// Exit status: 0 the targets hold, 3 they do not, 2 a flag is wrong. Targets: rank and peer right
// in 90 % of the faults, no wrong `certain`, no rank named where all is well.
#include <algorithm>
#include <cstdio>
#include <map>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/flags/usage.h"
#include "absl/strings/str_join.h"
#include "daemon/diagnosis/network/network_verdict.h"
#include "network_cases.h"

ABSL_FLAG(int, faults, 2000, "number of collectives with a fault");
ABSL_FLAG(int, healthy, 2000, "number of collectives that are only slow");
ABSL_FLAG(uint64_t, seed, 1, "seed of the first case; the others follow");
ABSL_FLAG(std::string, kind, "", "only this kind");
ABSL_FLAG(int, show, 10, "number of wrong cases to print");

namespace rollcall::corpus {
namespace {

struct Row {
  int cases = 0, named = 0, right = 0, fault_right = 0, wrong = 0, certain = 0, wrong_certain = 0;
};

void Show(uint64_t seed, const NetworkCase& c, const Verdict& v) {
  std::printf("seed %llu, %s, %s\n", static_cast<unsigned long long>(seed), c.kind.c_str(),
              c.shape.c_str());
  if (v.network.fault == NetworkFault::kNone) std::printf("  nobody is named\n");
  for (const std::string& line : v.evidence) std::printf("  %.300s\n", line.c_str());
}

using MakeCase = NetworkCase (*)(uint64_t seed, const std::string& kind);

Row ScoreAll(const char* title, MakeCase make, int cases, int* left_to_show) {
  std::map<std::string, Row> rows;
  Row all;
  for (int i = 0; i < cases; ++i) {
    const uint64_t seed = absl::GetFlag(FLAGS_seed) + static_cast<uint64_t>(i);
    const NetworkCase c = make(seed, absl::GetFlag(FLAGS_kind));
    Verdict verdict = c.verdict;
    ApplyNetwork(c.job, c.samples, &verdict);
    const NetworkScore score = ScoreNetwork(c, verdict);
    for (Row* row : {&rows[c.kind], &all}) {
      ++row->cases;
      row->named += score.named;
      row->right += score.right;
      row->fault_right += score.fault_right;
      row->wrong += score.named && !score.right;
      row->certain += score.certain;
      row->wrong_certain += score.wrong_certain;
    }
    if (!score.right && (*left_to_show)-- > 0) Show(seed, c, verdict);
  }
  std::printf("%-24s %6s %6s %6s %6s %6s %8s %6s\n", title, "cases", "named", "right", "fault",
              "wrong", "certain", "wrong");
  rows["all"] = all;
  for (const auto& [name, row] : rows) {
    std::printf("%-24s %6d %6d %6d %6d %6d %8d %6d\n", name.c_str(), row.cases, row.named,
                row.right, row.fault_right, row.wrong, row.certain, row.wrong_certain);
  }
  return all;
}

bool IsKind(const std::string& name) {
  for (const auto* names : {&NetworkFaultKinds(), &HealthyNetworkKinds()}) {
    if (std::find(names->begin(), names->end(), name) != names->end()) return true;
  }
  return name.empty();
}

int Main() {
  if (!IsKind(absl::GetFlag(FLAGS_kind))) {
    std::fprintf(stderr, "no kind has the name \"%s\": tests/corpus/network_cases.cc lists them\n",
                 absl::GetFlag(FLAGS_kind).c_str());
    return 2;
  }
  int left_to_show = absl::GetFlag(FLAGS_show);
  const Row faults =
      ScoreAll("fault", &MakeNetworkFault, absl::GetFlag(FLAGS_faults), &left_to_show);
  const Row healthy =
      ScoreAll("healthy", &MakeHealthyNetwork, absl::GetFlag(FLAGS_healthy), &left_to_show);
  const bool is_right = 10 * faults.right >= 9 * faults.cases && faults.wrong_certain == 0;
  return is_right && healthy.named == 0 ? 0 : 3;
}

}  // namespace
}  // namespace rollcall::corpus

int main(int argc, char** argv) {
  absl::SetProgramUsageMessage("Scores the walk over NCCL's transfers on generated collectives.");
  absl::ParseCommandLine(argc, argv);
  return rollcall::corpus::Main();
}
