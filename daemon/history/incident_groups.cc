// SPDX-License-Identifier: Apache-2.0
#include "daemon/history/incident_groups.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/whole_numbers.h"

namespace rollcall {
namespace {

constexpr size_t kMaxPart = 120;  // bytes of a part of a signature
constexpr absl::string_view kIn = " in ";
constexpr absl::string_view kRanksFollow = " ranks: ";  // of a communicator named by its ranks

std::string CutPart(absl::string_view text) { return std::string(text.substr(0, kMaxPart)); }

// "pp_3" and "pp_11" are communicators of one kind: "pp_#".
std::string NameWithoutNumbers(absl::string_view name) {
  const size_t list = name.find(kRanksFollow);
  if (list != absl::string_view::npos)
    return CutPart(name.substr(0, list + kRanksFollow.size() - 2));
  std::string plain;
  for (const char c : name) {
    if (!absl::ascii_isdigit(static_cast<unsigned char>(c))) {
      plain += c;
    } else if (plain.empty() || plain.back() != '#') {
      plain += '#';
    }
  }
  return CutPart(plain);
}

// "train.py:validate" for "/x/train.py:57 in validate": the line moves with every change above it.
std::string PlaceWithoutLine(absl::string_view site) {
  const size_t in = site.find(kIn);
  const absl::string_view function =
      in == absl::string_view::npos ? "" : site.substr(in + kIn.size());
  absl::string_view file = site.substr(0, in);
  const size_t slash = file.rfind('/');
  if (slash != absl::string_view::npos) file.remove_prefix(slash + 1);
  const size_t colon = file.rfind(':');
  const bool has_line = colon != absl::string_view::npos &&
                        file.find_first_not_of("0123456789", colon + 1) == absl::string_view::npos;
  if (has_line) file = file.substr(0, colon);
  if (function.empty()) return CutPart(file);
  return CutPart(absl::StrCat(file, ":", function));
}

// Where most culprits are; "" if that is not known.
std::string PlaceOf(const v1::Verdict& verdict) {
  std::map<std::string, int> places;
  for (const v1::Culprit& culprit : verdict.culprits()) {
    const std::string place =
        PlaceWithoutLine(culprit.at().empty() ? culprit.code() : culprit.at());
    if (!place.empty()) ++places[place];
  }
  const auto most =
      std::max_element(places.begin(), places.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == places.end() ? "" : most->first;
}

using Names = google::protobuf::RepeatedPtrField<v1::Recurring>;

void AddOnce(const std::string& name, Names* names) {
  for (v1::Recurring& known : *names) {
    if (known.name() == name) return known.set_hangs(known.hangs() + 1);
  }
  v1::Recurring* added = names->Add();
  added->set_name(name);
  added->set_hangs(1);
}

// Returns what a reader should suspect: the host that came back most often, else the rank. "" for
// names that come back by chance.
std::string WhatComesBack(const v1::IncidentGroup& group) {
  const auto most = [&group](const Names& names) {
    const auto at = std::max_element(names.begin(), names.end(), [](const auto& a, const auto& b) {
      return a.hangs() < b.hangs();
    });
    // More than a half of them, and more than once.
    return at == names.end() || at->hangs() < 2 || at->hangs() * 2 <= group.hangs() ? nullptr
                                                                                    : &*at;
  };
  const v1::Recurring* host = most(group.hosts());
  const v1::Recurring* rank = most(group.ranks());
  const v1::Recurring* chosen = host != nullptr ? host : rank;
  if (chosen == nullptr) return "";
  const std::string how_often = chosen->hangs() >= group.hangs()
                                    ? (group.hangs() == 2 ? "both times" : "each time")
                                    : absl::StrCat(chosen->hangs(), " times");
  if (host != nullptr) return absl::StrCat(", ", how_often, " with a culprit on ", host->name());
  return absl::StrCat(", ", how_often, " with rank ", rank->name(), " as a culprit");
}

}  // namespace

std::string OrdinalInWords(int32_t number) {
  const int32_t tens = number % 100, ones = number % 10;
  const char* ending = tens >= 11 && tens <= 13 ? "th"
                       : ones == 1              ? "st"
                       : ones == 2              ? "nd"
                       : ones == 3              ? "rd"
                                                : "th";
  return absl::StrCat(number, ending);
}

std::string SignatureOf(const v1::Incident& incident) {
  if (incident.verdicts().empty()) return "";
  const v1::Verdict& root = incident.verdicts(0);
  return absl::StrCat(root.cause(), "/", CutPart(root.call().operation()), "/",
                      NameWithoutNumbers(root.communicator().name()), "/", PlaceOf(root));
}

std::string HangOf(const v1::Incident& incident) {
  if (incident.verdicts().empty() || incident.verdicts(0).communicator().id().empty()) {
    return incident.id();
  }
  const v1::Verdict& root = incident.verdicts(0);
  return absl::StrCat(incident.job(), "\n", incident.attempt(), "\n", root.communicator().id(),
                      "\n", WholeNumber(root.call().position()));
}

void AddHang(const v1::Incident& incident, v1::IncidentGroup* group) {
  group->set_hangs(group->hangs() + 1);
  if (!group->has_first()) *group->mutable_first() = incident.opened_at();
  *group->mutable_last() = incident.opened_at();
  group->set_newest(incident.id());
  AddOnce(incident.job(), group->mutable_jobs());
  if (incident.verdicts().empty()) return;
  const v1::Verdict& root = incident.verdicts(0);
  group->set_summary(root.summary());
  std::set<std::string> hosts(root.other_culprit_hosts().begin(), root.other_culprit_hosts().end());
  std::set<std::string> ranks;
  for (const v1::Culprit& culprit : root.culprits()) {
    if (!culprit.host().empty()) hosts.insert(culprit.host());
    if (culprit.rank() >= 0) ranks.insert(absl::StrCat(culprit.rank()));
  }
  for (const std::string& host : hosts) AddOnce(host, group->mutable_hosts());
  for (const std::string& rank : ranks) AddOnce(rank, group->mutable_ranks());
}

std::string GroupInWords(const v1::IncidentGroup& group) {
  if (group.hangs() < 2) return "once";
  return absl::StrCat(group.hangs() == 2 ? "twice" : absl::StrCat(group.hangs(), " times"),
                      WhatComesBack(group));
}

std::string RecurrenceInWords(const v1::IncidentGroup& group, int days) {
  if (group.hangs() < 2) return "";
  return absl::StrCat("the ", OrdinalInWords(group.hangs()), " time in ", days, " days",
                      WhatComesBack(group));
}

}  // namespace rollcall
