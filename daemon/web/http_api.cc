// SPDX-License-Identifier: Apache-2.0
#include "daemon/web/http_api.h"

#include <google/protobuf/util/json_util.h>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "base/clean_text.h"
#include "base/duration_flag.h"
#include "base/durations.h"
#include "base/utf8.h"
#include "daemon/history/incident_csv.h"
#include "daemon/incidents/silences.h"
#include "daemon/queries/query_source.h"
#include "daemon/queries/stacks_audit.h"
#include "proto/timestamps.h"
#include "security/redact.h"

namespace rollcall {
namespace {

constexpr int kMostStacksAtOnce = 256;
constexpr size_t kMostRanks = size_t{1} << 18;  // as the largest job has

std::string ToJson(const google::protobuf::Message& message) {
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  options.always_print_primitive_fields = true;
  std::string json;
  return google::protobuf::util::MessageToJsonString(message, &json, options).ok() ? json : "{}";
}

template <typename Message>
absl::StatusOr<std::string> ToJson(const absl::StatusOr<Message>& message) {
  if (!message.ok()) return message.status();
  return ToJson(static_cast<const google::protobuf::Message&>(*message));
}

// Parses ranks like "0,3-5". "" gives no ranks.
absl::StatusOr<std::vector<int32_t>> ParseRanks(const std::string& text) {
  std::vector<int32_t> ranks;
  for (const absl::string_view part : absl::StrSplit(text, ',', absl::SkipEmpty())) {
    const std::vector<absl::string_view> ends = absl::StrSplit(part, absl::MaxSplits('-', 1));
    int32_t first = 0, last = 0;
    if (!absl::SimpleAtoi(ends.front(), &first) || !absl::SimpleAtoi(ends.back(), &last) ||
        first < 0 || last < first ||
        static_cast<size_t>(last - first) >= kMostRanks - ranks.size()) {
      return absl::InvalidArgumentError(
          absl::StrCat("ranks are numbers and ranges, as in 0,3-5, of ", kMostRanks,
                       " ranks at most; not \"", part, "\""));
    }
    // int64_t: the last rank may be the largest int32_t.
    for (int64_t rank = first; rank <= last; ++rank) ranks.push_back(static_cast<int32_t>(rank));
  }
  return ranks;
}

template <typename Repeated>
absl::Status AddRanks(const QueryParameters& parameters, Repeated* ranks) {
  const auto parsed = ParseRanks(parameters.Get("ranks"));
  if (!parsed.ok()) return parsed.status();
  for (const int32_t rank : *parsed) ranks->Add(rank);
  return absl::OkStatus();
}

template <typename Set>
absl::Status SetTime(const QueryParameters& parameters, const char* name, Set set) {
  const std::string text = parameters.Get(name);
  if (text.empty()) return absl::OkStatus();
  absl::Time time;
  std::string problem;
  if (!absl::ParseTime(absl::RFC3339_full, text, &time, &problem)) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, " is a time like 2026-11-20T00:00:00Z; not \"", text, "\""));
  }
  *set() = ToTimestamp(absl::ToUnixNanos(time));
  return absl::OkStatus();
}

// Parses limit and offset. Returns the first error.
absl::Status SetPage(const QueryParameters& parameters, int* limit, int* offset) {
  const auto wanted = parameters.Number("limit", 0), first = parameters.Number("offset", 0);
  if (!wanted.ok()) return wanted.status();
  if (!first.ok()) return first.status();
  *limit = *wanted;
  *offset = *first;
  return absl::OkStatus();
}

absl::Status SetPage(const QueryParameters& parameters, JobSelector* selector) {
  int limit = 0, offset = 0;
  const absl::Status status = SetPage(parameters, &limit, &offset);
  if (limit > 0) selector->most = static_cast<size_t>(limit);
  if (offset > 0) selector->offset = static_cast<size_t>(offset);
  return status;
}

