// SPDX-License-Identifier: Apache-2.0
#include "daemon/incidents/stored_incident.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <iterator>

#include "base/whole_numbers.h"
#include "daemon/history/history.h"
#include "proto/timestamps.h"

namespace rollcall {
namespace {

constexpr Cause kCauses[] = {
#define X(name, text) Cause::name,
    ROLLCALL_CAUSES(X)
#undef X
};

Cause FindCause(const std::string& name) {
  const auto found = std::find_if(std::begin(kCauses), std::end(kCauses),
                                  [&name](Cause cause) { return name == CauseName(cause); });
  return found == std::end(kCauses) ? Cause::kMissingRank : *found;
}

// Of kinds with one name any will do: only words are made of a stored verdict.
CommKind FindCommKind(const std::string& name) {
  for (uint32_t kind = 0; kind < kCommKinds; ++kind) {
    if (name == CommKindName(ToCommKind(kind))) return ToCommKind(kind);
  }
  return CommKind::kNccl;
}

Certainty FindCertainty(const std::string& name) {
  for (const Certainty certainty : {Certainty::kCertain, Certainty::kLikely}) {
    if (name == CertaintyName(certainty)) return certainty;
  }
  return Certainty::kPossible;
}

Culprit FromStored(const v1::Culprit& stored) {
  Culprit culprit;
  culprit.rank = stored.rank();
  culprit.host = stored.host();
  culprit.pid = stored.pid();
  culprit.device = stored.device();
  return culprit;
}

Verdict FromStored(const v1::Verdict& stored) {
  Verdict verdict;
  verdict.cause = FindCause(stored.cause());
  verdict.certainty = FindCertainty(stored.certainty());
  for (const v1::Culprit& culprit : stored.culprits()) {
    verdict.culprits.push_back(FromStored(culprit));
  }
  verdict.waiting_ranks.assign(stored.waiting_ranks().begin(), stored.waiting_ranks().end());
  verdict.communicator = std::strtoull(stored.communicator().id().c_str(), nullptr, 16);
  verdict.communicator_name = stored.communicator().name();
  verdict.communicator_kind = FindCommKind(stored.communicator().kind());
  verdict.communicator_size = stored.communicator().size();
  verdict.position =
      static_cast<uint64_t>(std::max<int64_t>(WholeNumber(stored.call().position()), 0));
  verdict.is_consequence = stored.is_consequence();
  verdict.late = stored.late();
  verdict.summary = stored.summary();
  return verdict;
}

IncidentState FindState(const v1::Incident& incident) {
  for (const IncidentState state :
       {IncidentState::kConfirmed, IncidentState::kResolved, IncidentState::kEnded}) {
    if (incident.state() == IncidentStateName(state)) return state;
  }
  return IncidentState::kSuspected;
}

}  // namespace

Incident FromStored(const v1::Incident& stored) {
  Incident incident;
  incident.id = stored.id();
  incident.job = ReadJobKey(stored);
  incident.state = FindState(stored);
  incident.opened_ns = NsOf(stored.opened_at());
  incident.confirmed_ns = NsOf(stored.confirmed_at());
  incident.closed_ns = NsOf(stored.closed_at());
  for (const v1::Verdict& verdict : stored.verdicts()) {
    incident.verdicts.push_back(FromStored(verdict));
  }
  incident.ended_ranks = static_cast<size_t>(std::max(stored.ended_ranks(), 0));
  return incident;
}

}  // namespace rollcall
