// SPDX-License-Identifier: Apache-2.0
// Incidents for the tests of alerts.
#pragma once

#include "rollcall/v1/incident.pb.h"

namespace rollcall {

// A confirmed hang of the second attempt of a job: ranks 3 and 4 are missing.
inline v1::Incident Incident() {
  v1::Incident incident;
  incident.set_id("job-1");
  incident.set_job("job");
  incident.set_tenant("ml");
  incident.set_attempt(2);
  incident.set_state("confirmed");
  incident.set_report_path("/reports/x");
  incident.mutable_opened_at()->set_seconds(1'700'000'000);
  v1::Verdict* verdict = incident.add_verdicts();
  verdict->set_cause("missing_rank");
  verdict->set_certainty("certain");
  verdict->set_summary("rank 3 \"never\" entered <AllReduce> & co");
  for (int rank : {3, 4}) {
    v1::Culprit* culprit = verdict->add_culprits();
    culprit->set_rank(rank);
    culprit->set_host("node-17");
  }
  return incident;
}

// The same hang, with this rank in the place of rank 3.
inline v1::Incident WithCulprit(int rank) {
  v1::Incident incident = Incident();
  incident.mutable_verdicts(0)->mutable_culprits(0)->set_rank(rank);
  return incident;
}

}  // namespace rollcall