// The attempt, if one is named.
absl::StatusOr<std::optional<int32_t>> Attempt(const QueryParameters& parameters) {
  if (parameters.Get("attempt").empty()) return std::nullopt;
  const auto number = parameters.Number("attempt", 0);
  if (!number.ok()) return number.status();
  return *number;
}

absl::StatusOr<JobSelector> Selector(const QueryParameters& parameters) {
  const auto attempt = Attempt(parameters);
  if (!attempt.ok()) return attempt.status();
  JobSelector selector;
  selector.job = parameters.Get("job");
  selector.tenant = parameters.Get("tenant");
  selector.attempt = *attempt;
  return selector;
}

template <typename Request>
absl::Status SetJob(const QueryParameters& parameters, Request* request) {
  const auto selector = Selector(parameters);
  if (!selector.ok()) return selector.status();
  request->set_job(selector->job);
  request->set_tenant(selector->tenant);
  if (selector->attempt.has_value()) request->set_attempt(*selector->attempt);
  return absl::OkStatus();
}

absl::StatusOr<std::string> Status(QuerySource* queries, const QueryParameters& parameters) {
  const auto selector = Selector(parameters);
  if (!selector.ok()) return selector.status();
  JobSelector page = *selector;
  const absl::Status status = SetPage(parameters, &page);
  if (!status.ok()) return status;
  return ToJson(queries->GetStatus(page, true));
}

absl::StatusOr<std::string> Jobs(QuerySource* queries, const QueryParameters& parameters) {
  JobSelector page;
  page.host = parameters.Get("host");
  const absl::Status paged = SetPage(parameters, &page);
  if (!paged.ok()) return paged;
  v1::StatusResponse status = queries->GetStatus(page, true);
  for (v1::JobStatus& job : *status.mutable_jobs()) job.clear_communicators();
  return ToJson(status);
}

absl::StatusOr<std::string> Job(QuerySource* queries, const QueryParameters& parameters) {
  auto selector = Selector(parameters);
  if (!selector.ok()) return selector.status();
  google::protobuf::Timestamp at;
  const absl::Status status = SetTime(parameters, "at", [&at] { return &at; });
  if (!status.ok()) return status;
  selector->at_ns = NsOf(at);
  return ToJson(queries->GetJob(*selector));
}

absl::StatusOr<std::string> Calls(QuerySource* queries, const QueryParameters& parameters) {
  v1::CallsRequest request;
  absl::Status status = SetJob(parameters, &request);
  status.Update(AddRanks(parameters, request.mutable_ranks()));
  const auto limit = parameters.Number("limit", 0);
  status.Update(limit.status());
  if (!status.ok()) return status;
  request.set_limit(*limit);
  return ToJson(queries->GetCalls(request));
}

absl::StatusOr<std::string> OneCommunicator(QuerySource* queries,
                                            const QueryParameters& parameters) {
  v1::CommunicatorRequest request;
  request.set_id(parameters.Get("id"));
  int limit = 0, offset = 0;
  absl::Status status = SetJob(parameters, &request);
  status.Update(SetPage(parameters, &limit, &offset));
  if (!status.ok()) return status;
  request.set_limit(limit);
  request.set_offset(offset);
  return ToJson(queries->GetCommunicator(request));
}

absl::StatusOr<std::string> Processes(QuerySource* queries, const QueryParameters& parameters) {
  v1::ProcessesRequest request;
  request.set_host(parameters.Get("host"));
  int limit = 0, offset = 0;
  absl::Status status = SetJob(parameters, &request);
  status.Update(AddRanks(parameters, request.mutable_ranks()));
  status.Update(SetPage(parameters, &limit, &offset));
  if (!status.ok()) return status;
  request.set_limit(limit);
  request.set_offset(offset);
  return ToJson(queries->ListProcesses(request));
}

