// SPDX-License-Identifier: Apache-2.0
// An alert as a CloudEvent 1.0 in JSON (https://github.com/cloudevents/spec, cloudevents/spec.md
// and formats/json-format.md), by itself or as a record for the REST Proxy of Kafka, API v2
// (https://docs.confluent.io/platform/current/kafka-rest/api.html).
#include "absl/strings/str_cat.h"
#include "daemon/alerts/alert_messages.h"
#include "daemon/report/json.h"

namespace rollcall {
namespace {

using Json = nlohmann::ordered_json;

const char* TypeOf(const AlertMessage& message) {
  if (message.event == AlertEvent::kConfirmed) return "rollcall.incident.confirmed";
  if (message.event == AlertEvent::kUpdated) return "rollcall.incident.updated";
  if (message.event == AlertEvent::kReminder) return "rollcall.incident.reminder";
  // What people do: the incident contains it.
  if (message.event == AlertEvent::kAnnotated || message.event == AlertEvent::kAcknowledged) {
    return "rollcall.incident.annotated";
  }
  // The job goes on, or it ended while it hung.
  return message.incident.state() == "resolved" ? "rollcall.incident.resolved"
                                                : "rollcall.incident.ended";
}

// nullptr if unknown, as of an update.
const google::protobuf::Timestamp* TimeOf(const AlertMessage& message) {
  const v1::Incident& incident = message.incident;
  if (message.event == AlertEvent::kResolved) return &incident.closed_at();
  const bool is_first = message.event == AlertEvent::kConfirmed && incident.has_confirmed_at();
  return is_first ? &incident.confirmed_at() : nullptr;
}

// Returns one source for all incidents of one daemon.
std::string SourceOf(const AlertValues& values) {
  const std::string link = ValueOf(values, "link");
  const size_t fragment = link.find('#');
  return fragment == std::string::npos || fragment == 0 ? "rollcall" : link.substr(0, fragment);
}

Json DataOf(const AlertMessage& message) {
  const auto text = ToJson(message.incident, /*with_whitespace=*/false);
  return text.ok() ? Json::parse(*text, nullptr, /*allow_exceptions=*/false) : Json();
}

Json Event(const AlertValues& values, const AlertMessage& message) {
  Json event = {{"specversion", "1.0"},
                {"id", AlertKey(message)},
                {"source", SourceOf(values)},
                {"type", TypeOf(message)},
                {"subject", message.incident.id()},
                {"datacontenttype", "application/json"}};
  if (const auto* time = TimeOf(message)) event["time"] = Rfc3339(*time);
  // Extensions: for filters that do not read the data. Their names have lower-case letters only.
  for (const char* name : {"tenant", "job", "attempt", "cause", "certainty"}) {
    event[name] = ValueOf(values, name);
  }
  event["data"] = DataOf(message);
  return event;
}

}  // namespace

AlertRequest CloudEventRequest(const std::string& url, const AlertValues& values,
                               const AlertMessage& message) {
  AlertRequest request;
  request.url = url;
  request.body = DumpJson(Event(values, message));
  request.content_type = "application/cloudevents+json; charset=utf-8";
  return request;
}

AlertRequest KafkaRequest(const std::string& url, const AlertValues& values,
                          const AlertMessage& message) {
  AlertRequest request;
  request.url = url;
  // Records with one key are in one partition, so they keep their order.
  request.body = DumpJson({{"records", Json::array({{{"key", message.incident.id()},
                                                     {"value", Event(values, message)}}})}});
  request.content_type = "application/vnd.kafka.json.v2+json";
  return request;
}

}  // namespace rollcall
