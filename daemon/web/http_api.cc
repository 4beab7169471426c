// SPDX-License-Identifier: Apache-2.0
#include "daemon/web/http_api.h"

#include <google/protobuf/util/json_util.h>

#include <algorithm>
#include <limits>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "base/clean_text.h"
#include "base/duration_flag.h"
#include "base/durations.h"
#include "base/utf8.h"
#include "daemon/queries/audit_words.h"
#include "daemon/queries/incident_csv.h"
#include "daemon/queries/query_source.h"
#include "daemon/report/trace.h"
#include "proto/timestamps.h"

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

absl::Status ParseTime(const std::string& name, const std::string& text,
                       google::protobuf::Timestamp* parsed) {
  absl::Time time;
  std::string problem;
  if (!absl::ParseTime(absl::RFC3339_full, text, &time, &problem)) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, " is a time like 2026-11-20T00:00:00Z; not \"", text, "\""));
  }
  *parsed = ToTimestamp(absl::ToUnixNanos(time));
  return absl::OkStatus();
}

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

// Ranks are the only numbers of which a request has many.
absl::Status SetMany(const QueryParameters& parameters, const FieldDescriptor& field,
                     Message* request) {
  const google::protobuf::Reflection& access = *request->GetReflection();
  if (field.cpp_type() == FieldDescriptor::CPPTYPE_STRING) {
    for (const std::string& value : parameters.All(field.name())) {
      access.AddString(request, &field, value);
    }
    return absl::OkStatus();
  }
  const auto ranks = ParseRanks(parameters.Get(field.name()));
  if (!ranks.ok()) return ranks.status();
  for (const int32_t rank : *ranks) access.AddInt32(request, &field, rank);
  return absl::OkStatus();
}

// Sets the field to the parameter of its name. A request without it leaves the field as it is.
absl::Status SetField(const QueryParameters& parameters, const FieldDescriptor& field,
                      Message* request) {
  const std::string& name = field.name();
  const std::string text = parameters.Get(name);
  if (text.empty()) return absl::OkStatus();
  if (field.is_repeated()) return SetMany(parameters, field, request);
  const google::protobuf::Reflection& access = *request->GetReflection();
  if (field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
    return ParseTime(name, text,
                     static_cast<google::protobuf::Timestamp*>(  // NOLINT(*-static-cast-downcast)
                         access.MutableMessage(request, &field)));
  }
  if (field.cpp_type() == FieldDescriptor::CPPTYPE_BOOL) {
    const absl::StatusOr<bool> flag = parameters.Flag(name);
    if (flag.ok()) access.SetBool(request, &field, *flag);
    return flag.status();
  }
  if (field.cpp_type() == FieldDescriptor::CPPTYPE_INT32) {
    const absl::StatusOr<int> number = parameters.Number(name, 0);
    if (number.ok()) access.SetInt32(request, &field, *number);
    return number.status();
  }
  access.SetString(request, &field, text);
  return absl::OkStatus();
}

// `names`: the fields that an address may set. The first error.
absl::Status SetFields(const QueryParameters& parameters, const std::vector<std::string>& names,
                       Message* request) {
  absl::Status status;
  for (const std::string& name : names) {
    const FieldDescriptor* const field = request->GetDescriptor()->FindFieldByName(name);
    if (field == nullptr) {
      return absl::InternalError(
          absl::StrCat(request->GetDescriptor()->name(), " has no field ", name));
    }
    status.Update(SetField(parameters, *field, request));
  }
  return status;
}

// Answers a query of questions.def whose fields are the parameters of the address.
template <auto kQuestion>
struct AnswerTo;
template <typename Request, typename Response,
          absl::StatusOr<Response> (QuerySource::*kQuestion)(const Request&) const>
struct AnswerTo<kQuestion> {
  static absl::StatusOr<std::string> Give(const ApiRoute& route, QuerySource* queries,
                                          const QueryParameters& parameters) {
    Request request;
    const absl::Status status = SetFields(parameters, route.parameters, &request);
    if (!status.ok()) return status;
    return ToJson((queries->*kQuestion)(request));
  }
};

// A list without communicators, which the page asks for every second.
absl::StatusOr<std::string> Jobs(const ApiRoute& route, QuerySource* queries,
                                 const QueryParameters& parameters) {
  v1::StatusRequest request;
  const absl::Status set = SetFields(parameters, route.parameters, &request);
  if (!set.ok()) return set;
  absl::StatusOr<v1::StatusResponse> status = queries->GetStatus(request);
  if (!status.ok()) return status.status();
  for (v1::JobStatus& job : *status->mutable_jobs()) job.clear_communicators();
  return ToJson(status);
}