absl::StatusOr<v1::ListIncidentsRequest> IncidentsRequest(const QueryParameters& parameters) {
  v1::ListIncidentsRequest request;
  request.set_host(parameters.Get("host"));
  request.set_cause(parameters.Get("cause"));
  request.set_signature(parameters.Get("signature"));
  int limit = 0, offset = 0;
  absl::Status status = SetJob(parameters, &request);
  status.Update(SetPage(parameters, &limit, &offset));
  status.Update(SetTime(parameters, "from", [&] { return request.mutable_from(); }));
  status.Update(SetTime(parameters, "until", [&] { return request.mutable_until(); }));
  if (!status.ok()) return status;
  request.set_limit(limit);
  request.set_offset(offset);
  return request;
}

absl::StatusOr<std::string> Incidents(QuerySource* queries, const QueryParameters& parameters) {
  absl::StatusOr<v1::ListIncidentsRequest> request = IncidentsRequest(parameters);
  const absl::StatusOr<bool> grouped = parameters.Flag("grouped");
  if (!request.ok()) return request.status();
  if (!grouped.ok()) return grouped.status();
  request->set_grouped(*grouped);
  return ToJson(queries->ListIncidents(*request));
}

absl::StatusOr<std::string> IncidentsAsCsv(QuerySource* queries,
                                           const QueryParameters& parameters) {
  absl::StatusOr<v1::ListIncidentsRequest> request = IncidentsRequest(parameters);
  if (!request.ok()) return request.status();
  request->set_rows_only(true);
  const absl::StatusOr<v1::ListIncidentsResponse> list = queries->ListIncidents(*request);
  if (!list.ok()) return list.status();
  // Lines have no place for the note: a part must not look like the whole.
  if (!list->note().empty()) return absl::UnavailableError(list->note());
  std::string csv = IncidentCsvHeader();
  for (const v1::Incident& incident : list->incidents()) csv += IncidentCsvLine(incident);
  return csv;
}

absl::StatusOr<std::string> Questions(QuerySource* queries, const QueryParameters& parameters) {
  v1::CountIncidentsRequest request;
  request.set_by(parameters.Get("by"));
  request.set_cause(parameters.Get("cause"));
  request.set_tenant(parameters.Get("tenant"));
  request.set_job(parameters.Get("job"));
  const auto limit = parameters.Number("limit", 0);
  absl::Status status = limit.status();
  status.Update(SetTime(parameters, "from", [&] { return request.mutable_from(); }));
  status.Update(SetTime(parameters, "until", [&] { return request.mutable_until(); }));
  if (!status.ok()) return status;
  request.set_limit(*limit);
  return ToJson(queries->CountIncidents(request));
}

absl::StatusOr<std::string> OneIncident(QuerySource* queries, const QueryParameters& parameters) {
  return ToJson(queries->GetIncident(parameters.Get("id")));
}

absl::StatusOr<v1::TakeStacksRequest> StacksRequest(const QueryParameters& parameters) {
  v1::TakeStacksRequest request;
  absl::Status status = SetJob(parameters, &request);
  status.Update(AddRanks(parameters, request.mutable_ranks()));
  for (const std::string& host : parameters.All("host")) request.add_hosts(host);
  if (status.ok() && (request.ranks().empty() || request.ranks_size() > kMostStacksAtOnce)) {
    status = absl::InvalidArgumentError(
        absl::StrCat("request 1 to ", kMostStacksAtOnce, " ranks: ranks=0,3-5"));
  }
  if (!status.ok()) return status;
  return request;
}

absl::StatusOr<std::string> Stacks(QuerySource* queries, const QueryParameters& parameters) {
  const absl::StatusOr<v1::TakeStacksRequest> request = StacksRequest(parameters);
  if (!request.ok()) return request.status();
  return ToJson(queries->GetStacks(*request));
}

std::string ObjectOfStacks(const QuerySource& queries, const QueryParameters& parameters) {
  const absl::StatusOr<v1::TakeStacksRequest> request = StacksRequest(parameters);
  return request.ok() ? StacksInWords(queries, *request)
                      : absl::StrCat("none: ", std::string(request.status().message()));
}

