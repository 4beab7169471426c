// SPDX-License-Identifier: Apache-2.0
// The values of an alert, by the names that a template may use. Every kind of message is made of
// it. Pure.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "daemon/alerts/alerts.h"

namespace rollcall {

using AlertValues = std::vector<std::pair<std::string, std::string>>;

AlertValues ValuesOf(const AlertOptions& options, const AlertMessage& message);

// "" for a name that there is not.
std::string ValueOf(const AlertValues& values, const std::string& name);

// What a reader needs first: "Job" and its value, "Attempt" and its value, and so on, without empty
// ones. No value is longer than `most` bytes or has line ends.
AlertValues FactsInWords(const AlertValues& values, size_t most);

// The links that a reader may follow from this message: "Incident" and the URL, "Runbook" and so
// on.
AlertValues LinksInWords(const AlertValues& values, AlertEvent event);

// The values with their names; numbers are numbers.
nlohmann::ordered_json JsonOf(const AlertValues& values);

// "2026-11-20T19:30:00Z".
std::string Rfc3339(const google::protobuf::Timestamp& time);

// Returns the text without control characters and with at most `most` bytes.
std::string OneLine(const std::string& text, size_t most);

// Replaces bytes that are not UTF-8: texts come from jobs, and the library throws on such bytes.
std::string DumpJson(const nlohmann::ordered_json& json);

}  // namespace rollcall
