// SPDX-License-Identifier: Apache-2.0
#include "daemon/report/incident_proto.h"

#include <algorithm>
#include <string>

#include "absl/strings/strip.h"

#include "daemon/words/alignment.h"
#include "daemon/words/terms.h"
#include "proto/clean_text.h"
#include "proto/durations.h"

namespace rollcall {
namespace {

void SetTime(int64_t ns, google::protobuf::Timestamp* time) {
  time->set_seconds(ns / kSecond);
  time->set_nanos(static_cast<int32_t>(ns % kSecond));
}

v1::Culprit ToProto(const Culprit& culprit, uint64_t position) {
  v1::Culprit result;
  result.set_rank(culprit.rank);
  result.set_host(Utf8(culprit.host));
  result.set_pid(culprit.pid);
  result.set_device(culprit.device);
  if (culprit.call.op != Op::kNone) {
    *result.mutable_call() = ToProto(culprit.call, position);
    result.mutable_call()->set_code(Utf8(culprit.site));
  }
  result.set_code(Utf8(culprit.site));
  result.set_error(Utf8(culprit.error));
  if (culprit.step >= 0) result.set_step(static_cast<double>(culprit.step));
  result.set_phase(Utf8(culprit.phase));
  return result;
}

const char* DivergenceName(DivergenceKind kind) {
  switch (kind) {
    case DivergenceKind::kExtra:
      return "extra";
    case DivergenceKind::kSkipped:
      return "skipped";
    case DivergenceKind::kSwapped:
      return "swapped";
    case DivergenceKind::kReplaced:
      return "replaced";
    case DivergenceKind::kNone:
      break;
  }
  return "";
}

v1::AlignedCall ToProto(const AlignedCall& line) {
  v1::AlignedCall result;
  if (line.others.op != Op::kNone) {
    *result.mutable_others() = ToProto(line.others, line.position);
    result.mutable_others()->set_code(Utf8(line.others_site));
  }
  if (line.culprits.op != Op::kNone) {
    *result.mutable_culprits() = ToProto(line.culprits, line.culprit_position);
    result.mutable_culprits()->set_code(Utf8(line.culprits_site));
  }
  result.set_differs(!SameCall(line.others, line.culprits));
  return result;
}

v1::WaitEdge ToProto(const WaitEdge& edge) {
  v1::WaitEdge result;
  for (const int32_t rank : edge.from) result.add_from(rank);
  for (const int32_t rank : edge.to) result.add_to(rank);
  result.mutable_communicator()->set_id(IdInHex(edge.communicator));
  result.mutable_communicator()->set_name(Utf8(edge.communicator_name));
  result.mutable_communicator()->set_size(edge.communicator_size);
  *result.mutable_call() = ToProto(edge.call, edge.position);
  return result;
}

}  // namespace

std::string Utf8(const std::string& text) { return CleanText(text); }

v1::Call ToProto(const CallArgs& call, uint64_t position) {
  v1::Call result;
  result.set_position(static_cast<double>(position));
  if (call.op != Op::kNone) result.set_operation(OpInWords(call.op));
  result.set_dtype(DtypeInWords(call.dtype));
  result.set_count(static_cast<double>(call.count));
  result.set_reduction(ReductionInWords(call.reduction));
  result.set_root(call.peer);
  if (call.shape != nullptr) {
    const size_t sizes = std::min(call.shape->find('['), call.shape->size());
    result.set_shape(Utf8(call.shape->substr(sizes)));
    result.set_logical(Utf8(std::string(absl::StripSuffix(call.shape->substr(0, sizes), " "))));
  }
  return result;
}

v1::Verdict ToProto(const Verdict& verdict) {
  v1::Verdict result;
  result.set_cause(CauseName(verdict.cause));
  result.set_certainty(CertaintyName(verdict.certainty));
  for (const Culprit& culprit : verdict.culprits) {
    *result.add_culprits() = ToProto(culprit, verdict.position);
  }
  for (const int32_t rank : verdict.waiting_ranks) result.add_waiting_ranks(rank);
  v1::CommunicatorRef& communicator = *result.mutable_communicator();
  communicator.set_id(IdInHex(verdict.communicator));
  communicator.set_name(Utf8(verdict.communicator_name));
  communicator.set_size(verdict.communicator_size);
  *result.mutable_call() = ToProto(verdict.call, verdict.position);
  result.mutable_call()->set_code(Utf8(verdict.site));
  if (verdict.graph.graph != 0) {
    v1::GraphPlace& place = *result.mutable_call()->mutable_graph();
    place.set_graph(verdict.graph.graph);
    place.set_launch(static_cast<double>(verdict.graph.launch));
    place.set_call(static_cast<double>(verdict.graph.call));
    place.set_calls(static_cast<double>(verdict.graph.calls));
  }
  for (const std::string& field : verdict.mismatched_fields) result.add_mismatched_fields(field);
  if (verdict.step >= 0) result.set_step(static_cast<double>(verdict.step));
  result.set_phase(Utf8(verdict.phase));
  result.set_waited_seconds(static_cast<double>(verdict.waited_ns / (kSecond / 1000)) / 1000.0);
  result.set_summary(Utf8(verdict.summary));
  for (const Advice& advice : verdict.advice) {
    v1::Advice& added = *result.add_advice();
    added.set_id(advice.id);
    added.set_text(advice.text);
  }
  for (const std::string& line : verdict.evidence) result.add_evidence(Utf8(line));
  for (const std::string& line : verdict.missing_evidence) {
    result.add_missing_evidence(Utf8(line));
  }
  result.set_is_consequence(verdict.is_consequence);
  result.set_divergence(DivergenceName(verdict.divergence));
  for (const AlignedCall& line : verdict.histories) *result.add_histories() = ToProto(line);
  for (const WaitEdge& edge : verdict.chain) *result.add_chain() = ToProto(edge);
  result.set_late(verdict.late);
  result.set_evidence_age_seconds(
      static_cast<double>(verdict.evidence_age_ns / (kSecond / 1000)) / 1000.0);
  return result;
}

v1::Incident ToProto(const Incident& incident) {
  v1::Incident result;
  result.set_id(Utf8(incident.id));
  result.set_job(Utf8(incident.job));
  result.set_state(IncidentStateName(incident.state));
  if (incident.opened_ns > 0) SetTime(incident.opened_ns, result.mutable_opened_at());
  if (incident.confirmed_ns > 0) SetTime(incident.confirmed_ns, result.mutable_confirmed_at());
  if (incident.closed_ns > 0) SetTime(incident.closed_ns, result.mutable_closed_at());
  for (const Verdict& verdict : incident.verdicts) *result.add_verdicts() = ToProto(verdict);
  for (const VersionInUse& version : incident.versions) {
    v1::VersionInUse& added = *result.add_versions();
    added.set_component(version.component);
    added.set_version(Utf8(version.version));
    added.set_ranks(RankList(version.ranks));
  }
  return result;
}

}  // namespace rollcall
