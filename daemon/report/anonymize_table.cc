// SPDX-License-Identifier: Apache-2.0
// What each field of an incident contains. A new text field of incident.proto needs a row here: its
// test fails without one.
#include "daemon/report/anonymize.h"

namespace rollcall {

const std::vector<TextField>& TextFields() {
  using K = TextKind;
  static const std::vector<TextField> fields = {
      {"Culprit.host", K::kHost},
      {"Culprit.code", K::kSite},
      {"Culprit.error", K::kError},
      {"Culprit.at", K::kSite},
      {"Culprit.phase", K::kPhase},
      {"Culprit.node", K::kHost},
      {"Culprit.pod", K::kPod},
      {"Culprit.pod_uid", K::kDropped},
      {"Culprit.container", K::kContainer},
      {"Culprit.gpu_uuid", K::kGpu},
      {"CommunicatorRef.id", K::kPublic},
      {"CommunicatorRef.name", K::kCommunicator},
      {"Call.operation", K::kPublic},
      {"Call.dtype", K::kPublic},
      {"Call.reduction", K::kPublic},
      {"Call.code", K::kSite},
      {"Call.shape", K::kPublic},
      {"Call.logical", K::kPublic},
      {"Advice.id", K::kPublic},
      {"Advice.text", K::kText},
      {"Verdict.cause", K::kPublic},
      {"Verdict.certainty", K::kPublic},
      {"Verdict.mismatched_fields", K::kPublic},
      {"Verdict.summary", K::kText},
      {"Verdict.missing_evidence", K::kText},
      {"Verdict.evidence", K::kText},
      {"Verdict.divergence", K::kPublic},
      {"Verdict.phase", K::kPhase},
      {"Verdict.culprit_ranks", K::kPublic},
      {"Verdict.waiting_rank_ranges", K::kPublic},
      {"Verdict.other_culprit_hosts", K::kHost},
      {"SiteRanks.at", K::kSite},
      {"SiteRanks.rank_ranges", K::kPublic},
      {"WaitEdge.from_ranges", K::kPublic},
      {"WaitEdge.to_ranges", K::kPublic},
      {"Frame.function", K::kFunction},
      {"Frame.module", K::kFile},
      {"Frame.file", K::kFile},
      {"Frame.address", K::kAddress},
      {"ThreadStack.name", K::kThread},
      {"ThreadStack.state", K::kPublic},
      {"ThreadStack.wait_channel", K::kPublic},
      {"ThreadStack.note", K::kText},
      {"ThreadStack.python_lock", K::kPublic},
      {"ProcessStack.host", K::kHost},
      {"ProcessStack.method", K::kPublic},
      {"ProcessStack.error", K::kText},
      {"StackTree.Node.frame", K::kText},
      {"StackTree.Node.ranks", K::kPublic},
      {"HostFacts.host", K::kHost},
      {"HostFacts.error", K::kText},
      {"HostFact.kind", K::kPublic},
      {"HostFact.subject", K::kDevice},
      {"HostFact.text", K::kLog},
      {"HostProbe.name", K::kPublic},
      {"HostProbe.outcome", K::kPublic},
      {"HostProbe.note", K::kText},
      {"VersionInUse.component", K::kPublic},
      {"VersionInUse.version", K::kPublic},
      {"VersionInUse.ranks", K::kPublic},
      {"Incident.id", K::kIncident},
      {"Incident.job", K::kJob},
      {"Incident.state", K::kPublic},
      {"Incident.report_path", K::kDropped},
      {"Incident.rollcall_version", K::kPublic},
      {"Incident.tenant", K::kTenant},
      {"Incident.report_note", K::kText},
      // These are facts about other incidents.
      {"Incident.signature", K::kDropped},
      {"IncidentGroup.signature", K::kDropped},
      {"IncidentGroup.tenant", K::kTenant},
      {"IncidentGroup.newest", K::kDropped},
      {"IncidentGroup.summary", K::kDropped},
      {"IncidentGroup.sentence", K::kDropped},
      {"Recurring.name", K::kDropped},
      {"Repeat.first", K::kDropped},
      {"Repeat.newest", K::kDropped},
      {"Repeat.sentence", K::kPublic},
      {"Repeat.later", K::kDropped},
      {"Repeat.thread", K::kDropped},
      {"Note.who", K::kDropped},
      {"Note.text", K::kDropped},
      {"Acknowledgement.who", K::kDropped},
      {"HostLabel.host", K::kHost},
      {"HostLabel.name", K::kPublic},
      {"HostLabel.value", K::kDropped},
      {"Silence.id", K::kDropped},
      {"Silence.tenant", K::kDropped},
      {"Silence.job", K::kDropped},
      {"Silence.host", K::kDropped},
      {"Silence.cause", K::kDropped},
      {"Silence.who", K::kDropped},
      {"Silence.comment", K::kDropped},
  };
  return fields;
}

const std::vector<std::string>& PidFields() {
  static const std::vector<std::string> fields = {
      "Culprit.pid", "Culprit.inner_pid", "ThreadStack.tid", "ProcessStack.pid", "HostFact.pid"};
  return fields;
}

}  // namespace rollcall
