// SPDX-License-Identifier: Apache-2.0
// The message that each kind of receiver gets.
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "daemon/alerts/alert_messages.h"
#include "daemon/alerts/alerts.h"
#include "daemon/report/incident_words.h"

namespace rollcall {
namespace {

using Json = nlohmann::ordered_json;

// Slack refuses a field of more than 2,000 characters, and SlackText() makes up to five of one.
constexpr size_t kLongestSlackFact = 380;

std::string FillTemplate(const std::string& text, const AlertValues& values) {
  std::vector<std::pair<std::string, std::string>> replacements;
  for (const auto& [name, value] : values) {
    // The template has the quotes already.
    const std::string quoted = DumpJson(Json(value));
    replacements.emplace_back(absl::StrCat("{{", name, "}}"), quoted.substr(1, quoted.size() - 2));
  }
  return absl::StrReplaceAll(text, replacements);
}

const char* SlackSign(const AlertValues& values, AlertEvent event) {
  if (event == AlertEvent::kAcknowledged) return ":eyes: ";
  if (event == AlertEvent::kReminder) return ":alarm_clock: ";
  if (event != AlertEvent::kResolved) return ":rotating_light: ";
  return ValueOf(values, "state") == "resolved" ? ":white_check_mark: "
                                                : ":black_square_for_stop: ";
}

// Whether the message asks somebody to act.
bool IsCall(AlertEvent event) {
  return event != AlertEvent::kResolved && event != AlertEvent::kAcknowledged;
}

// Slack gives these three characters a meaning.
std::string SlackText(const std::string& text) {
  return absl::StrReplaceAll(text, {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}});
}

Json SlackSection(const std::string& text) {
  return {{"type", "section"}, {"text", {{"type", "mrkdwn"}, {"text", text}}}};
}

// The facts that an on-call engineer needs before she opens the page: at most ten by Slack's rules.
Json SlackFacts(const AlertValues& values) {
  Json fields = Json::array();
  for (const auto& [title, value] : FactsInWords(values, kLongestSlackFact)) {
    fields.push_back(
        {{"type", "mrkdwn"}, {"text", absl::StrCat("*", title, "*\n", SlackText(value))}});
  }
  return {{"type", "section"}, {"fields", fields}};
}

std::string ForSlack(const AlertValues& values, AlertEvent event) {
  const std::string first =
      absl::StrCat(SlackSign(values, event), SlackText(ValueOf(values, "headline")));
  Json blocks = Json::array({SlackSection(first)});
  if (event != AlertEvent::kAcknowledged) blocks.push_back(SlackFacts(values));
  const std::string advice = ValueOf(values, "advice");
  if (!advice.empty() && IsCall(event)) blocks.push_back(SlackSection(SlackText(advice)));
  const std::string report = ValueOf(values, "report");
  std::string places;
  for (const auto& [title, link] : LinksInWords(values, event)) {
    absl::StrAppend(&places, places.empty() ? "" : "  ", "<", link, "|", title, ">");
  }
  if (!report.empty())
    absl::StrAppend(&places, places.empty() ? "" : "\n", "report: ", SlackText(report));
  if (!places.empty()) blocks.push_back(SlackSection(places));
  // Notifications and clients without blocks show the text alone.
  return DumpJson(
      {{"text", absl::StrCat(first, places.empty() ? "" : "\n", places)}, {"blocks", blocks}});
}

const char* PagerDutyAction(const AlertMessage& message) {
  if (message.event == AlertEvent::kResolved) return "resolve";
  const bool is_taken = message.event == AlertEvent::kAcknowledged;
  return is_taken && message.incident.has_acknowledged() ? "acknowledge" : "trigger";
}

Json PagerDutyLinks(const AlertValues& values, AlertEvent event) {
  Json links = Json::array();
  for (const auto& [title, link] : LinksInWords(values, event)) {
    links.push_back({{"href", link}, {"text", title}});
  }
  return links;
}

// PagerDuty's Events API v2. A trigger with a known key is not a second call.
std::string ForPagerDuty(const std::string& key, const AlertValues& values,
                         const AlertMessage& message) {
  const std::string action = PagerDutyAction(message);
  Json body = {{"routing_key", key},
               {"event_action", action},
               {"dedup_key", absl::StrCat("rollcall-", ValueOf(values, "incident"))}};
  if (action != "trigger") return DumpJson(body);
  body["payload"] = {{"summary", OneLine(ValueOf(values, "headline"), 1024)},
                     {"source", absl::StrCat("rollcall ", ValueOf(values, "job"))},
                     {"severity", "critical"},
                     {"class", ValueOf(values, "cause")},
                     {"custom_details", JsonOf(values)}};
  body["links"] = PagerDutyLinks(values, message.event);
  return DumpJson(body);
}

// Alertmanager's API v2: a list of alerts. It identifies an alert by its labels, so they are those
// of the first alert.
std::string ForAlertmanager(const AlertValues& values, const AlertMessage& message) {
  Json alert = {{"labels",
                 {{"alertname", "RollcallHang"},
                  {"tenant", ValueOf(values, "tenant")},
                  {"job", ValueOf(values, "job")},
                  {"attempt", ValueOf(values, "attempt")},
                  {"incident", ValueOf(values, "incident")},
                  {"cause", message.first_cause},
                  {"severity", "critical"}}},
                {"annotations",
                 {{"cause", ValueOf(values, "cause")},
                  {"idempotency_key", ValueOf(values, "idempotency_key")},
                  {"headline", ValueOf(values, "headline")},
                  {"summary", ValueOf(values, "summary")},
                  {"runbook_url", ValueOf(values, "runbook")},
                  {"acknowledged_by", ValueOf(values, "acknowledged_by")},
                  {"ranks", ValueOf(values, "ranks")},
                  {"hosts", ValueOf(values, "hosts")},
                  {"at", ValueOf(values, "at")},
                  {"advice", ValueOf(values, "advice")},
                  {"state", ValueOf(values, "state")},
                  {"report", ValueOf(values, "report")}}},
                {"startsAt", Rfc3339(message.incident.opened_at())}};
  if (message.event == AlertEvent::kResolved) {
    alert["endsAt"] = Rfc3339(message.incident.closed_at());
  }
  if (!ValueOf(values, "link").empty()) alert["generatorURL"] = ValueOf(values, "link");
  return DumpJson(Json::array({alert}));
}

// The authority of the API server is in the folder of a pod's token.
std::string AuthorityBeside(const std::string& where) {
  const size_t folder = where.rfind('/');
  if (where.empty() || where[0] != '@' || folder == std::string::npos) return "";
  const std::string file = absl::StrCat(where.substr(1, folder), "ca.crt");
  return access(file.c_str(), R_OK) == 0 ? file : "";
}

}  // namespace

