// SPDX-License-Identifier: Apache-2.0
// The answer of NCCL's RAS, as text or JSON, up to the verdict. It says nothing certain.
#include "daemon/ras/ras_join.h"
#include "daemon/ras/ras_json.h"
#include "fuzz_target.h"

namespace rollcall {
namespace fuzz {
namespace {

void Run(Input input) {
  v1::RasAnswer answer;
  answer.set_text(std::string(input.TakeRest()));
  for (const RasFinding& finding : ReadRasJson(answer.text())) {
    Promise(finding.kind != RasFinding::Kind::kMismatch || finding.counts.size() > 1,
            "counts differ where they are a finding");
  }
  for (const bool has_verdict : {false, true}) {
    v1::Incident incident;
    if (has_verdict) incident.add_verdicts()->set_certainty("possible");
    JoinRas(answer, {{7, "node-1", 100, 0}, {8, "node-1", 101, 3}}, &incident);
    for (const v1::Verdict& verdict : incident.verdicts())
      Promise(verdict.certainty() != "certain", "RAS makes nothing certain");
  }
}

const Registered kTarget({"ras", 8192, &Run});

}  // namespace
}  // namespace fuzz
}  // namespace rollcall