absl::StatusOr<std::string> IncidentsAsCsv(const ApiRoute& route, QuerySource* queries,
                                           const QueryParameters& parameters) {
  v1::ListIncidentsRequest request;
  const absl::Status set = SetFields(parameters, route.parameters, &request);
  if (!set.ok()) return set;
  request.set_rows_only(true);
  const absl::StatusOr<v1::ListIncidentsResponse> list = queries->ListIncidents(request);
  if (!list.ok()) return list.status();
  // Lines have no place for the note: a part must not look like the whole.
  if (!list->note().empty()) return absl::UnavailableError(list->note());
  std::string csv = IncidentCsvHeader();
  for (const v1::Incident& incident : list->incidents()) csv += IncidentCsvLine(incident);
  return csv;
}

// The incident of the job that is open now; else an incident without an id, of that job.
absl::StatusOr<v1::Incident> OpenIncidentOf(const QuerySource& queries,
                                            const v1::CallsRequest& request) {
  v1::JobRequest of_job;
  of_job.set_job(request.job());
  of_job.set_tenant(request.tenant());
  if (request.has_attempt()) of_job.set_attempt(request.attempt());
  const absl::StatusOr<v1::JobView> view = queries.GetJob(of_job);
  if (!view.ok()) return view.status();
  v1::Incident job;
  job.set_job(request.job());
  job.set_tenant(view->status().tenant());
  job.set_attempt(view->status().attempt());
  if (view->incident().empty()) return job;
  v1::IncidentRequest of_incident;
  of_incident.set_id(view->incident());
  return queries.GetIncident(of_incident);
}

// The recorded calls between two moments, for viewers of traces.
absl::StatusOr<std::string> Trace(const ApiRoute& /*route*/, QuerySource* queries,
                                  const QueryParameters& parameters) {
  v1::CallsRequest request;
  absl::Status read =
      SetFields(parameters, {"job", "tenant", "attempt", "ranks", "limit"}, &request);
  const auto moment = [&](const char* name, double otherwise) {
    const std::string text = parameters.Get(name);
    google::protobuf::Timestamp time;
    if (text.empty()) return otherwise;
    read.Update(ParseTime(name, text, &time));
    return static_cast<double>(NsOf(time)) / static_cast<double>(kSecond);
  };
  const double from = moment("from", 0);
  const double until = moment("until", std::numeric_limits<double>::infinity());
  if (!read.ok()) return read;
  absl::StatusOr<v1::CallsResponse> calls = queries->GetCalls(request);
  if (!calls.ok()) return calls.status();
  const absl::StatusOr<v1::Incident> incident = OpenIncidentOf(*queries, request);
  if (!incident.ok()) return incident.status();
  const v1::CallsResponse shown = CallsBetween(*std::move(calls), from, until);
  if (CoverageOf(shown).calls == 0) {
    return absl::NotFoundError(
        "the daemon has no calls of these ranks between \"from\" and \"until\", or no longer: ask "
        "for newer ones");
  }
  return ToTrace(shown, false, *incident);
}

// Sets the fields of a request that acts.
absl::Status ReadRequest(const ApiRoute& route, const QueryParameters& parameters,
                         Message* request) {
  return SetFields(parameters, route.parameters, request);
}

absl::Status ReadRequest(const ApiRoute& /*route*/, const QueryParameters& parameters,
                         v1::TakeStacksRequest* request) {
  absl::Status status = SetFields(parameters, {"job", "tenant", "attempt", "ranks"}, request);
  for (const std::string& host : parameters.All("host")) request->add_hosts(host);
  if (status.ok() && (request->ranks().empty() || request->ranks_size() > kMostStacksAtOnce)) {
    status = absl::InvalidArgumentError(
        absl::StrCat("request 1 to ", kMostStacksAtOnce, " ranks: ranks=0,3-5"));
  }
  return status;
}

absl::Status ReadRequest(const ApiRoute& route, const QueryParameters& parameters,
                         v1::IncidentActionRequest* request) {
  const absl::StatusOr<bool> takes_back = parameters.Flag("take_back");
  if (!takes_back.ok()) return takes_back.status();
  request->set_action(*takes_back ? "take back" : route.action);
  return SetFields(parameters, {"id", "text"}, request);
}

absl::Status ReadRequest(const ApiRoute& /*route*/, const QueryParameters& parameters,
                         v1::AddSilenceRequest* request) {
  absl::Status status = SetFields(parameters, {"tenant", "job", "host", "cause", "comment"},
                                  request->mutable_silence());
  const std::string length = parameters.Get("for");
  const std::string problem = CheckDuration(length);
  if (!problem.empty()) status.Update(absl::InvalidArgumentError(absl::StrCat("for: ", problem)));
  if (status.ok()) request->set_seconds(DurationNs(length) / kSecond);
  return status;
}

