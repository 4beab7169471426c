// SPDX-License-Identifier: Apache-2.0
// The requests to Opsgenie's Alert API v2, with its limits of fields:
// https://docs.opsgenie.com/docs/alert-api, https://docs.opsgenie.com/docs/alert-api-continued,
// https://docs.opsgenie.com/docs/alerts-and-alert-fields. Jira Service Management takes those that
// create, note and close:
// https://developer.atlassian.com/cloud/jira/service-desk-ops/rest/v2/api-group-integration-events/
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/cut_text.h"
#include "base/digest/digest.h"
#include "daemon/alerts/alert_messages.h"
#include "daemon/report/escape.h"

namespace rollcall {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kLongestMessage = 130;
constexpr size_t kLongestAlias = 512;
constexpr size_t kLongestDescription = 15'000;
constexpr size_t kLongestNote = 25'000;
constexpr size_t kLongestEntity = 512;
constexpr size_t kLongestUser = 100;
constexpr size_t kLongestDetail = 400;  // all details together: 8,000
constexpr size_t kLongestOpsgenieFact = 500;

// Identifies the alert until it is closed.
std::string Alias(const AlertValues& values) {
  const std::string alias = absl::StrCat("rollcall-", ValueOf(values, "incident"));
  return alias.size() <= kLongestAlias ? alias : absl::StrCat("rollcall-", Sha256Hex(alias));
}

std::string Message(const AlertValues& values) {
  return OneLine(ValueOf(values, "headline"), kLongestMessage);
}

std::string Description(const AlertValues& values, AlertEvent event) {
  std::string text = absl::StrCat(ValueOf(values, "headline"), "\n");
  for (const auto& [title, value] : FactsInWords(values, kLongestOpsgenieFact)) {
    absl::StrAppend(&text, "\n", title, ": ", value);
  }
  for (const auto& [title, name] : {std::pair("Advice", "advice"), std::pair("Report", "report")}) {
    const std::string value = ValueOf(values, name);
    if (!value.empty()) absl::StrAppend(&text, "\n", title, ": ", value);
  }
  for (const auto& [title, link] : LinksInWords(values, event)) {
    absl::StrAppend(&text, "\n", title, ": ", link);
  }
  return text;
}

Json Details(const AlertValues& values) {
  Json details;
  for (const char* name : {"tenant", "job", "attempt", "incident", "cause", "certainty", "ranks",
                           "hosts", "at", "report", "link"}) {
    details[name] = OneLine(ValueOf(values, name), kLongestDetail);
  }
  return details;
}

Json NewAlert(const AlertValues& values) {
  return {
      {"message", Message(values)},
      {"alias", Alias(values)},
      {"description", CutText(Description(values, AlertEvent::kConfirmed), kLongestDescription)},
      {"details", Details(values)},
      {"entity", OneLine(ValueOf(values, "job"), kLongestEntity)},
      {"source", "rollcall"},
      {"priority", "P1"}};
}

}  // namespace

absl::StatusOr<std::vector<AlertRequest>> OpsgenieRequests(const std::string& url,
                                                           const std::string& key,
                                                           const AlertValues& values,
                                                           AlertEvent event) {
  const bool is_key = !key.empty() && std::all_of(key.begin(), key.end(),
                                                  [](char c) { return c > ' ' && c < 0x7f; });
  if (!is_key) {
    return absl::InvalidArgumentError("its key is not one word of letters, digits and dashes");
  }
  const std::string all = absl::StrCat(absl::StripSuffix(url, "/"), "/v2/alerts");
  const std::string authorization = absl::StrCat("GenieKey ", key);
  if (event == AlertEvent::kConfirmed) {
    return std::vector<AlertRequest>{{"POST", all, DumpJson(NewAlert(values)), authorization}};
  }
  const auto to = [&](const char* what) {
    return absl::StrCat(all, "/", EscapeUrl(Alias(values)), "/", what, "?identifierType=alias");
  };
  const std::string note = CutText(Description(values, event), kLongestNote);
  if (event == AlertEvent::kResolved) {
    return std::vector<AlertRequest>{
        {"POST", to("close"), DumpJson({{"source", "rollcall"}, {"note", note}}), authorization}};
  }
  if (event == AlertEvent::kAcknowledged) {
    const std::string who = ValueOf(values, "acknowledged_by");
    Json body = {{"source", "rollcall"}, {"note", note}};
    if (!who.empty()) body["user"] = OneLine(who, kLongestUser);
    AlertRequest request = {"POST", to(who.empty() ? "unacknowledge" : "acknowledge"),
                            DumpJson(body), authorization};
    request.may_be_refused = true;  // Jira Service Management may have no such request
    return std::vector<AlertRequest>{request};
  }
  // A second alert with the alias would be counted, and change no text. The note comes last: a
  // repeated note would be a second one.
  std::vector<AlertRequest> requests = {
      {"PUT", to("message"), DumpJson({{"message", Message(values)}}), authorization},
      {"PUT", to("description"),
       DumpJson({{"description", CutText(Description(values, event), kLongestDescription)}}),
       authorization},
      {"POST", to("notes"), DumpJson({{"source", "rollcall"}, {"note", note}}), authorization}};
  // Jira Service Management has no such requests.
  requests[0].may_be_refused = requests[1].may_be_refused = true;
  return requests;
}

}  // namespace rollcall
