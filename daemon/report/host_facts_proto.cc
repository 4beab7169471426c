// SPDX-License-Identifier: Apache-2.0
#include "daemon/report/host_facts_proto.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "base/cut_text.h"
#include "base/durations.h"
#include "base/whole_numbers.h"
#include "daemon/diagnosis/hosts/host_fact_rules.h"
#include "daemon/words/host_fact_words.h"
#include "daemon/words/terms.h"
#include "proto/timestamps.h"

namespace rollcall {
namespace {

constexpr double kLargest = 9007199254740992;  // 2^53
constexpr double kOldestSeconds = 7 * 24 * 3600.0;
constexpr int kMostLines = 40;

int64_t ToInteger(double value, double least, double most) {
  return std::isfinite(value) ? static_cast<int64_t>(std::clamp(value, least, most)) : 0;
}

HostFact FactFromProto(const v1::HostFact& fact, int64_t now_ns) {
  HostFact result;
  result.kind = FindHostFactKind(fact.kind());
  result.subject = CutText(fact.subject(), kMostFactText);
  result.text = CutText(fact.text(), kMostFactText);
  result.value = ToInteger(fact.value(), -kLargest, kLargest);
  result.pid = std::max(fact.pid(), 0);
  const double age =
      std::isfinite(fact.age_seconds()) ? std::clamp(fact.age_seconds(), 0.0, kOldestSeconds) : 0;
  if (age > 0) result.at_ns = now_ns - NsOfSeconds(age);
  return result;
}

bool HasEndedWell(const HostProbe& probe) {
  return probe.outcome == "ok" || probe.outcome == "absent";
}

std::string FactInWords(const v1::HostFact& fact) {
  const std::string words = HostFactInWords(FactFromProto(fact, 0));
  if (fact.age_seconds() <= 0) return words;
  return absl::StrCat(words, ", ", DurationInWords(NsOfSeconds(fact.age_seconds())),
                      " before the look");
}

}  // namespace

HostFacts FromProto(const v1::HostFacts& facts, int64_t now_ns) {
  HostFacts result;
  result.gathered_ns = now_ns;
  result.error = CutText(facts.error(), kMostFactText);
  for (const v1::HostFact& fact : facts.facts()) {
    if (result.facts.size() == kMostHostFacts) break;
    result.facts.push_back(FactFromProto(fact, now_ns));
  }
  for (const v1::HostProbe& probe : facts.probes()) {
    if (result.probes.size() == kMostHostProbes) break;
    result.probes.push_back({CutText(probe.name(), kMostFactText),
                             CutText(probe.outcome(), kMostFactText),
                             CutText(probe.note(), kMostFactText)});
  }
  return result;
}

v1::HostFacts WorthALook(const std::string& host, const HostFacts& facts, int64_t wall_ns) {
  v1::HostFacts result;
  result.set_host(host);
  *result.mutable_gathered_at() = ToTimestamp(wall_ns);
  result.set_error(facts.error);
  for (const HostFact& fact : facts.facts) {
    // The kinds of a newer agent are unknown to the rules, and to people.
    if (fact.kind == HostFactKind::kUnknown || !IsWorthALook(fact.kind, fact.value)) continue;
    if (result.facts_size() == kMostFactsInIncident) break;
    v1::HostFact* added = result.add_facts();
    added->set_kind(InfoOf(fact.kind).text);
    added->set_subject(fact.subject);
    added->set_value(static_cast<double>(fact.value));
    added->set_text(fact.text);
    added->set_pid(fact.pid);
    if (fact.at_ns == 0) continue;
    const int64_t age_ns = std::max<int64_t>(facts.gathered_ns - fact.at_ns, 0);
    added->set_age_seconds(static_cast<double>(age_ns / (kSecond / 1000)) / 1000.0);
  }
  for (const HostProbe& probe : facts.probes) {
    if (HasEndedWell(probe)) continue;
    v1::HostProbe* added = result.add_probes();
    added->set_name(probe.name);
    added->set_outcome(probe.outcome);
    added->set_note(probe.note);
  }
  return result;
}

void AddToIncident(const v1::HostFacts& host, v1::Incident* incident) {
  auto* hosts = incident->mutable_host_facts();
  const auto known = std::find_if(hosts->begin(), hosts->end(), [&](const v1::HostFacts& other) {
    return other.host() == host.host();
  });
  if (known != hosts->end()) {
    *known = host;
    return;
  }
  if (host.error().empty()) incident->set_host_facts_total(incident->host_facts_total() + 1);
  if (hosts->size() < kMostHostsInIncident) {
    *hosts->Add() = host;
    return;
  }
  const auto quiet = std::find_if(hosts->begin(), hosts->end(),
                                  [](const v1::HostFacts& other) { return other.facts().empty(); });
  if (!host.facts().empty() && quiet != hosts->end()) *quiet = host;
}

std::vector<std::string> HostFactLines(const v1::Incident& incident) {
  std::vector<std::string> lines;
  int shown = 0, left_out = 0;
  for (const v1::HostFacts& host : incident.host_facts()) {
    shown += host.facts_size() > 0;
    for (const v1::HostFact& fact : host.facts()) {
      if (static_cast<int>(lines.size()) >= kMostLines) {
        ++left_out;
      } else {
        lines.push_back(absl::StrCat(host.host(), ": ", FactInWords(fact)));
      }
    }
    if (!host.error().empty() && static_cast<int>(lines.size()) < kMostLines) {
      lines.push_back(absl::StrCat(host.host(), ": no facts: ", host.error()));
    }
  }
  if (left_out > 0) lines.push_back(absl::StrCat("and ", left_out, " more in incident.json"));
  const auto silent = static_cast<uint64_t>(std::max(incident.host_facts_total() - shown, 0));
  if (silent > 0) {
    lines.push_back(absl::StrCat(CountInWords(silent, "host", "hosts"), shown > 0 ? " more" : "",
                                 silent == 1 ? " shows" : " show", " nothing unusual"));
  }
  return lines;
}

}  // namespace rollcall
