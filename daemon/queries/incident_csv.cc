// SPDX-License-Identifier: Apache-2.0
#include "daemon/queries/incident_csv.h"

#include <algorithm>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "daemon/history/history.h"
#include "daemon/history/incident_facts.h"
#include "proto/timestamps.h"

namespace rollcall {
namespace {

constexpr char kLineEnd[] = "\r\n";

struct Row {
  const v1::Incident& incident;
  const v1::Verdict& root;
  const IncidentFacts& facts;
};

std::string Time(const google::protobuf::Timestamp& time) {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", absl::FromUnixNanos(NsOf(time)),
                          absl::UTCTimeZone());
}

std::string ValuesOf(const Row& row, absl::string_view kind, const char* separator = " ") {
  std::string text;
  for (const auto& [known, value] : row.facts.values) {
    if (known == kind) absl::StrAppend(&text, text.empty() ? "" : separator, value);
  }
  return text;
}

// "rack=r12 switch=leaf-3"
std::string LabelsOf(const Row& row) {
  std::string text;
  for (const auto& [kind, value] : row.facts.values) {
    absl::string_view name = kind;
    if (!absl::StartsWith(name, kLabelKind)) continue;
    name.remove_prefix(sizeof(kLabelKind) - 1);
    absl::StrAppend(&text, text.empty() ? "" : " ", name, "=", value);
  }
  return text;
}

struct Column {
  const char* name;
  std::string (*text)(const Row& row);
};

constexpr Column kColumns[] = {
    {"id", [](const Row& row) { return row.incident.id(); }},
    {"tenant", [](const Row& row) { return ReadJobKey(row.incident).tenant; }},
    {"job", [](const Row& row) { return row.incident.job(); }},
    {"attempt", [](const Row& row) { return absl::StrCat(row.incident.attempt()); }},
    {"state", [](const Row& row) { return row.incident.state(); }},
    {"cause", [](const Row& row) { return row.root.cause(); }},
    {"certainty", [](const Row& row) { return row.root.certainty(); }},
    {"opened_at", [](const Row& row) { return Time(row.incident.opened_at()); }},
    {"confirmed_at",
     [](const Row& row) {
       return row.incident.has_confirmed_at() ? Time(row.incident.confirmed_at()) : "";
     }},
    {"closed_at",
     [](const Row& row) {
       return row.incident.has_closed_at() ? Time(row.incident.closed_at()) : "";
     }},
    {"waits_since",
     [](const Row& row) {
       return row.incident.has_waits_since() ? Time(row.incident.waits_since()) : "";
     }},
    {"ranks",
     [](const Row& row) {
       return row.incident.ranks() > 0 ? absl::StrCat(row.incident.ranks()) : "";
     }},
    {"lost_rank_seconds",
     [](const Row& row) {
       // The daemon counts what a hang that lasts costs by now.
       const double stored = static_cast<double>(row.facts.lost_rank_ms) / 1000;
       return absl::StrFormat("%.3f", std::max(row.incident.lost_rank_seconds(), stored));
     }},
    {"acknowledged_by", [](const Row& row) { return row.incident.acknowledged().who(); }},
    {"culprit_hosts", [](const Row& row) { return ValuesOf(row, "host"); }},
    {"culprit_ranks", [](const Row& row) { return row.root.culprit_ranks(); }},
    {"culprit_gpus", [](const Row& row) { return ValuesOf(row, "gpu"); }},
    {"culprit_users", [](const Row& row) { return ValuesOf(row, "user"); }},
    {"call_sites", [](const Row& row) { return ValuesOf(row, "call_site", " | "); }},
    {"labels", [](const Row& row) { return LabelsOf(row); }},
    {"communicator", [](const Row& row) { return row.root.communicator().name(); }},
    {"operation", [](const Row& row) { return row.root.call().operation(); }},
    {"signature", [](const Row& row) { return row.incident.signature(); }},
    {"summary", [](const Row& row) { return row.root.summary(); }},
};

// A spreadsheet runs a text that begins like a formula, and jobs choose some of these texts. A mark
// in front keeps it a text (https://owasp.org/www-community/attacks/CSV_Injection).
std::string Field(std::string text) {
  if (!text.empty() && absl::StrContains("=+-@\t\r", text.substr(0, 1))) text.insert(0, "'");
  if (text.find_first_of("\",\r\n") == std::string::npos) return text;
  return absl::StrCat("\"", absl::StrReplaceAll(text, {{"\"", "\"\""}}), "\"");
}

}  // namespace

std::string IncidentCsvHeader() {
  std::string line;
  for (const Column& column : kColumns)
    absl::StrAppend(&line, line.empty() ? "" : ",", column.name);
  return line + kLineEnd;
}

std::string IncidentCsvLine(const v1::Incident& incident) {
  const IncidentFacts facts = FactsOf(incident);
  const v1::Verdict& root =
      incident.verdicts().empty() ? v1::Verdict::default_instance() : incident.verdicts(0);
  const Row row = {incident, root, facts};
  std::string line;
  for (const Column& column : kColumns) {
    absl::StrAppend(&line, &column == kColumns ? "" : ",", Field(column.text(row)));
  }
  return line + kLineEnd;
}

}  // namespace rollcall
