// SPDX-License-Identifier: Apache-2.0
#include "daemon/alerts/alert_values.h"

#include <algorithm>
#include <iterator>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "base/cut_text.h"
#include "base/durations.h"
#include "daemon/alerts/alert_headline.h"
#include "daemon/report/escape.h"
#include "daemon/report/incident_words.h"
#include "proto/timestamps.h"

namespace rollcall {
namespace {

constexpr size_t kMaxRanksNamed = 16;
constexpr uint32_t kNoUser = UINT32_MAX;  // the kernel's number for one that has none here

// The values that are numbers in JSON.
constexpr const char* kNumbers[] = {"attempt", "sequence",     "idle",
                                    "repeat",  "hung_seconds", "lost_rank_hours"};

// Empty if the page is not known.
std::string PageLink(const AlertOptions& options, const std::string& view,
                     const std::string& name) {
  if (options.page.empty()) return "";
  const bool slash = options.page.back() == '/';
  return absl::StrCat(options.page, slash ? "" : "/", "#/", view, "/", EscapeUrl(name));
}

// Links to the newest one of a row of hangs.
std::string Link(const AlertOptions& options, const v1::Incident& incident) {
  const std::string& newest = incident.repeat().newest();
  return PageLink(options, "incident", newest.empty() ? incident.id() : newest);
}

std::string RunbookLink(const AlertOptions& options, const std::string& cause) {
  if (cause.empty()) return "";
  if (options.runbook.empty()) return PageLink(options, "runbook", cause);
  if (!absl::StrContains(options.runbook, "{cause}")) {
    return absl::StrCat(options.runbook, options.runbook.back() == '/' ? "" : "/", cause);
  }
  return absl::StrReplaceAll(options.runbook, {{"{cause}", cause}});
}

// The link opens the incident with this action at hand.
std::string ActionLink(const std::string& link, const char* action) {
  return link.empty() ? "" : absl::StrCat(link, "?do=", action);
}

const char* Status(AlertEvent event) {
  switch (event) {
    case AlertEvent::kConfirmed:
      return "firing";
    case AlertEvent::kUpdated:
      return "updated";
    case AlertEvent::kAnnotated:
      return "annotated";
    case AlertEvent::kAcknowledged:
      return "acknowledged";
    case AlertEvent::kReminder:
      return "reminder";
    case AlertEvent::kResolved:
      return "resolved";
  }
  return "";
}

// "alice", or "uid 1001": the owners of the culprits' processes. Empty if unknown.
std::string OwnersOf(const AlertOptions& options, const v1::Verdict& verdict) {
  std::set<uint32_t> users;
  for (const v1::Culprit& culprit : verdict.culprits()) {
    if (culprit.has_uid() && culprit.uid() != kNoUser) users.insert(culprit.uid());
  }
  std::string owners;
  for (const uint32_t user : users) {
    const std::string name = options.user_name ? options.user_name(user) : "";
    absl::StrAppend(&owners, owners.empty() ? "" : ", ",
                    name.empty() ? absl::StrCat("uid ", user) : name);
  }
  return owners;
}

struct Named {
  std::string ranks, hosts;
};

Named NamesOf(const v1::Verdict& verdict) {
  Named named;
  std::set<std::string> hosts;
  for (int i = 0; i < verdict.culprits_size(); ++i) {
    if (static_cast<size_t>(i) == kMaxRanksNamed) {
      named.ranks += ", ...";
      break;
    }
    const v1::Culprit& culprit = verdict.culprits(i);
    absl::StrAppend(&named.ranks, i == 0 ? "" : ", ", culprit.rank());
    if (hosts.insert(culprit.host()).second) {
      absl::StrAppend(&named.hosts, named.hosts.empty() ? "" : ", ", culprit.host());
    }
  }
  return named;
}

std::string Seconds(int64_t ns) {
  return absl::StrFormat("%.0f", static_cast<double>(ns) / static_cast<double>(kSecond));
}

std::string RankHours(int64_t ns, int32_t ranks) {
  return absl::StrFormat("%.1f", static_cast<double>(ns) / 3600e9 * ranks);
}

}  // namespace

AlertValues ValuesOf(const AlertOptions& options, const AlertMessage& message) {
  const v1::Incident& incident = message.incident;
  const v1::Verdict verdict = incident.verdicts().empty() ? v1::Verdict() : incident.verdicts(0);
  const Named named = NamesOf(verdict);
  const bool is_first = message.event == AlertEvent::kConfirmed;
  const std::string link = Link(options, incident);
  const int64_t hung_ns = HungNs(message);
  const int32_t idle = IdleRanks(incident);
  return {{"headline", HeadlineInWords(message)},
          {"status", Status(message.event)},
          {"idempotency_key", AlertKey(message)},
          {"first", is_first ? "" : absl::StrCat(incident.id(), "/", message.first_sequence)},
          {"sequence", absl::StrCat(message.sequence)},
          {"incident", incident.id()},
          {"job", incident.job()},
          {"tenant", incident.tenant()},
          {"attempt", absl::StrCat(incident.attempt())},
          {"user", OwnersOf(options, verdict)},
          {"state", incident.state()},
          {"cause", verdict.cause()},
          {"certainty", verdict.certainty()},
          {"summary", verdict.summary()},
          {"idle", absl::StrCat(idle)},
          {"idle_unit", IdleUnit(verdict)},
          {"since", Rfc3339(HungSince(incident))},
          {"hung_seconds", Seconds(hung_ns)},
          {"lost_rank_hours", RankHours(hung_ns, idle)},
          {"ranks", named.ranks},
          {"hosts", named.hosts},
          {"at", verdict.culprits().empty() ? "" : verdict.culprits(0).at()},
          {"advice", verdict.advice().empty() ? "" : verdict.advice(0).text()},
          {"repeat", absl::StrCat(std::max(incident.repeat().number(), 1))},
          {"repeat_sentence", incident.repeat().sentence()},
          {"note", NoteInWords(message)},
          {"acknowledged_by", incident.acknowledged().who()},
          {"opened_at", TimeInWords(incident.opened_at())},
          {"closed_at", TimeInWords(incident.closed_at())},
          {"report", incident.report_path()},
          {"link", link},
          {"runbook", RunbookLink(options, verdict.cause())},
          {"acknowledge", ActionLink(link, "acknowledge")},
          {"silence", ActionLink(link, "silence")}};
}

std::string ValueOf(const AlertValues& values, const std::string& name) {
  for (const auto& [known, value] : values) {
    if (known == name) return value;
  }
  return "";
}

nlohmann::ordered_json JsonOf(const AlertValues& values) {
  nlohmann::ordered_json json;
  for (const auto& [name, value] : values) {
    const bool is_number = std::any_of(std::begin(kNumbers), std::end(kNumbers),
                                       [&name](const char* number) { return name == number; });
    json[name] = is_number ? nlohmann::ordered_json::parse(value) : nlohmann::ordered_json(value);
  }
  return json;
}

AlertValues FactsInWords(const AlertValues& values, size_t most) {
  constexpr std::pair<const char*, const char*> kFacts[] = {
      {"Job", "job"},       {"Attempt", "attempt"},     {"User", "user"},
      {"Tenant", "tenant"}, {"Ranks", "ranks"},         {"Hosts", "hosts"},
      {"Line", "at"},       {"Certainty", "certainty"}, {"Note", "note"}};
  AlertValues facts;
  for (const auto& [title, name] : kFacts) {
    const std::string value = OneLine(ValueOf(values, name), most);
    if (value.empty() || (value == "0" && std::string(name) == "attempt")) continue;
    if (value == "default" && std::string(name) == "tenant") continue;
    facts.emplace_back(title, value);
  }
  return facts;
}

AlertValues LinksInWords(const AlertValues& values, AlertEvent event) {
  constexpr std::pair<const char*, const char*> kLinks[] = {{"Incident", "link"},
                                                            {"Runbook", "runbook"},
                                                            {"Acknowledge", "acknowledge"},
                                                            {"Silence", "silence"}};
  AlertValues links;
  for (const auto& [title, name] : kLinks) {
    const std::string value = ValueOf(values, name);
    const bool is_action = std::string(name) == "acknowledge" || std::string(name) == "silence";
    // An incident that is over or acknowledged cannot be acknowledged.
    const bool is_past = event == AlertEvent::kResolved || event == AlertEvent::kAcknowledged ||
                         !ValueOf(values, "acknowledged_by").empty();
    if (!value.empty() && !(is_action && is_past)) links.emplace_back(title, value);
  }
  return links;
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