std::string AlertBody(const AlertTarget& target, const std::string& where,
                      const AlertOptions& options, const AlertMessage& message) {
  const AlertValues values = ValuesOf(options, message);
  switch (target.kind) {
    case AlertKind::kSlack:
      return ForSlack(values, message.event);
    case AlertKind::kTeams:
      return TeamsMessage(values, message.event);
    case AlertKind::kEmail:
      return AlertMail(where, options.mail_from, values, message);
    case AlertKind::kPagerDuty:
      return ForPagerDuty(where, values, message);
    case AlertKind::kAlertmanager:
      return ForAlertmanager(values, message);
    case AlertKind::kOpsgenie:  // these have a body for each of their requests
    case AlertKind::kKubernetes:
    case AlertKind::kCloudEvents:  // and these a type of their own
    case AlertKind::kKafka:
    case AlertKind::kJson:
    case AlertKind::kCommand:
      break;
  }
  if (!options.template_text.empty() && target.kind == AlertKind::kJson) {
    return FillTemplate(options.template_text, values);
  }
  return DumpJson(JsonOf(values));
}

namespace {

AlertRequest OneRequest(const AlertTarget& target, const std::string& service,
                        const std::string& where, const AlertOptions& options,
                        const AlertMessage& message) {
  if (target.kind == AlertKind::kCloudEvents) {
    return CloudEventRequest(where, ValuesOf(options, message), message);
  }
  if (target.kind == AlertKind::kKafka) {
    return KafkaRequest(where, ValuesOf(options, message), message);
  }
  AlertRequest request;
  request.url = service.empty() ? where : service;
  request.body = AlertBody(target, where, options, message);
  return request;
}

}  // namespace

absl::StatusOr<std::vector<AlertRequest>> AlertRequests(const AlertTarget& target,
                                                        const std::string& where,
                                                        const AlertOptions& options,
                                                        const AlertMessage& message) {
  const std::string service = target.url.empty() ? FactsOf(target.kind).url : target.url;
  if (target.kind == AlertKind::kOpsgenie) {
    return OpsgenieRequests(service, where, ValuesOf(options, message), message.event);
  }
  if (target.kind == AlertKind::kKubernetes) {
    auto requests = KubernetesRequests(service, where, ValuesOf(options, message), message);
    if (!requests.ok()) return requests;
    for (AlertRequest& request : *requests) request.ca_file = AuthorityBeside(target.where);
    return requests;
  }
  return std::vector<AlertRequest>{OneRequest(target, service, where, options, message)};
}

}  // namespace rollcall
