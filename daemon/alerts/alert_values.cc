// SPDX-License-Identifier: Apache-2.0
#include "daemon/alerts/alert_values.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/cut_text.h"
#include "daemon/report/escape.h"
#include "daemon/report/incident_words.h"

namespace rollcall {
namespace {

constexpr size_t kMaxRanksNamed = 16;

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
    case AlertEvent::kAnnotated:
      return "annotated";
    case AlertEvent::kResolved:
      return "resolved";
  }
  return "";
}

}  // namespace

AlertValues ValuesOf(const AlertOptions& options, const AlertMessage& message) {
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
  const bool is_first = message.event == AlertEvent::kConfirmed;
  return {{"status", Status(message.event)},
          {"idempotency_key", AlertKey(message)},
          {"first", is_first ? "" : absl::StrCat(incident.id(), "/", message.first_sequence)},
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

std::string ValueOf(const AlertValues& values, const std::string& name) {
  for (const auto& [known, value] : values) {
    if (known == name) return value;
  }
  return "";
}

AlertValues FactsInWords(const AlertValues& values, size_t most) {
  constexpr std::pair<const char*, const char*> kFacts[] = {
      {"Job", "job"},     {"Attempt", "attempt"}, {"Tenant", "tenant"},      {"Ranks", "ranks"},
      {"Hosts", "hosts"}, {"Line", "at"},         {"Certainty", "certainty"}};
  AlertValues facts;
  for (const auto& [title, name] : kFacts) {
    const std::string value = OneLine(ValueOf(values, name), most);
    if (value.empty() || (value == "0" && std::string(name) == "attempt")) continue;
    if (value == "default" && std::string(name) == "tenant") continue;
    facts.emplace_back(title, value);
  }
  return facts;
}

std::string HeadlineInWords(const AlertValues& values, AlertEvent event) {
  switch (event) {
    case AlertEvent::kConfirmed:
    case AlertEvent::kAnnotated:
      return "";
    case AlertEvent::kUpdated:
      return absl::StrCat("correction of the first message about ", ValueOf(values, "incident"),
                          ", updated: ");
    case AlertEvent::kResolved:
      break;
  }
  // A job that was ended while it hung is not over well.
  return ValueOf(values, "state") == "resolved" ? "resolved, the job goes on: "
                                                : "the job ended while it hung: ";
}

std::string Rfc3339(const google::protobuf::Timestamp& time) {
  const std::string words = TimeInWords(time);  // "2026-11-20 19:30:00 UTC"
  return words.size() < 19 ? "" : words.substr(0, 10) + "T" + words.substr(11, 8) + "Z";
}

std::string OneLine(const std::string& text, size_t most) {
  std::string line = CutText(text, most);
  std::replace_if(line.begin(), line.end(), [](char c) { return absl::ascii_iscntrl(c); }, ' ');
  return line;
}

std::string DumpJson(const nlohmann::ordered_json& json) {
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace rollcall
