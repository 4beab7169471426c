// SPDX-License-Identifier: Apache-2.0
// The message that each kind of receiver gets.
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "daemon/report/escape.h"
#include "daemon/report/incident_words.h"
#include "daemon/server/alerts.h"

namespace rollcall {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMaxRanksNamed = 16;
// Slack refuses a field of more than 2,000 characters, and SlackText() makes up to five of one.
constexpr size_t kLongestSlackFact = 380;

// Replaces bytes that are not UTF-8: texts come from jobs, and the library throws on such bytes.
std::string Dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string Link(const AlertOptions& options, const v1::Incident& incident) {
  if (options.page.empty()) return "";
  const bool slash = options.page.back() == '/';
  return absl::StrCat(options.page, slash ? "" : "/", "#/incident/", EscapeUrl(incident.id()));
}

const char* Status(AlertEvent event) {
  switch (event) {
    case AlertEvent::kConfirmed:
      return "firing";
    case AlertEvent::kUpdated:
      return "updated";
    case AlertEvent::kResolved:
      return "resolved";
  }
  return "";
}

// The names that a template may use, with their values.
std::vector<std::pair<std::string, std::string>> Values(const AlertOptions& options,
                                                        const AlertMessage& message) {
  const v1::Incident& incident = message.incident;
  const v1::Verdict verdict = incident.verdicts().empty() ? v1::Verdict() : incident.verdicts(0);
  std::string hosts, ranks;
  for (int i = 0; i < verdict.culprits_size(); ++i) {
    if (static_cast<size_t>(i) == kMaxRanksNamed) {
      ranks += ", ...";
      break;
    }
    const v1::Culprit& culprit = verdict.culprits(i);
    absl::StrAppend(&ranks, i == 0 ? "" : ", ", culprit.rank());
    if (hosts.find(culprit.host()) == std::string::npos) {
      absl::StrAppend(&hosts, hosts.empty() ? "" : ", ", culprit.host());
    }
  }
  return {{"status", Status(message.event)},
          {"idempotency_key", AlertKey(message)},
          {"incident", incident.id()},
          {"job", incident.job()},
          {"tenant", incident.tenant()},
          {"attempt", absl::StrCat(incident.attempt())},
          {"state", incident.state()},
          {"cause", verdict.cause()},
          {"certainty", verdict.certainty()},
          {"summary", verdict.summary()},
          {"ranks", ranks},
          {"hosts", hosts},
          {"at", verdict.culprits().empty() ? "" : verdict.culprits(0).at()},
          {"advice", verdict.advice().empty() ? "" : verdict.advice(0).text()},
          {"opened_at", TimeInWords(incident.opened_at())},
          {"closed_at", TimeInWords(incident.closed_at())},
          {"report", incident.report_path()},
          {"link", Link(options, incident)}};
}

std::string Value(const std::vector<std::pair<std::string, std::string>>& values,
                  const std::string& name) {
  for (const auto& [known, value] : values) {
    if (known == name) return value;
  }
  return "";
}

std::string FillTemplate(const std::string& text,
                       const std::vector<std::pair<std::string, std::string>>& values) {
  std::vector<std::pair<std::string, std::string>> replacements;
  for (const auto& [name, value] : values) {
    // The template has the quotes already.
    const std::string quoted = Dump(Json(value));
    replacements.emplace_back(absl::StrCat("{{", name, "}}"), quoted.substr(1, quoted.size() - 2));
  }
  return absl::StrReplaceAll(text, replacements);
}

// What a receiver reads first. A job that was ended while it hung is not over well.
std::string Headline(const std::vector<std::pair<std::string, std::string>>& values,
                     AlertEvent event) {
  switch (event) {
    case AlertEvent::kConfirmed:
      return ":rotating_light: ";
    case AlertEvent::kUpdated:
      return ":rotating_light: a correction of the last message, updated: ";
    case AlertEvent::kResolved:
      break;
  }
  return Value(values, "state") == "resolved"
             ? ":white_check_mark: resolved, the job goes on: "
             : ":black_square_for_stop: the job ended while it hung: ";
}

// Slack gives these three characters a meaning.
std::string SlackText(const std::string& text) {
  return absl::StrReplaceAll(text, {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}});
}

Json SlackSection(const std::string& text) {
  return {{"type", "section"}, {"text", {{"type", "mrkdwn"}, {"text", text}}}};
}