v1::LookRequest LookRequestIn(const QueryParameters& parameters) {
  v1::LookRequest request;
  request.set_job(parameters.Get("job"));
  request.set_tenant(parameters.Get("tenant"));
  return request;
}

absl::StatusOr<std::string> Diagnosed(QuerySource* queries, const QueryParameters& parameters) {
  return ToJson(queries->Diagnose(LookRequestIn(parameters)));
}

std::string ObjectOfLook(const QuerySource& /*queries*/, const QueryParameters& parameters) {
  return LookInWords(LookRequestIn(parameters));
}

// Answers without the stacks, which the page has.
absl::StatusOr<std::string> ActOnIncident(QuerySource* queries, const QueryParameters& parameters,
                                          const std::string& action, const std::string& who) {
  absl::StatusOr<v1::Incident> incident =
      queries->ActOnIncident(parameters.Get("id"), action, parameters.Get("text"), who);
  if (!incident.ok()) return incident.status();
  incident->clear_stacks();
  incident->clear_stack_tree();
  return ToJson(static_cast<const google::protobuf::Message&>(*incident));
}

absl::StatusOr<std::string> Note(QuerySource* queries, const QueryParameters& parameters,
                                 const std::string& who) {
  return ActOnIncident(queries, parameters, "note", who);
}

absl::StatusOr<std::string> Acknowledge(QuerySource* queries, const QueryParameters& parameters,
                                        const std::string& who) {
  const absl::StatusOr<bool> takes_back = parameters.Flag("take_back");
  if (!takes_back.ok()) return takes_back.status();
  return ActOnIncident(queries, parameters, *takes_back ? "take back" : "acknowledge", who);
}

absl::StatusOr<std::string> ListSilences(QuerySource* queries,
                                         const QueryParameters& /*parameters*/) {
  return ToJson(queries->ListSilences());
}

absl::StatusOr<std::string> AddSilence(QuerySource* queries, const QueryParameters& parameters,
                                       const std::string& who) {
  v1::Silence wanted;
  wanted.set_tenant(parameters.Get("tenant"));
  wanted.set_job(parameters.Get("job"));
  wanted.set_host(parameters.Get("host"));
  wanted.set_cause(parameters.Get("cause"));
  wanted.set_comment(parameters.Get("comment"));
  const std::string length = parameters.Get("for");
  const std::string problem = CheckDuration(length);
  if (!problem.empty()) return absl::InvalidArgumentError(absl::StrCat("for: ", problem));
  return ToJson(queries->AddSilence(wanted, DurationNs(length) / kSecond, who));
}

absl::StatusOr<std::string> EndSilence(QuerySource* queries, const QueryParameters& parameters,
                                       const std::string& /*who*/) {
  return ToJson(queries->EndSilence(parameters.Get("id")));
}

std::string ObjectOfSilence(const QuerySource& /*queries*/, const QueryParameters& parameters) {
  return SilenceInWords(parameters.Get("tenant"), parameters.Get("job"), parameters.Get("host"),
                        parameters.Get("cause"), parameters.Get("for"));
}

std::string ObjectOfEnd(const QuerySource& /*queries*/, const QueryParameters& parameters) {
  return parameters.Get("id");
}

std::string ObjectOfNote(const QuerySource& /*queries*/, const QueryParameters& parameters) {
  return absl::StrCat("incident ", parameters.Get("id"), ": ",
                      DefaultRedactor()->Redact(parameters.Get("text")));
}

std::string ObjectOfAcknowledgement(const QuerySource& /*queries*/,
                                    const QueryParameters& parameters) {
  return absl::StrCat(parameters.Get("take_back") == "1" ? "take back, incident " : "incident ",
                      parameters.Get("id"));
}

}  // namespace

absl::StatusOr<v1::JobStatus> FindJobStatus(QuerySource* queries,
                                            const QueryParameters& parameters) {
  const auto selector = Selector(parameters);
  if (!selector.ok()) return selector.status();
  v1::StatusResponse found = queries->GetStatus(*selector, false);
  if (!found.jobs().empty()) return std::move(*found.mutable_jobs(0));
  const auto view = queries->GetJob(*selector);  // its error says which jobs there are
  if (!view.ok()) return view.status();
  return view->status();
}

