// SPDX-License-Identifier: Apache-2.0
// The messages of the kinds of receivers that need more than a few lines. Pure.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "daemon/alerts/alert_delivery.h"
#include "daemon/alerts/alert_values.h"

namespace rollcall {

// Returns the body for a webhook of Teams.
std::string TeamsMessage(const AlertValues& values, AlertEvent event);

// The requests to Opsgenie, in this order. `url`: of the service, without a path. kInvalidArgument:
// the key is malformed.
absl::StatusOr<std::vector<AlertRequest>> OpsgenieRequests(const std::string& url,
                                                           const std::string& key,
                                                           const AlertValues& values,
                                                           AlertEvent event);

// Returns an Event for the pod of each culprit; none if no culprit has a pod. `url`: of the API
// server. kInvalidArgument: the token is malformed.
absl::StatusOr<std::vector<AlertRequest>> KubernetesRequests(const std::string& url,
                                                             const std::string& token,
                                                             const AlertValues& values,
                                                             const AlertMessage& message);

// The incident as a CloudEvent, and as a record of Kafka with one.
AlertRequest CloudEventRequest(const std::string& url, const AlertValues& values,
                               const AlertMessage& message);
AlertRequest KafkaRequest(const std::string& url, const AlertValues& values,
                          const AlertMessage& message);

// Returns the mail to these addresses, for `sendmail -t`. Its later mails refer to the first, so
// that programs of mail show them as one thread. `from` may be "".
std::string AlertMail(const std::string& to, const std::string& from, const AlertValues& values,
                      const AlertMessage& message);

}  // namespace rollcall
