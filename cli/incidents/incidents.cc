// SPDX-License-Identifier: Apache-2.0
// rollcall incidents: lists the incidents of a daemon, newest first.
#include <CLI/CLI.hpp>
#include <iostream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/clean_text.h"
#include "cli/commands.h"
#include "cli/incidents/incident_counts.h"
#include "cli/incidents/incident_export.h"
#include "cli/query.h"
#include "cli/usage.h"
#include "daemon/access/clean_message.h"
#include "daemon/model/job_key.h"
#include "daemon/report/incident_words.h"
#include "proto/timestamps.h"

namespace rollcall {
namespace {

constexpr int kMostGroups = 50;  // the daemon's limit of an answer

// "2026-11-20" or "2026-11-20T13:00:00Z".
bool ParseMoment(const std::string& text, absl::Time* time) {
  std::string problem;
  return absl::ParseTime("%Y-%m-%d", text, time, &problem) ||
         absl::ParseTime(absl::RFC3339_full, text, time, &problem);
}

std::string CheckMoment(const std::string& text) {
  absl::Time time;
  return ParseMoment(text, &time) ? ""
                                  : text + " is not a time like 2026-11-20 or 2026-11-20T13:00:00Z";
}

void SetMoment(const std::string& text, google::protobuf::Timestamp* moment) {
  absl::Time time;
  ParseMoment(text, &time);
  moment->set_seconds(absl::ToUnixSeconds(time));
}

// "train", or "lab/train" of another tenant than the default one.
std::string JobOf(const v1::Repeated& repeated) {
  const bool has_tenant = !repeated.tenant().empty();  // an older daemon names none
  return ToText(JobId{has_tenant ? repeated.tenant() : kDefaultTenant, repeated.job()});
}

// "node-17 4, node-3 1"
std::string NamesInWords(const google::protobuf::RepeatedPtrField<v1::Recurring>& names) {
  return absl::StrJoin(names, ", ", [](std::string* text, const v1::Recurring& name) {
    absl::StrAppend(text, name.name(), " ", name.hangs());
  });
}

void PrintNames(const char* title, const google::protobuf::RepeatedPtrField<v1::Recurring>& names) {
  if (!names.empty()) std::cout << "    " << title << NamesInWords(names) << "\n";
}

// "no incidents of job "train" of cause rank_died": of what there are none.
std::string NoneInWords(const char* what, const v1::ListIncidentsRequest& request) {
  std::string words = absl::StrCat("no ", what);
  const auto add = [&words](const char* before, const std::string& name, const char* after = "") {
    if (!name.empty()) absl::StrAppend(&words, before, CleanText(name), after);
  };
  add(" of job \"", request.job(), "\"");
  if (request.has_attempt()) absl::StrAppend(&words, " of attempt ", request.attempt());
  add(" of tenant ", request.tenant());
  add(" with a culprit on host \"", request.host(), "\"");
  add(" of cause ", request.cause());
  add(" of signature ", request.signature());
  if (request.has_from() || request.has_until()) words += " in that time";
  return words;
}

// "1400.0 rank-hours", "29 rank-seconds"
std::string CostInWords(double rank_seconds) {
  constexpr double kHour = 3600;
  return rank_seconds < kHour / 2 ? absl::StrFormat("%.0f rank-seconds", rank_seconds)
                                  : absl::StrFormat("%.1f rank-hours", rank_seconds / kHour);
}

void PrintGroups(const v1::ListIncidentsRequest& request,
                 const v1::ListIncidentsResponse& response) {
  for (const v1::IncidentGroup& group : response.groups()) {
    const bool is_default = group.tenant().empty() || group.tenant() == kDefaultTenant;
    std::cout << group.signature() << (is_default ? "" : absl::StrCat("  (", group.tenant(), ")"))
              << "\n    " << group.sentence() << "; first " << TimeInWords(group.first())
              << ", last " << TimeInWords(group.last()) << "\n";
    if (group.lost_rank_seconds() > 0) {
      std::cout << "    " << CostInWords(group.lost_rank_seconds()) << "\n";
    }
    PrintNames("hosts: ", group.hosts());
    PrintNames("ranks: ", group.ranks());
    PrintNames("jobs:  ", group.jobs());
    std::cout << "    newest: " << group.newest() << ": " << group.summary() << "\n";
  }
  if (response.groups().empty() && response.total() == 0) {
    std::cout << NoneInWords("confirmed incidents", request) << "\n";
  }
  if (response.total() > response.groups_size()) {
    std::cout << response.groups_size() << " of " << response.total()
              << " groups; more:  rollcall incidents --group --limit=N --offset=N\n";
  }
}

// "1400.0 rank-hours so far; 2nd time in 1 min, same rank and line; acknowledged by NAME"
std::string MoreInWords(const v1::Incident& incident) {
  std::vector<std::string> parts;
  if (incident.lost_rank_seconds() > 0) {
    parts.push_back(CostInWords(incident.lost_rank_seconds()) +
                    (incident.has_closed_at() ? "" : " so far"));
  }
  if (!incident.repeat().sentence().empty()) parts.push_back(incident.repeat().sentence());
  if (incident.has_went_on_in()) {
    parts.push_back(absl::StrCat("the job went on in attempt ", incident.went_on_in()));
  }
  if (incident.has_acknowledged()) {
    parts.push_back(absl::StrCat("acknowledged by ", incident.acknowledged().who()));
  }
  return absl::StrJoin(parts, "; ");
}

void PrintIncidents(const v1::ListIncidentsRequest& request,
                    const v1::ListIncidentsResponse& response) {
  for (const v1::Incident& incident : response.incidents()) {
    const v1::Verdict verdict = incident.verdicts().empty() ? v1::Verdict() : incident.verdicts(0);
    std::cout << absl::StrFormat("%s  %-10s %-20s %s\n    %s\n", TimeInWords(incident.opened_at()),
                                 incident.state(), verdict.cause(), incident.id(),
                                 verdict.summary());
    const std::string more = MoreInWords(incident);
    if (!more.empty()) std::cout << "    " << more << "\n";
  }
  for (const v1::Repeated& repeated : response.repeated()) {
    std::cout << "repeated: "
              << (repeated.host().empty()
                      ? absl::StrCat("rank ", repeated.rank(), " of ", JobOf(repeated))
                      : absl::StrCat("host ", repeated.host()))
              << " was at fault in " << repeated.incidents() << " of these incidents\n";
  }
  if (!response.note().empty()) std::cout << "note: " << response.note() << "\n";
  if (response.incidents().empty() && response.total() == 0) {
    std::cout << NoneInWords("incidents", request) << "\n";
  }
  if (response.total() > response.incidents_size()) {
    std::cout << response.incidents_size() << " of " << response.total()
              << "; more:  --limit=N --offset=N\n";
  }
}

// 0 if there is such a job, now or in the history. Else prints the error, as rollcall status does,
// and returns the exit code.
int FindJob(const v1::ListIncidentsRequest& request, DaemonQuery* query) {
  v1::ListIncidentsRequest any;
  any.set_job(request.job());
  any.set_tenant(request.tenant());
  if (request.has_attempt()) any.set_attempt(request.attempt());
  any.set_limit(1);
  v1::ListIncidentsResponse kept;
  const bool answered = query->Ask("incidents", [&](auto* stub, auto* context) {
    return stub->ListIncidents(context, any, &kept);
  });
  if (!answered) return query->exit_code();
  if (kept.total() > 0) return 0;
  v1::JobRequest wanted;
  wanted.set_job(request.job());
  wanted.set_tenant(request.tenant());
  if (request.has_attempt()) wanted.set_attempt(request.attempt());
  v1::JobView view;
  const bool found = query->Ask(
      "incidents", [&](auto* stub, auto* context) { return stub->GetJob(context, wanted, &view); });
  return found ? 0 : query->exit_code();
}

// Why flags do not go together; empty if they do.
std::string FindClash(const CLI::App& app, const std::string& format) {
  const auto has = [&app](const char* flag) { return app.count(flag) > 0; };
  if (has("--since") && has("--from")) return "--since and --from are two beginnings: give one";
  if (has("--by")) {
    for (const char* flag : {"--group", "--host", "--signature", "--attempt", "--offset"}) {
      if (has(flag))
        return absl::StrCat("--by counts all incidents of a time, cause, tenant and job: without ",
                            flag);
    }
    if (format == "csv") return "--by prints text or json; csv is for the list of incidents";
  }
  if (format != "csv") return "";
  for (const char* flag : {"--group", "--limit", "--offset"}) {
    if (has(flag)) return absl::StrCat("--format=csv prints the whole list: without ", flag);
  }
  return "";
}

v1::CountIncidentsRequest CountsRequest(const std::string& by,
                                        const v1::ListIncidentsRequest& list) {
  v1::CountIncidentsRequest request;
  request.set_by(by);
  request.set_job(list.job());
  request.set_tenant(list.tenant());
  request.set_cause(list.cause());
  request.set_limit(list.limit());
  if (list.has_from()) *request.mutable_from() = list.from();
  if (list.has_until()) *request.mutable_until() = list.until();
  return request;
}

}  // namespace

int IncidentsCommand(const std::vector<std::string>& arguments) {
  QueryFlags flags;
  std::string job, host, cause, signature, from, until, since, by;
  bool grouped = false;
  int limit = 20, offset = 0;
  CLI::App app("Lists incidents, newest first.", "rollcall incidents");
  AddQueryFlags(&app, &flags, Formats::kAlsoCsv);
  app.add_option("--host", host, "only incidents with a culprit on this host");
  AddCauseFlag(&app, &cause, "only this cause: missing_rank, rank_died, ...");
  app.add_option("--signature", signature,
                 "only incidents of this signature, as --group prints it");
  app.add_flag("--group", grouped,
               "group hangs with the same signature: how often, which hosts, ranks and jobs");
  app.add_option("--by", by,
                 "count confirmed incidents by host, gpu, label:NAME, user, framework, call_site, "
                 "cause, tenant or job: what comes back, and the time lost");
  app.add_option("--since", since, "only incidents opened in the time up to now: 30d, 12h")
      ->check(CLI::Validator(
          [](const std::string& text) {
            return SinceSeconds(text) > 0 ? "" : text + " is not a time like 30d or 12h";
          },
          "TIME"));
  app.add_option("--from", from,
                 "only incidents opened at or after this time: 2026-11-20 or 2026-11-20T13:00:00Z")
      ->check(CLI::Validator(CheckMoment, "TIME"));
  app.add_option("--until", until, "only incidents opened at or before this time")
      ->check(CLI::Validator(CheckMoment, "TIME"));
  app.add_option("--limit", limit, "number of incidents, or groups (at most 50), to print")
      ->capture_default_str()
      ->check(CLI::Range(1, 1000));
  app.add_option("--offset", offset, "number of incidents, or groups, to skip")
      ->check(CLI::NonNegativeNumber);
  JobFlags chosen;
  AddJobFlags(&app, &chosen, "all");
  app.add_option("JOB", job, "only incidents of this job");
  int exit_code = 0;
  if (!ParseFlags(&app, arguments, &exit_code)) return exit_code;
  v1::ListIncidentsRequest request;
  SetJob(job, chosen, &request);
  request.set_host(host);
  request.set_cause(cause);
  request.set_signature(signature);
  request.set_grouped(grouped);
  request.set_limit(limit);
  request.set_offset(offset);
  if (!from.empty()) SetMoment(from, request.mutable_from());
  if (!since.empty()) {
    *request.mutable_from() =
        ToTimestamp(absl::ToUnixNanos(absl::Now() - absl::Seconds(SinceSeconds(since))));
  }
  if (!until.empty()) SetMoment(until, request.mutable_until());
  if (grouped && limit > kMostGroups) {
    return RefuseUsage(app, absl::StrCat("--group prints at most ", kMostGroups,
                                         " groups at once: --limit=", kMostGroups, " --offset=N"));
  }
  if (!from.empty() && !until.empty() && request.from().seconds() > request.until().seconds()) {
    return RefuseUsage(app, "--until is before --from, so no time lies between them");
  }
  const std::string clash = FindClash(app, flags.format);
  if (!clash.empty()) return RefuseUsage(app, clash);
  v1::ListIncidentsResponse response;
  DaemonQuery query(flags.daemon);
  if (!by.empty()) return PrintIncidentCounts(CountsRequest(by, request), flags.format, &query);
  if (flags.format == "csv") return ExportIncidents(request, &query);
  const bool answered = query.Ask("incidents", [&](auto* stub, auto* context) {
    return stub->ListIncidents(context, request, &response);
  });
  if (!answered) return query.exit_code();
  if (!request.job().empty() && response.total() == 0) {
    exit_code = FindJob(request, &query);
    if (exit_code != 0) return exit_code;
  }
  CleanStrings(&response);
  if (flags.format == "json") {
    PrintJson(response);
  } else if (grouped) {
    PrintGroups(request, response);
  } else {
    PrintIncidents(request, response);
  }
  return 0;
}

}  // namespace rollcall
