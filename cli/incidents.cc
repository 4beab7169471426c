// SPDX-License-Identifier: Apache-2.0
// rollcall incidents: lists the incidents of a daemon, newest first.
#include <CLI/CLI.hpp>
#include <iostream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "cli/commands.h"
#include "cli/query.h"
#include "daemon/model/job_key.h"
#include "daemon/report/incident_words.h"
#include "daemon/server/clean_message.h"

namespace rollcall {
namespace {

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

void PrintNames(const char* title,
                const google::protobuf::RepeatedPtrField<v1::Recurring>& names) {
  if (!names.empty()) std::cout << "    " << title << NamesInWords(names) << "\n";
}

void PrintGroups(const v1::ListIncidentsResponse& response) {
  for (const v1::IncidentGroup& group : response.groups()) {
    const bool is_default = group.tenant().empty() || group.tenant() == kDefaultTenant;
    std::cout << group.signature() << (is_default ? "" : absl::StrCat("  (", group.tenant(), ")"))
              << "\n    " << group.sentence() << "; first " << TimeInWords(group.first())
              << ", last " << TimeInWords(group.last()) << "\n";
    PrintNames("hosts: ", group.hosts());
    PrintNames("ranks: ", group.ranks());
    PrintNames("jobs:  ", group.jobs());
    std::cout << "    newest: " << group.newest() << ": " << group.summary() << "\n";
  }
  if (response.groups().empty()) std::cout << "no confirmed incidents\n";
  if (response.total() > response.groups_size()) {
    std::cout << response.groups_size() << " of " << response.total()
              << " groups; more:  rollcall incidents --group --limit=N --offset=N\n";
  }
}

void Print(const v1::ListIncidentsResponse& response) {
  for (const v1::Incident& incident : response.incidents()) {
    const v1::Verdict verdict = incident.verdicts().empty() ? v1::Verdict() : incident.verdicts(0);
    std::cout << absl::StrFormat("%s  %-10s %-20s %s\n    %s\n",
                                 TimeInWords(incident.opened_at()), incident.state(),
                                 verdict.cause(), incident.id(), verdict.summary());
  }
  for (const v1::Repeated& repeated : response.repeated()) {
    std::cout << "repeated: "
              << (repeated.host().empty()
                      ? absl::StrCat("rank ", repeated.rank(), " of ", JobOf(repeated))
                      : absl::StrCat("host ", repeated.host()))
              << " was at fault in " << repeated.incidents() << " of these incidents\n";
  }
  if (!response.note().empty()) std::cout << "note: " << response.note() << "\n";
  if (response.incidents().empty()) std::cout << "no incidents\n";
  if (response.total() > response.incidents_size()) {
    std::cout << response.incidents_size() << " of " << response.total()
              << "; more:  --limit=N --offset=N\n";
  }
}

}  // namespace

int IncidentsCommand(const std::vector<std::string>& arguments) {
  QueryFlags flags;
  std::string job, host, cause, signature, from, until;
  bool grouped = false;
  int limit = 20, offset = 0;
  CLI::App app("Lists incidents, newest first.", "rollcall incidents");
  AddQueryFlags(&app, &flags);
  app.add_option("--host", host, "only incidents with a culprit on this host");
  app.add_option("--cause", cause, "only this cause: missing_rank, rank_died, ...");
  app.add_option("--signature", signature, "only incidents of this signature, as --group prints it");
  app.add_flag("--group", grouped,
               "group hangs with the same signature: how often, which hosts, ranks and jobs");
  app.add_option("--from", from,
                 "only incidents opened at or after this time: 2026-11-20 or 2026-11-20T13:00:00Z")
      ->check(CLI::Validator(CheckMoment, "TIME"));
  app.add_option("--until", until, "only incidents opened at or before this time")
      ->check(CLI::Validator(CheckMoment, "TIME"));
  app.add_option("--limit", limit, "number of incidents, or groups (at most 50), to print")
      ->capture_default_str()
      ->check(CLI::Range(1, 1000));
  app.add_option("--offset", offset, "number of incidents, or groups, to skip")->check(CLI::NonNegativeNumber);
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
  if (!until.empty()) SetMoment(until, request.mutable_until());
  v1::ListIncidentsResponse response;
  const bool answered = DaemonQuery(flags.daemon).Ask("incidents", [&](auto* stub, auto* context) {
    return stub->ListIncidents(context, request, &response);
  });
  if (!answered) return 1;
  CleanStrings(&response);
  if (flags.format == "json") {
    PrintJson(response);
  } else if (grouped) {
    PrintGroups(response);
  } else {
    Print(response);
  }
  return 0;
}

}  // namespace rollcall