// Reads the request, writes the audit, and asks.
template <typename Request, typename Ask>
absl::StatusOr<std::string> ActWith(const ApiRoute& route, QuerySource* queries,
                                    const QueryParameters& parameters, const ApiOperator& caller,
                                    const Ask& ask) {
  Request request;
  const absl::Status read = ReadRequest(route, parameters, &request);
  if (!read.ok()) {
    caller.audit(route.action, absl::StrCat("none: ", std::string(read.message())));
    return read;
  }
  const auto [action, object] = InWords(*queries, request);
  caller.audit(action, object);
  return ToJson(ask(request));
}

absl::StatusOr<std::string> TakeStacksAtOnce(const ApiRoute& route, QuerySource* queries,
                                             const QueryParameters& parameters,
                                             const ApiOperator& caller) {
  return ActWith<v1::TakeStacksRequest>(
      route, queries, parameters, caller,
      [queries](const auto& request) { return queries->GetStacks(request); });
}

absl::StatusOr<std::string> LookAtJobAtOnce(const ApiRoute& route, QuerySource* queries,
                                            const QueryParameters& parameters,
                                            const ApiOperator& caller) {
  return ActWith<v1::LookRequest>(
      route, queries, parameters, caller,
      [queries](const auto& request) { return queries->Diagnose(request); });
}

// An action of questions.def.
template <auto kAction>
struct ActOf;
template <typename Request, typename Response,
          absl::StatusOr<Response> (QuerySource::*kAction)(const Request&, const std::string&)>
struct ActOf<kAction> {
  static absl::StatusOr<std::string> Do(const ApiRoute& route, QuerySource* queries,
                                        const QueryParameters& parameters,
                                        const ApiOperator& caller) {
    return ActWith<Request>(route, queries, parameters, caller, [&](const Request& request) {
      return (queries->*kAction)(request, caller.name);
    });
  }
};

std::vector<std::string> Words(const char* text) {
  return absl::StrSplit(text, ' ', absl::SkipEmpty());
}

std::vector<ApiRoute> MakeApiRoutes() {
  // clang-format off
  std::vector<ApiRoute> routes = {
      {"/api/v1/jobs", &Jobs, "", Words("host offset limit")},
      {"/api/v1/trace", &Trace, "job", Words("job tenant attempt ranks limit from until")},
      {"/api/v1/incidents.csv", &IncidentsAsCsv, "",
       Words("job tenant attempt host cause signature from until offset limit"),
       "text/csv; charset=utf-8"},
      {"/api/v1/incident/note", nullptr, "", Words("id text"),
       kJsonType, "note", &ActOf<&QuerySource::ActOnIncident>::Do},
      {"/api/v1/incident/acknowledge", nullptr, "", Words("id take_back"),
       kJsonType, "acknowledge", &ActOf<&QuerySource::ActOnIncident>::Do},
#define QUESTION(name, Request, Response, who, path, topic, fields) \
      {path, &AnswerTo<&QuerySource::name>::Give, topic, Words(fields)},
#define ACT(name, Request, Response, words, path, fields) \
      {path, nullptr, "", Words(fields), kJsonType, words, &ActOf<&QuerySource::name>::Do},
#define ACT_IN_PARTS(name, words, path, fields) \
      {path, nullptr, "", Words(fields), kJsonType, words, &name##AtOnce},
#include "daemon/access/questions.def"
  };
  // clang-format on
  const auto has_no_path = [](const ApiRoute& route) { return *route.path == '\0'; };
  routes.erase(std::remove_if(routes.begin(), routes.end(), has_no_path), routes.end());
  return routes;
}

}  // namespace

absl::StatusOr<v1::JobStatus> FindJobStatus(QuerySource* queries,
                                            const QueryParameters& parameters) {
  v1::StatusRequest request;
  const absl::Status set = SetFields(parameters, {"job", "tenant", "attempt"}, &request);
  if (!set.ok()) return set;
  request.set_without_communicators(true);
  absl::StatusOr<v1::StatusResponse> found = queries->GetStatus(request);
  if (!found.ok()) return found.status();
  if (!found->jobs().empty()) return std::move(*found->mutable_jobs(0));
  v1::JobRequest same;
  (void)SetFields(parameters, {"job", "tenant", "attempt"}, &same);
  const auto view = queries->GetJob(same);  // its error lists the jobs
  if (!view.ok()) return view.status();
  return view->status();
}

const std::vector<ApiRoute> kApiRoutes = MakeApiRoutes();

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
