// SPDX-License-Identifier: Apache-2.0
// What each kind of receiver is told.
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

// Texts come from jobs; the library refuses what is no UTF-8, so broken bytes are replaced.
std::string Dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string Link(const AlertOptions& options, const v1::Incident& incident) {
  if (options.page.empty()) return "";
  const bool slash = options.page.back() == '/';
  return absl::StrCat(options.page, slash ? "" : "/", "#/incident/", EscapeUrl(incident.id()));
}

// The names that a template may use.
std::vector<std::pair<std::string, std::string>> Values(const AlertOptions& options,
                                                        const v1::Incident& incident,
                                                        bool resolved) {
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
  return {{"status", resolved ? "resolved" : "firing"},
          {"incident", incident.id()},
          {"job", incident.job()},
          {"state", incident.state()},
          {"cause", verdict.cause()},
          {"certainty", verdict.certainty()},
          {"summary", verdict.summary()},
          {"ranks", ranks},
          {"hosts", hosts},
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

std::string OfTemplate(const std::string& text,
                       const std::vector<std::pair<std::string, std::string>>& values) {
  std::vector<std::pair<std::string, std::string>> replacements;
  for (const auto& [name, value] : values) {
    // Within the quotes that the template has.
    const std::string quoted = Dump(Json(value));
    replacements.emplace_back(absl::StrCat("{{", name, "}}"), quoted.substr(1, quoted.size() - 2));
  }
  return absl::StrReplaceAll(text, replacements);
}

std::string ForSlack(const std::vector<std::pair<std::string, std::string>>& values,
                     bool resolved) {
  std::string text = resolved ? ":white_check_mark: over: " : ":rotating_light: ";
  // The three characters that mean something in Slack's texts.
  absl::StrAppend(&text, absl::StrReplaceAll(Value(values, "summary"),
                                             {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}}));
  const std::string link = Value(values, "link"), report = Value(values, "report");
  if (!link.empty()) absl::StrAppend(&text, "\n<", link, "|the incident>");
  if (!report.empty()) absl::StrAppend(&text, "\nreport: ", report);
  return Dump({{"text", text}});
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

// Alertmanager's API v2: a list of alerts.
std::string ForAlertmanager(const std::vector<std::pair<std::string, std::string>>& values,
                            const v1::Incident& incident, bool resolved) {
  Json alert = {{"labels",
                 {{"alertname", "RollcallHang"},
                  {"job", Value(values, "job")},
                  {"incident", Value(values, "incident")},
                  {"cause", Value(values, "cause")},
                  {"severity", "critical"}}},
                {"annotations",
                 {{"summary", Value(values, "summary")},
                  {"ranks", Value(values, "ranks")},
                  {"hosts", Value(values, "hosts")},
                  {"report", Value(values, "report")}}},
                {"startsAt", Rfc3339(incident.opened_at())}};
  if (resolved) alert["endsAt"] = Rfc3339(incident.closed_at());
  if (!Value(values, "link").empty()) alert["generatorURL"] = Value(values, "link");
  return Dump(Json::array({alert}));
}

}  // namespace

std::string AlertBody(const AlertTarget& target, const std::string& where,
                      const AlertOptions& options, const v1::Incident& incident, bool resolved) {
  const auto values = Values(options, incident, resolved);
  switch (target.kind) {
    case AlertKind::kSlack:
      return ForSlack(values, resolved);
    case AlertKind::kPagerDuty:
      return ForPagerDuty(where, values, resolved);
    case AlertKind::kAlertmanager:
      return ForAlertmanager(values, incident, resolved);
    case AlertKind::kJson:
    case AlertKind::kCommand:
      break;
  }
  if (!options.template_text.empty() && target.kind == AlertKind::kJson) {
    return OfTemplate(options.template_text, values);
  }
  Json body;
  for (const auto& [name, value] : values) body[name] = value;
  return Dump(body);
}

}  // namespace rollcall
