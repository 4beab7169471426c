// SPDX-License-Identifier: Apache-2.0
#include "daemon/alerts/alert_target.h"

#include <cstdint>

#include "absl/strings/str_cat.h"

namespace rollcall {
namespace {

// Opsgenie has a second address for accounts in the EU: https://api.eu.opsgenie.com
// (https://docs.opsgenie.com/docs/alert-api). Jira Service Management takes the same requests at
// https://api.atlassian.com/jsm/ops/integration.
constexpr AlertKindFacts kKinds[] = {
    {"json", AlertKind::kJson, "a URL", false, ""},
    {"slack", AlertKind::kSlack, "the URL of an incoming webhook", true, ""},
    {"teams", AlertKind::kTeams, "the URL of a Workflows webhook", true, ""},
    {"pagerduty", AlertKind::kPagerDuty, "a routing key", true,
     "https://events.pagerduty.com/v2/enqueue"},
    {"opsgenie", AlertKind::kOpsgenie, "a key of an API integration", true,
     "https://api.opsgenie.com"},
    {"alertmanager", AlertKind::kAlertmanager, "the URL of its /api/v2/alerts", false, ""},
    {"kubernetes", AlertKind::kKubernetes, "a token of a service account", true,
     "https://kubernetes.default.svc"},
    {"email", AlertKind::kEmail, "addresses", false, ""},
    {"cloudevents", AlertKind::kCloudEvents, "a URL that takes CloudEvents", false, ""},
    {"kafka", AlertKind::kKafka, "the URL of a topic of Kafka's REST Proxy", false, ""},
    {"exec", AlertKind::kCommand, "a command", false, ""}};

}  // namespace

bool TakesAnnotations(AlertKind kind) {
  return kind == AlertKind::kCloudEvents || kind == AlertKind::kKafka;
}

const AlertKindFacts& FactsOf(AlertKind kind) {
  for (const AlertKindFacts& known : kKinds) {
    if (known.kind == kind) return known;
  }
  return kKinds[0];
}

const AlertKindFacts* FindAlertKind(const std::string& name) {
  for (const AlertKindFacts& known : kKinds) {
    if (name == known.name) return &known;
  }
  return nullptr;
}

std::string AlertKindsInWords() {
  std::string words;
  for (const AlertKindFacts& known : kKinds) {
    absl::StrAppend(&words, words.empty() ? "" : ", ", known.name, " (", known.target, ")");
  }
  return words;
}

absl::StatusOr<AlertTarget> ParseAlertTarget(const std::string& text) {
  const size_t equals = text.find('=');
  const AlertKindFacts* known =
      equals == std::string::npos ? nullptr : FindAlertKind(text.substr(0, equals));
  if (known == nullptr || equals + 1 == text.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--alert wants KIND=TARGET, with KIND one of ", AlertKindsInWords(),
                     "\n  a secret is best in a file:  --alert=slack=@/etc/rollcall/slack-url"));
  }
  AlertTarget target;
  target.kind = known->kind;
  target.where = text.substr(equals + 1);
  return target;
}

std::string ReceiverId(const AlertTarget& target) {
  uint64_t hash = 14695981039346656037u;  // FNV-1a
  for (const char c : absl::StrCat(target.where, target.url)) {
    hash = (hash ^ static_cast<uint8_t>(c)) * 1099511628211u;
  }
  return absl::StrCat(FactsOf(target.kind).name, ":", absl::Hex(hash, absl::kZeroPad16));
}

std::string ReceiverInWords(const AlertTarget& target) {
  const char* kind = FactsOf(target.kind).name;
  return target.name.empty() ? kind : absl::StrCat(kind, ", ", target.name);
}

}  // namespace rollcall