// The facts that an on-call engineer needs before she opens the page: at most ten by Slack's rules.
Json SlackFacts(const std::vector<std::pair<std::string, std::string>>& values) {
  constexpr std::pair<const char*, const char*> kFacts[] = {
      {"Job", "job"},   {"Attempt", "attempt"}, {"Tenant", "tenant"}, {"Ranks", "ranks"},
      {"Hosts", "hosts"}, {"Line", "at"},       {"Certainty", "certainty"}};
  Json fields = Json::array();
  for (const auto& [title, name] : kFacts) {
    const std::string value = Value(values, name);
    if (value.empty() || (value == "0" && std::string(name) == "attempt")) continue;
    if (value == "default" && std::string(name) == "tenant") continue;
    fields.push_back(
        {{"type", "mrkdwn"},
         {"text", absl::StrCat("*", title, "*\n", SlackText(value.substr(0, kLongestSlackFact)))}});
  }
  return {{"type", "section"}, {"fields", fields}};
}

std::string ForSlack(const std::vector<std::pair<std::string, std::string>>& values,
                     AlertEvent event) {
  const std::string first = absl::StrCat(Headline(values, event), SlackText(Value(values, "summary")));
  Json blocks = Json::array({SlackSection(first), SlackFacts(values)});
  const std::string advice = Value(values, "advice");
  if (!advice.empty() && event != AlertEvent::kResolved) {
    blocks.push_back(SlackSection(SlackText(advice)));
  }
  const std::string link = Value(values, "link"), report = Value(values, "report");
  std::string places;
  if (!link.empty()) absl::StrAppend(&places, "<", link, "|the incident>");
  if (!report.empty()) absl::StrAppend(&places, places.empty() ? "" : "\n", "report: ", SlackText(report));
  if (!places.empty()) blocks.push_back(SlackSection(places));
  // Notifications and clients without blocks show the text alone.
  return Dump({{"text", absl::StrCat(first, places.empty() ? "" : "\n", places)},
               {"blocks", blocks}});
}

// PagerDuty's Events API v2.
std::string ForPagerDuty(const std::string& key,
                         const std::vector<std::pair<std::string, std::string>>& values,
                         bool resolved) {
  Json details;
  for (const auto& [name, value] : values) details[name] = value;
  Json body = {{"routing_key", key},
               {"event_action", resolved ? "resolve" : "trigger"},
               {"dedup_key", absl::StrCat("rollcall-", Value(values, "incident"))}};
  if (!resolved) {
    body["payload"] = {{"summary", Value(values, "summary").substr(0, 1024)},
                       {"source", absl::StrCat("rollcall ", Value(values, "job"))},
                       {"severity", "critical"},
                       {"class", Value(values, "cause")},
                       {"custom_details", details}};
  }
  return Dump(body);
}

std::string Rfc3339(const google::protobuf::Timestamp& time) {
  const std::string words = TimeInWords(time);  // "2026-11-20 19:30:00 UTC"
  return words.size() < 19 ? "" : words.substr(0, 10) + "T" + words.substr(11, 8) + "Z";
}

// Alertmanager's API v2: a list of alerts. It identifies an alert by its labels, so they are those of
// the first alert.
std::string ForAlertmanager(const std::vector<std::pair<std::string, std::string>>& values,
                            const AlertMessage& message) {
  Json alert = {{"labels",
                 {{"alertname", "RollcallHang"},
                  {"tenant", Value(values, "tenant")},
                  {"job", Value(values, "job")},
                  {"attempt", Value(values, "attempt")},
                  {"incident", Value(values, "incident")},
                  {"cause", message.first_cause},
                  {"severity", "critical"}}},
                {"annotations",
                 {{"cause", Value(values, "cause")},
                  {"idempotency_key", Value(values, "idempotency_key")},
                  {"summary", Value(values, "summary")},
                  {"ranks", Value(values, "ranks")},
                  {"hosts", Value(values, "hosts")},
                  {"at", Value(values, "at")},
                  {"advice", Value(values, "advice")},
                  {"state", Value(values, "state")},
                  {"report", Value(values, "report")}}},
                {"startsAt", Rfc3339(message.incident.opened_at())}};
  if (message.event == AlertEvent::kResolved) {
    alert["endsAt"] = Rfc3339(message.incident.closed_at());
  }
  if (!Value(values, "link").empty()) alert["generatorURL"] = Value(values, "link");
  return Dump(Json::array({alert}));
}

}  // namespace

std::string AlertBody(const AlertTarget& target, const std::string& where,
                      const AlertOptions& options, const AlertMessage& message) {
  const auto values = Values(options, message);
  switch (target.kind) {
    case AlertKind::kSlack:
      return ForSlack(values, message.event);
    case AlertKind::kPagerDuty:
      return ForPagerDuty(where, values, message.event == AlertEvent::kResolved);
    case AlertKind::kAlertmanager:
      return ForAlertmanager(values, message);
    case AlertKind::kJson:
    case AlertKind::kCommand:
      break;
  }
  if (!options.template_text.empty() && target.kind == AlertKind::kJson) {
    return FillTemplate(options.template_text, values);
  }
  Json body;
  for (const auto& [name, value] : values) body[name] = value;
  return Dump(body);
}

}  // namespace rollcall
