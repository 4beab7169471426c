// SPDX-License-Identifier: Apache-2.0
// The dumps of a whole job: import, rules, and the report. Each part of an input is the dump of one
// rank.
#include "cli/flight_recorder/import.h"
#include "daemon/diagnosis/diagnose.h"
#include "daemon/report/incident_proto.h"
#include "daemon/report/json.h"
#include "daemon/report/report_text.h"
#include "daemon/report/state_table.h"
#include "fuzz_target.h"

namespace rollcall {
namespace fuzz {
namespace {

constexpr size_t kMostRanks = 8;

void Report(const FlightRecorderInput& input, std::vector<Verdict> verdicts) {
  (void)StateTable(input.model.state());
  Incident incident;
  incident.id = "job-1";
  incident.job = input.model.state().key;
  incident.state = IncidentState::kConfirmed;
  incident.verdicts = std::move(verdicts);
  const v1::Incident message = ToProto(incident);
  Promise(!ToText(message).empty(), "a report has text");
  Promise(ToJson(message).ok(), "a report is JSON");
}

void Run(Input input) {
  std::vector<RankedDump> dumps;
  for (int32_t rank = 0; !input.empty() && dumps.size() < kMostRanks; ++rank) {
    auto dump = ReadDump(std::string(input.TakePart()));
    if (dump.ok()) dumps.push_back({"nccl_trace_rank_" + std::to_string(rank), rank, *dump, ""});
  }
  if (dumps.empty()) return;
  const FlightRecorderInput job = ImportDumps(std::move(dumps), {});
  std::vector<Verdict> verdicts =
      Diagnose(job.model.state(), job.newest_ns, LimitsWithoutPatience());
  AddDumpEvidence(job, &verdicts);
  for (const Verdict& verdict : verdicts) {
    Promise(!verdict.summary.empty(), "a verdict has a sentence");
  }
  Report(job, std::move(verdicts));
}

const Registered kTarget({"dumps", 8192, &Run});

}  // namespace
}  // namespace fuzz
}  // namespace rollcall
