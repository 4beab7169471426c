// SPDX-License-Identifier: Apache-2.0
// Incidents, alerts, and short words for the tests of all histories.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/durations.h"
#include "daemon/history/history.h"

namespace rollcall {

inline constexpr int64_t kDay = 86400 * kSecond;

inline v1::Incident Incident(const std::string& job, int number, int64_t opened_s,
                             const std::string& host, int rank = 3,
                             const std::string& cause = "missing_rank") {
  v1::Incident incident;
  incident.set_id(absl::StrCat(job, "-", number));
  incident.set_job(job);
  incident.set_state("resolved");
  incident.mutable_opened_at()->set_seconds(opened_s);
  incident.mutable_closed_at()->set_seconds(opened_s + 60);
  v1::Verdict* verdict = incident.add_verdicts();
  verdict->set_cause(cause);
  verdict->set_summary("it hung");
  v1::Culprit* culprit = verdict->add_culprits();
  culprit->set_host(host);
  culprit->set_rank(rank);
  incident.add_stacks()->set_pid(4711);
  incident.mutable_stack_tree()->add_nodes()->set_threads(9);
  return incident;
}

// Text that no store can compress.
inline std::string Noise(size_t size) {
  std::string text;
  uint32_t state = 1;
  while (text.size() < size)
    text += static_cast<char>('0' + (state = state * 1664525 + 1013904223) / 67'108'864);
  return text;
}

inline int LastNumber(const History& history, const JobId& job) {
  const auto numbers = history.LastNumbers();
  EXPECT_TRUE(numbers.ok()) << numbers.status();
  const auto at = numbers->find(job);
  return at == numbers->end() ? 0 : at->second;
}

inline std::vector<std::string> Ids(const History& history,
                                    const v1::ListIncidentsRequest& request = {}) {
  std::vector<std::string> ids;
  const auto list = history.List(request);
  EXPECT_TRUE(list.ok()) << list.status();
  for (const v1::Incident& incident : list->incidents()) ids.push_back(incident.id());
  return ids;
}

inline v1::Incident OpenIncident(const std::string& job, int number, int64_t opened_s = 1000) {
  v1::Incident incident = Incident(job, number, opened_s, "node-1");
  incident.set_state("confirmed");
  *incident.mutable_confirmed_at() = incident.opened_at();
  incident.clear_closed_at();
  return incident;
}

inline AlertRow Alert(const std::string& incident, int32_t sequence, const std::string& kind) {
  AlertRow alert;
  alert.incident = incident;
  alert.sequence = sequence;
  alert.kind = kind;
  alert.made_ns = 2000 * kSecond;
  alert.body.set_id(incident);
  return alert;
}

// An incident that is confirmed, of a call on a communicator of its own.
inline v1::Incident Confirmed(int number, int64_t opened_s, const std::string& host,
                              const std::string& communicator) {
  v1::Incident incident = Incident("train", number, opened_s, host);
  *incident.mutable_confirmed_at() = incident.opened_at();
  incident.mutable_verdicts(0)->mutable_communicator()->set_id(communicator);
  incident.mutable_verdicts(0)->mutable_call()->set_operation("AllReduce");
  return incident;
}

inline v1::ListIncidentsResponse Groups(const History& history,
                                        const v1::ListIncidentsRequest& request = {},
                                        const std::string& without = "") {
  v1::HistoryQuery::Groups query;
  *query.mutable_request() = request;
  query.set_without(without);
  const auto groups = history.Ask(query);
  EXPECT_TRUE(groups.ok()) << groups.status();
  return groups.ok() ? *groups : v1::ListIncidentsResponse();
}

}  // namespace rollcall
