// SPDX-License-Identifier: Apache-2.0
// The receivers of alerts: their kinds, and how a user names one.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace rollcall {

enum class AlertKind {
  kJson,
  kSlack,
  kTeams,
  kPagerDuty,
  kOpsgenie,
  kAlertmanager,
  kKubernetes,
  kEmail,
  kCloudEvents,
  kKafka,
  kCommand
};

struct AlertTarget {
  AlertKind kind = AlertKind::kJson;
  // A URL, a key, addresses of mail, or a command line. "@FILE" names a file that contains it. The
  // sender reads the file for each alert, so the secret is in no process list and may change.
  std::string where;
  std::string name{};         // in a file of routes; empty if named by --alert
  std::string url{};          // of the service that `where` is a key for; empty means the usual one
  std::string signing_key{};  // path of a file with the key that signs requests, or empty
  bool is_routed = false;     // gets only what a route sends to it
};

// One row of the table of kinds.
struct AlertKindFacts {
  const char* name;
  AlertKind kind;
  const char* target;  // what AlertTarget::where is, in words
  bool is_secret;      // the target alone is enough to write to the receiver
  const char* url;     // the usual AlertTarget::url; "" if `where` has the address
};

const AlertKindFacts& FactsOf(AlertKind kind);
// Whether receivers of this kind learn of each note and acknowledgement: programs do, people would
// be disturbed by what one of them did.
bool TakesAnnotations(AlertKind kind);
// nullptr if no kind has this name.
const AlertKindFacts* FindAlertKind(const std::string& name);
// "json (a URL), slack (a URL of a hook), ...".
std::string AlertKindsInWords();

// Examples: "slack=https://...", "pagerduty=@/etc/rollcall/key", "exec=mail -s hang me". Errors
// list the kinds, and never show the target.
absl::StatusOr<AlertTarget> ParseAlertTarget(const std::string& text);

// Identifies a receiver across restarts without its secret.
std::string ReceiverId(const AlertTarget& target);
// Names the receiver in the log: "slack", or "slack, on-call" with the name of a file of routes.
std::string ReceiverInWords(const AlertTarget& target);

}  // namespace rollcall
