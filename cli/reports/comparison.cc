// SPDX-License-Identifier: Apache-2.0
#include "cli/reports/comparison.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/clean_text.h"
#include "base/cut_text.h"
#include "daemon/history/incident_groups.h"
#include "daemon/report/incident_words.h"
#include "daemon/report/wrap.h"
#include "daemon/words/terms.h"

namespace rollcall {
namespace {

constexpr size_t kMostNamed = 8;
constexpr size_t kNameColumns = 15;
constexpr size_t kCellColumns = (kTextColumns - kNameColumns - 4) / 2;

const v1::Verdict& RootOf(const v1::Incident& incident) {
  return incident.verdicts().empty() ? v1::Verdict::default_instance() : incident.verdicts(0);
}

// Each once, in order: "a, b and 3 more".
std::string Named(const std::set<std::string>& names) {
  std::vector<std::string> first;
  for (const std::string& name : names) {
    if (!name.empty() && first.size() < kMostNamed) first.push_back(name);
  }
  const size_t more = names.size() - names.count("") - first.size();
  return absl::StrCat(absl::StrJoin(first, ", "),
                      more == 0 ? "" : absl::StrCat(" and ", more, " more"));
}

template <typename Of>
std::string OfCulprits(const v1::Incident& incident, Of of) {
  std::set<std::string> values;
  for (const v1::Culprit& culprit : RootOf(incident).culprits()) values.insert(of(culprit));
  return Named(values);
}

std::string CulpritRanks(const v1::Incident& incident) {
  const v1::Verdict& root = RootOf(incident);
  std::vector<int32_t> ranks;
  for (const v1::Culprit& culprit : root.culprits()) ranks.push_back(culprit.rank());
  return root.culprit_ranks().empty() ? RankList(ranks) : root.culprit_ranks();
}

std::string WaitingRanks(const v1::Incident& incident) {
  const v1::Verdict& root = RootOf(incident);
  if (!root.waiting_rank_ranges().empty()) return root.waiting_rank_ranges();
  return RankList({root.waiting_ranks().begin(), root.waiting_ranks().end()});
}

std::string Position(const v1::Incident& incident) {
  const v1::Call& call = RootOf(incident).call();
  return call.operation().empty() ? "" : absl::StrFormat("#%.0f", call.position());
}

std::string Operation(const v1::Incident& incident) {
  return RootOf(incident).call().operation().empty() ? "" : CallInWords(RootOf(incident).call());
}

std::string WaitsIn(const v1::Incident& incident) {
  return RootOf(incident).standstill().waits_in();
}

std::string Versions(const v1::Incident& incident) {
  std::set<std::string> versions;
  for (const v1::VersionInUse& version : incident.versions())
    versions.insert(absl::StrCat(version.component(), " ", version.version()));
  return Named(versions);
}

std::string AdviceIds(const v1::Incident& incident) {
  std::set<std::string> ids;
  for (const v1::Advice& advice : RootOf(incident).advice()) ids.insert(advice.id());
  return Named(ids);
}

std::string Ranks(const v1::Incident& incident) {
  return incident.ranks() > 0 ? absl::StrCat(incident.ranks()) : "";
}

// Rows have the order in which they are shown.
struct FactRow {
  const char* name;
  std::string (*of)(const v1::Incident&);
};
constexpr FactRow kFacts[] = {
    {"job", [](const v1::Incident& i) { return i.job(); }},
    {"opened", [](const v1::Incident& i) { return TimeInWords(i.opened_at()); }},
    {"ranks", &Ranks},
    {"cause", [](const v1::Incident& i) { return RootOf(i).cause(); }},
    {"certainty", [](const v1::Incident& i) { return RootOf(i).certainty(); }},
    {"culprits", &CulpritRanks},
    {"hosts",
     [](const v1::Incident& i) {
       return OfCulprits(i, [](const v1::Culprit& c) { return c.host(); });
     }},
    {"at",
     [](const v1::Incident& i) {
       return OfCulprits(i, [](const v1::Culprit& c) { return SiteInWords(c.at()); });
     }},
    {"last call",
     [](const v1::Incident& i) {
       return OfCulprits(i, [](const v1::Culprit& c) { return SiteInWords(c.code()); });
     }},
    {"error",
     [](const v1::Incident& i) {
       return OfCulprits(i, [](const v1::Culprit& c) {
         return c.error().empty() ? c.thread_error() : c.error();
       });
     }},
    {"waiting", &WaitingRanks},
    {"wait in", &WaitsIn},
    {"communicator", [](const v1::Incident& i) { return RootOf(i).communicator().name(); }},
    {"call", &Operation},
    {"position", &Position},
    {"differs in",
     [](const v1::Incident& i) { return absl::StrJoin(RootOf(i).mismatched_fields(), ", "); }},
    {"advice", &AdviceIds},
    {"versions", &Versions},
};

std::string Pad(const std::string& text, size_t columns) {
  return text.size() >= columns ? text : text + std::string(columns - text.size(), ' ');
}

// The lines of a cell, of which a word may be longer than the cell.
std::vector<std::string> Lines(const std::string& text) {
  std::vector<std::string> lines;
  std::string rest = text;
  while (rest.size() > kCellColumns) {
    const size_t space = rest.rfind(' ', kCellColumns);
    const bool has_space = space != std::string::npos && space > 0;
    lines.push_back(has_space ? rest.substr(0, space) : CutText(rest, kCellColumns));
    rest.erase(0, lines.back().size() + (has_space ? 1 : 0));
  }
  lines.push_back(rest);
  return lines;
}

std::string Row(const std::string& name, const std::string& first, const std::string& second,
                bool differs) {
  const std::vector<std::string> a = Lines(first), b = Lines(second);
  std::string text;
  for (size_t i = 0; i < std::max(a.size(), b.size()); ++i) {
    std::string line =
        absl::StrCat(differs && i == 0 ? "* " : "  ", Pad(i == 0 ? name : "", kNameColumns),
                     Pad(i < a.size() ? a[i] : "", kCellColumns), "  ", i < b.size() ? b[i] : "");
    line.erase(line.find_last_not_of(' ') + 1);
    absl::StrAppend(&text, line, "\n");
  }
  return text;
}

std::string Sentence(const Comparison& comparison) {
  std::vector<std::string> names;
  for (const ComparedFact& fact : comparison.facts) {
    if (fact.differs()) names.push_back(fact.name);
  }
  const std::string alike =
      comparison.is_alike
          ? "The two hangs are alike: cause, operation, communicator and the place of most culprits agree."
          : "The two hangs are not alike.";
  return names.empty() ? absl::StrCat(alike, " Nothing differs.")
                       : absl::StrCat(alike, " What differs: ", absl::StrJoin(names, ", "), ".");
}

}  // namespace

Comparison Compare(const v1::Incident& first, const v1::Incident& second) {
  Comparison comparison;
  const std::string signature = SignatureOf(first);
  comparison.is_alike = !signature.empty() && signature == SignatureOf(second);
  for (const FactRow& row : kFacts) {
    ComparedFact fact = {row.name, row.of(first), row.of(second)};
    if (!fact.first.empty() || !fact.second.empty()) comparison.facts.push_back(std::move(fact));
  }
  return comparison;
}

std::string ComparisonToText(const Comparison& comparison, const std::string& first_name,
                             const std::string& second_name) {
  std::string text = Wrap("", "", Sentence(comparison)) + "\n";
  text += Row("", CleanText(first_name), CleanText(second_name), false);
  for (const ComparedFact& fact : comparison.facts)
    text += Row(fact.name, fact.first, fact.second, fact.differs());
  return text;
}

std::string ComparisonToJson(const Comparison& comparison) {
  nlohmann::ordered_json facts = nlohmann::ordered_json::array();
  for (const ComparedFact& fact : comparison.facts) {
    facts.push_back({{"name", fact.name},
                     {"first", fact.first},
                     {"second", fact.second},
                     {"differs", fact.differs()}});
  }
  const nlohmann::ordered_json document = {{"alike", comparison.is_alike}, {"facts", facts}};
  return document.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace rollcall