// clang-format off
const std::vector<ApiRoute> kApiRoutes = {
    {"/api/v1/status", &Status, "job", false,
     {"job", "tenant", "attempt", "offset", "limit"}},
    {"/api/v1/jobs", &Jobs, "", false,
     {"host", "offset", "limit"}},
    {"/api/v1/job", &Job, "job", false,
     {"job", "tenant", "attempt", "at"}},
    {"/api/v1/communicator", &OneCommunicator, "job", false,
     {"job", "tenant", "attempt", "id", "offset", "limit"}},
    {"/api/v1/calls", &Calls, "job", false,
     {"job", "tenant", "attempt", "ranks", "limit"}},
    {"/api/v1/processes", &Processes, "job", false,
     {"job", "tenant", "attempt", "ranks", "host", "offset", "limit"}},
    {"/api/v1/incidents", &Incidents, "", false,
     {"job", "tenant", "attempt", "host", "cause", "signature", "grouped", "from", "until",
      "offset", "limit"}},
    {"/api/v1/incidents.csv", &IncidentsAsCsv, "", false,
     {"job", "tenant", "attempt", "host", "cause", "signature", "from", "until", "offset", "limit"},
     "", nullptr, nullptr, "text/csv; charset=utf-8"},
    {"/api/v1/questions", &Questions, "", false,
     {"by", "from", "until", "cause", "tenant", "job", "limit"}},
    {"/api/v1/incident", &OneIncident, "", false,
     {"id"}},
    {"/api/v1/stacks", &Stacks, "", true,
     {"job", "tenant", "attempt", "ranks", "host"}, "take stacks", &ObjectOfStacks},
    {"/api/v1/diagnose", &Diagnosed, "", true,
     {"job", "tenant"}, "diagnose", &ObjectOfLook},
    {"/api/v1/incident/note", nullptr, "", true,
     {"id", "text"}, "note", &ObjectOfNote, &Note},
    {"/api/v1/incident/acknowledge", nullptr, "", true,
     {"id", "take_back"}, "acknowledge", &ObjectOfAcknowledgement, &Acknowledge},
    {"/api/v1/silences", &ListSilences, "", false,
     {}},
    {"/api/v1/silence", nullptr, "", true,
     {"tenant", "job", "host", "cause", "for", "comment"}, "silence", &ObjectOfSilence,
     &AddSilence},
    {"/api/v1/silence/end", nullptr, "", true,
     {"id"}, "end silence", &ObjectOfEnd, &EndSilence},
};
// clang-format on

std::string QueryParameters::Get(const std::string& name) const {
  for (const auto& [known, value] : values_) {
    if (known == name) return CleanText(value);
  }
  return "";
}

std::vector<std::string> QueryParameters::All(const std::string& name) const {
  std::vector<std::string> all;
  for (const auto& [known, value] : values_) {
    if (known == name) all.push_back(CleanText(value));
  }
  return all;
}

absl::StatusOr<int> QueryParameters::Number(const std::string& name, int otherwise) const {
  const std::string text = Get(name);
  int number = otherwise;
  if (text.empty() || (absl::SimpleAtoi(text, &number) && number >= 0)) return number;
  return absl::InvalidArgumentError(absl::StrCat(name, " is a number from 0; not \"", text, "\""));
}

absl::Status QueryParameters::CheckText() const {
  for (const auto& [name, value] : values_) {
    if (IsUtf8(value) && IsUtf8(name)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(CleanText(name), " is not text in UTF-8: \"", CleanText(value), "\""));
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> QueryParameters::Flag(const std::string& name) const {
  const std::string text = Get(name);
  if (text.empty() || text == "0") return false;
  if (text == "1") return true;
  return absl::InvalidArgumentError(absl::StrCat(name, " is 1 or 0; not \"", text, "\""));
}

}  // namespace rollcall
