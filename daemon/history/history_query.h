// SPDX-License-Identifier: Apache-2.0
// The queries of people that the history answers, as messages: one type passes all of them through
// the keeper, its threads and the database. docs/architecture.md, "To add a query". Pure.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "rollcall/v1/query.pb.h"
#include "rollcall/v1/store.pb.h"

namespace rollcall {

// What a connection for reading is for: brief answers, or those that read all of the history.
enum class HistoryUse : uint8_t { kLists, kQuestions };

// The table of queries: the field of v1::HistoryQuery and v1::HistoryAnswer, its messages, and the
// connection that answers it. Each has its SQL in a Read() of sql_reads.h.
#define ROLLCALL_HISTORY_QUERIES(QUERY)                                    \
  QUERY(incidents, HistoryQuery::Incidents, ListIncidentsResponse, kLists) \
  QUERY(groups, HistoryQuery::Groups, ListIncidentsResponse, kLists)       \
  QUERY(count, CountIncidentsRequest, CountIncidentsResponse, kQuestions)  \
  QUERY(incident, IncidentRequest, Incident, kLists)                       \
  QUERY(silences, ListSilencesRequest, ListSilencesResponse, kLists)

// By the type of a request: its answer, and where both are in the messages.
template <typename Request>
struct HistoryQueryRow;
#define ROLLCALL_QUERY(field, Request, Response, use)                                    \
  template <>                                                                            \
  struct HistoryQueryRow<v1::Request> {                                                  \
    using Answer = v1::Response;                                                         \
    static v1::Request* In(v1::HistoryQuery* query) { return query->mutable_##field(); } \
    static Answer* In(v1::HistoryAnswer* answer) { return answer->mutable_##field(); }   \
  };
ROLLCALL_HISTORY_QUERIES(ROLLCALL_QUERY)
#undef ROLLCALL_QUERY

template <typename Request>
using HistoryAnswerTo = typename HistoryQueryRow<Request>::Answer;

inline HistoryUse UseFor(const v1::HistoryQuery& query) {
#define ROLLCALL_QUERY(field, Request, Response, use) \
  if (query.has_##field()) return HistoryUse::use;
  ROLLCALL_HISTORY_QUERIES(ROLLCALL_QUERY)
#undef ROLLCALL_QUERY
  return HistoryUse::kLists;
}

template <typename Request>
v1::HistoryQuery QueryOf(const Request& request) {
  v1::HistoryQuery query;
  *HistoryQueryRow<Request>::In(&query) = request;
  return query;
}

// An answer that people see as a message of its own has a field for the note.
template <typename Response>
auto SetNote(const std::string& note, Response* response, int /*preferred*/)
    -> decltype(response->set_note(note)) {
  return response->set_note(note);
}
template <typename Response>
void SetNote(const std::string& /*note*/, Response* /*response*/, int64_t /*without a note*/) {}

template <typename Request>
absl::StatusOr<HistoryAnswerTo<Request>> AnswerIn(absl::StatusOr<v1::HistoryAnswer> answer) {
  if (!answer.ok()) return answer.status();
  HistoryAnswerTo<Request> response = std::move(*HistoryQueryRow<Request>::In(&*answer));
  SetNote(answer->note(), &response, 0);
  return response;
}

}  // namespace rollcall
