// SPDX-License-Identifier: Apache-2.0
#include "daemon/report/report_text.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "daemon/report/gpu/gpu_dumps.h"
#include "daemon/report/host_facts_proto.h"
#include "daemon/report/incident_words.h"
#include "daemon/report/network/network_lines.h"
#include "daemon/report/wrap.h"

namespace rollcall {
namespace {

void AddFactLines(const Facts& facts, std::string* text) {
  for (const auto& [name, value] : facts) {
    *text += Wrap(absl::StrFormat("  %-13s ", name), std::string(16, ' '), value);
  }
}

template <typename Lines>
void AddListLines(const std::string& title, const Lines& lines, std::string* text) {
  if (lines.empty()) return;
  *text += absl::StrCat("\n", title, "\n");
  for (const auto& line : lines) *text += Wrap("  - ", "    ", line);
}

void AddTable(const std::string& title, const std::vector<std::string>& lines, std::string* text) {
  if (lines.empty()) return;
  *text += absl::StrCat("\n", title, "\n");
  for (const std::string& line : lines) *text += "  " + line.substr(0, kTextColumns - 2) + "\n";
}

void AddVerdictLines(const v1::Verdict& verdict, bool is_first, std::string* text) {
  if (!is_first) {
    *text += absl::StrCat("\n", std::string(72, '-'), "\n",
                          verdict.is_consequence() ? "A consequence\n\n" : "Also found\n\n");
    *text += Wrap("", "", verdict.summary());
    *text += "\n";
  }
  AddFactLines(VerdictFacts(verdict), text);
  AddListLines("Culprits", CulpritLines(verdict), text);
  AddTable("Calls of the others and of the culprits", HistoryLines(verdict), text);
  AddListLines("Which rank waits for which", ChainLines(verdict), text);
  AddListLines("Inside the call", NetworkLines(verdict), text);
  std::vector<std::string> advice;
  for (const v1::Advice& a : verdict.advice()) {
    advice.push_back(absl::StrCat(a.id(), ": ", a.text()));
  }
  AddListLines("What to do", advice, text);
  AddListLines("Evidence", verdict.evidence(), text);
  AddListLines("Missing evidence", verdict.missing_evidence(), text);
}

}  // namespace

std::string ToText(const v1::Incident& incident) {
  std::string text = Wrap("", "", Headline(incident));
  text += "\n";
  AddFactLines(IncidentFacts(incident), &text);
  bool is_first = true;
  for (const v1::Verdict& verdict : incident.verdicts()) {
    AddVerdictLines(verdict, is_first, &text);
    is_first = false;
  }
  AddListLines("What the hosts show", HostFactLines(incident), &text);
  AddListLines("What the GPUs did", GpuDumpLines(incident), &text);
  if (!incident.stacks().empty()) {
    text += absl::StrCat("\nStacks of ", incident.stacks_size(),
                         incident.stacks_size() == 1 ? " process" : " processes",
                         " are in stacks.txt of the report's folder.\n");
  }
  return text;
}

}  // namespace rollcall
