// SPDX-License-Identifier: Apache-2.0
// The cost of verdicts with very many culprits, for jobs in which half of the ranks or all of
// them are at fault: the diagnosis, the life of the incident, and the report. Uses one core. Prints
// CPU time and sizes.
//
//   verdict_cost [MOST_RANKS]
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "daemon/diagnosis/diagnose.h"
#include "daemon/diagnosis/life/incident_life.h"
#include "daemon/report/html.h"
#include "daemon/report/incident_proto.h"
#include "daemon/report/json.h"
#include "daemon/report/report_text.h"
#include "tests/unit/support/large_job.h"

namespace rollcall {
namespace {

double CpuMilliseconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) / 1e6;
}

template <typename Work>
double Cost(Work work) {
  const double begin = CpuMilliseconds();
  work();
  return CpuMilliseconds() - begin;
}

void Report(large_job::Fault fault, const char* name, int32_t ranks) {
  const JobState job = large_job::MakeJob(fault, ranks);
  const Limits limits;
  std::vector<Verdict> verdicts;
  const double diagnosis = Cost([&] { verdicts = Diagnose(job, large_job::kNow, limits); });
  IncidentLife life("large");
  std::vector<IncidentEvent> events;
  const double update = Cost([&] { events = life.Update(job, verdicts, large_job::kNow, limits); });
  v1::Incident incident;
  const double proto = Cost([&] { incident = ToProto(life.live() ? *life.live() : Incident()); });
  std::string json, text, html;
  const double report = Cost([&] {
    json = ToJson(incident).value_or("");
    text = ToText(incident);
    html = ToHtml(incident, true);
  });
  size_t log_line = 0;
  for (const Verdict& v : verdicts) log_line = std::max(log_line, v.summary.size());
  std::printf("%-14s %7d %8zu %8zu %9.1f %8.1f %8.1f %8.1f %8zu %9.1f %8.1f %8.1f\n", name, ranks,
              verdicts.size(), verdicts.empty() ? 0 : verdicts[0].culprits.size(), diagnosis,
              update, proto, report, log_line, static_cast<double>(json.size()) / 1024,
              static_cast<double>(text.size()) / 1024, static_cast<double>(html.size()) / 1024);
  std::fflush(stdout);
}

}  // namespace
}  // namespace rollcall

int main(int argc, char** argv) {
  const int most = argc > 1 ? std::atoi(argv[1]) : 100'000;
  std::printf("%-14s %7s %8s %8s %9s %8s %8s %8s %8s %9s %8s %8s\n", "fault", "ranks", "verdicts",
              "culprits", "diagnosis", "incident", "to proto", "report", "sentence", "json", "text",
              "html");
  std::printf("%-14s %7s %8s %8s %9s %8s %8s %8s %8s %9s %8s %8s\n", "", "", "", "", "ms", "ms",
              "ms", "ms", "bytes", "KiB", "KiB", "KiB");
  for (const auto& [fault, name] : rollcall::large_job::kFaults) {
    for (const int ranks : {1000, 4000, 16'000, 100'000}) {
      if (ranks <= most) rollcall::Report(fault, name, ranks);
    }
  }
  return 0;
}
