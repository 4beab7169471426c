// SPDX-License-Identifier: Apache-2.0
#include "daemon/report/incident_proto.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <unordered_set>
#include <vector>

#include "absl/strings/strip.h"
#include "base/clean_text.h"
#include "base/durations.h"
#include "daemon/report/network/network_proto.h"
#include "daemon/words/alignment.h"
#include "daemon/words/rank_ranges.h"
#include "daemon/words/terms.h"
#include "proto/timestamps.h"

namespace rollcall {
namespace {

template <typename Ranks>
void AddRanks(const std::vector<int32_t>& ranks, Ranks* some) {
  const size_t count = std::min(ranks.size(), kMostListed);
  some->Add(ranks.begin(), ranks.begin() + static_cast<std::ptrdiff_t>(count));
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
  result.set_thread_error(Utf8(culprit.thread_error));
  result.set_failed_thread(Utf8(culprit.failed_thread));
  if (culprit.step >= 0) result.set_step(static_cast<double>(culprit.step));
  result.set_phase(Utf8(culprit.phase));
  if (culprit.other_job) {
    result.set_job(Utf8(culprit.other_job->key.job));
    result.set_job_attempt(culprit.other_job->key.attempt);
    if (culprit.other_job->rank >= 0) result.set_job_rank(culprit.other_job->rank);
  }
  result.set_inner_pid(culprit.inner_pid);
  // The kernel's number for a user that has none here: as good as not known.
  if (culprit.uid >= 0 && culprit.uid < UINT32_MAX) {
    result.set_uid(static_cast<uint32_t>(culprit.uid));
  }
#define PROCESS_PLACE(name) result.set_##name(Utf8(culprit.name));
#include "proto/facts.def"
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

const char* StartFaultName(StartFault fault) {
  switch (fault) {
    case StartFault::kNotReached:
      return "not_reached";
    case StartFault::kNotStarted:
      return "not_started";
    case StartFault::kOtherSize:
      return "other_size";
    case StartFault::kWaitsElsewhere:
      return "waits_elsewhere";
    case StartFault::kAllWait:
      return "all_wait";
    case StartFault::kNone:
      break;
  }
  return "";
}

v1::Standstill ToProto(const Standstill& stand) {
  v1::Standstill result;
  result.set_shape(StandShapeName(stand.shape));
  result.set_waits_in(StandKindInWords(stand.in));
  result.set_others_wait_in(StandKindInWords(stand.others_in));
  result.set_waits_for(Utf8(stand.others));
  result.set_file(Utf8(stand.on));
  return result;
}

v1::HandledException ToProto(const RankException& handled) {
  v1::HandledException result;
  result.set_rank(handled.rank);
  result.mutable_exception()->set_type(Utf8(handled.exception.type));
  result.mutable_exception()->set_text(Utf8(handled.exception.text));
  result.mutable_exception()->set_at(Utf8(handled.exception.at));
  return result;
}

// The library's function that the culprit waits in; empty if unknown.
std::string InsideOf(const Verdict& verdict, int32_t rank) {
  for (size_t i = 0; i < std::min(verdict.places.size(), verdict.culprits.size()); ++i) {
    if (verdict.culprits[i].rank == rank) return verdict.places[i].inside;
  }
  return "";
}

v1::OutsideWait ToProto(const RankOutside& outside, const std::string& inside) {
  v1::OutsideWait result;
  result.set_rank(outside.rank);
  result.set_inside(Utf8(inside));
  for (const ChildAtWork& child : outside.children) {
    v1::ChildAtWork& added = *result.add_children();
    added.set_pid(child.pid);
    added.set_name(Utf8(child.name));
    added.set_cpus(child.cpus);
  }
  if (outside.children.empty()) result.set_received_bytes_per_second(outside.receives);
  return result;
}

v1::SocketWait ToProto(const RankSocket& socket) {
  v1::SocketWait result;
  result.set_rank(socket.rank);
  AddRanks(socket.others, result.mutable_others());
  result.set_they_wait(socket.they_wait);
  return result;
}

v1::Keeper ToProto(const RankKeeper& keeper) {
  v1::Keeper result;
  result.set_rank(keeper.rank);
  result.set_tid(static_cast<int32_t>(keeper.thread.tid));
  result.set_name(Utf8(keeper.thread.name));
  result.set_at(Utf8(keeper.thread.place.at));
  result.set_inside(Utf8(keeper.thread.place.inside));
  return result;
}

// What stacks show of the culprits beside their lines.
void AddOutside(const Verdict& verdict, v1::Verdict* result) {
  if (!verdict.handled.exception.type.empty()) {
    *result->mutable_handled() = ToProto(verdict.handled);
  }
  if (verdict.outside.rank >= 0) {
    *result->mutable_outside() = ToProto(verdict.outside, InsideOf(verdict, verdict.outside.rank));
  }
  if (!verdict.socket.others.empty()) *result->mutable_socket() = ToProto(verdict.socket);
  if (verdict.keeper.rank >= 0) *result->mutable_keeper() = ToProto(verdict.keeper);
  result->set_start_fault(StartFaultName(verdict.start_fault));
  result->set_awaited_key(Utf8(verdict.awaited_key));
  if (verdict.network.fault != NetworkFault::kNone) {
    *result->mutable_network() = ToProto(verdict.network, verdict.since_ns + verdict.waited_ns);
  }
  if (verdict.standstill.shape != StandShape::kNone) {
    *result->mutable_standstill() = ToProto(verdict.standstill);
  }
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
  AddRanks(edge.from, result.mutable_from());
  result.set_from_total(static_cast<int32_t>(edge.from.size()));
  result.set_from_ranges(RankList(edge.from));
  const RankRanges to(edge.to);
  AddRanks(to.First(kMostListed), result.mutable_to());
  result.set_to_total(static_cast<int32_t>(to.size()));
  result.set_to_ranges(to.List());
  result.mutable_communicator()->set_id(IdInHex(edge.communicator));
  result.mutable_communicator()->set_name(Utf8(edge.communicator_name));
  result.mutable_communicator()->set_size(edge.communicator_size);
  result.mutable_communicator()->set_kind(CommKindName(edge.communicator_kind));
  *result.mutable_call() = ToProto(edge.call, edge.position);
  return result;
}

void AddCulprits(const Verdict& verdict, v1::Verdict* result) {
  std::unordered_set<std::string> hosts, listed;
  for (const Culprit& culprit : verdict.culprits) {
    if (!culprit.host.empty()) hosts.insert(culprit.host);
    const auto index = static_cast<size_t>(&culprit - verdict.culprits.data());
    const std::string at = index < verdict.places.size() ? verdict.places[index].at : "";
    for (int32_t i = 0; i < culprit.ranks; ++i) {
      if (static_cast<size_t>(result->culprits_size()) == kMostListed) break;
      v1::Culprit* one = result->add_culprits();
      *one = ToProto(culprit, verdict.position);
      one->set_rank(culprit.rank + i);
      one->set_at(Utf8(at));
      listed.insert(culprit.host);
    }
  }
  for (const std::string& host : std::set<std::string>(hosts.begin(), hosts.end())) {
    if (listed.count(host) == 0) result->add_other_culprit_hosts(Utf8(host));
  }
  result->set_culprits_total(static_cast<int32_t>(CountCulprits(verdict.culprits)));
  result->set_culprit_ranks(RankRanges(CulpritRanges(verdict.culprits)).List());
  result->set_culprit_hosts_total(static_cast<int32_t>(hosts.size()));
}

// The lines of the waiting ranks, where stacks do not show whose thread is whose.
void AddWaitingPlaces(const Verdict& verdict, v1::Verdict* result) {
  std::map<std::string, std::vector<int32_t>> ranks;
  for (const RankPlace& place : verdict.waiting_places) ranks[place.at].push_back(place.rank);
  for (const auto& [at, here] : ranks) {
    v1::SiteRanks* site = result->add_waiting_at();
    site->set_at(Utf8(at));
    AddRanks(here, site->mutable_ranks());
    site->set_total(static_cast<int32_t>(here.size()));
    site->set_rank_ranges(RankList(here));
  }
  result->set_waiting_at_total(static_cast<int32_t>(ranks.size()));
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
  AddCulprits(verdict, &result);
  AddRanks(verdict.waiting_ranks, result.mutable_waiting_ranks());
  result.set_waiting_total(static_cast<int32_t>(verdict.waiting_ranks.size()));
  result.set_waiting_rank_ranges(RankList(verdict.waiting_ranks));
  v1::CommunicatorRef& communicator = *result.mutable_communicator();
  communicator.set_id(IdInHex(verdict.communicator));
  communicator.set_name(Utf8(verdict.communicator_name));
  communicator.set_size(verdict.communicator_size);
  communicator.set_kind(CommKindName(verdict.communicator_kind));
  *result.mutable_call() = ToProto(verdict.call, verdict.position);
  result.mutable_call()->set_code(Utf8(verdict.site));
  if (verdict.graph.graph != 0) {
    v1::GraphCall& place = *result.mutable_call()->mutable_graph();
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
  for (const WaitEdge& edge : verdict.chain) {
    if (static_cast<size_t>(result.chain_size()) == kMostEdges) break;
    *result.add_chain() = ToProto(edge);
  }
  result.set_chain_total(static_cast<int32_t>(verdict.chain.size()));
  result.set_late(verdict.late);
  result.set_idle(verdict.is_idle);
  result.set_ranks_of_communicator(verdict.of_communicator);
  AddOutside(verdict, &result);
  AddWaitingPlaces(verdict, &result);
  result.set_evidence_age_seconds(static_cast<double>(verdict.evidence_age_ns / (kSecond / 1000)) /
                                  1000.0);
  return result;
}

v1::Incident ToProto(const Incident& incident) {
  v1::Incident result;
  result.set_id(Utf8(incident.id));
  result.set_job(Utf8(incident.job.job));
  result.set_tenant(Utf8(incident.job.tenant));
  result.set_attempt(incident.job.attempt);
  result.set_state(IncidentStateName(incident.state));
  if (incident.opened_ns > 0) *result.mutable_opened_at() = ToTimestamp(incident.opened_ns);
  if (incident.confirmed_ns > 0)
    *result.mutable_confirmed_at() = ToTimestamp(incident.confirmed_ns);
  if (incident.closed_ns > 0) *result.mutable_closed_at() = ToTimestamp(incident.closed_ns);
  for (const Verdict& verdict : incident.verdicts) *result.add_verdicts() = ToProto(verdict);
  for (const VersionInUse& version : incident.versions) {
    v1::VersionInUse& added = *result.add_versions();
    added.set_component(version.component);
    added.set_version(Utf8(version.version));
    added.set_ranks(RankList(version.ranks));
  }
  return result;
}

const std::vector<const google::protobuf::FieldDescriptor*>& DiagnosedFields() {
  static const auto& fields = *new std::vector<const google::protobuf::FieldDescriptor*>([] {
    std::vector<const google::protobuf::FieldDescriptor*> found;
    for (const char* name : {"id", "job", "tenant", "attempt", "state", "opened_at", "confirmed_at",
                             "closed_at", "verdicts", "versions"}) {
      found.push_back(v1::Incident::descriptor()->FindFieldByName(name));
    }
    return found;
  }());
  return fields;
}

}  // namespace rollcall
