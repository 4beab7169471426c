// SPDX-License-Identifier: Apache-2.0
#include "cli/doctor_lines.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/clean_text.h"
#include "daemon/report/wrap.h"

namespace rollcall {
namespace {

using doctor::Finding;
using doctor::State;

constexpr char kIndent[] = "                          ";

struct Look {
  const char* word;
  LineStyle style;
};

Look LookOf(State state) {
  switch (state) {
    case State::kOk:
      return {"ok", LineStyle::kGood};
    case State::kWarning:
      return {"warning", LineStyle::kWorse};
    case State::kProblem:
      return {"PROBLEM", LineStyle::kBad};
    case State::kNotApplicable:
      break;
  }
  return {"-", LineStyle::kSoft};
}

void AddWrappedAdvice(const std::string& first, const std::string& text, LineStyle style,
                      std::vector<StatusLine>* lines) {
  std::istringstream wrapped(Wrap(first, kIndent, text));
  for (std::string line; std::getline(wrapped, line);) lines->push_back({line, style});
}

void AddFinding(const Finding& finding, std::vector<StatusLine>* lines) {
  const Look look = LookOf(finding.judgement.state);
  AddWrappedAdvice(absl::StrFormat("%-9s%-17s", look.word, finding.id), finding.judgement.what,
                   look.style, lines);
  if (finding.judgement.next.empty()) return;
  AddWrappedAdvice(absl::StrCat(kIndent, "type:  "), finding.judgement.next, LineStyle::kPlain,
                   lines);
}

long Count(const std::vector<Finding>& findings, State state) {
  return std::count_if(findings.begin(), findings.end(), [state](const Finding& finding) {
    return finding.judgement.state == state;
  });
}

std::string Number(long count, const char* word) {
  return absl::StrCat(count, " ", word, count == 1 ? "" : "s");
}

// "Rollcall has found 1 problem and 2 warnings; 20 checks passed and 6 did not apply."
std::string Outcome(const std::vector<Finding>& findings) {
  const long problems = Count(findings, State::kProblem);
  const long warnings = Count(findings, State::kWarning);
  const long skipped = Count(findings, State::kNotApplicable);
  const std::string rest =
      absl::StrCat(Number(Count(findings, State::kOk), "check"), " passed",
                   skipped == 0 ? "" : absl::StrCat(" and ", skipped, " did not apply"));
  if (problems == 0 && warnings == 0) return absl::StrCat("Rollcall can work here: ", rest, ".");
  const std::string found =
      absl::StrCat(Number(problems, "problem"), " and ", Number(warnings, "warning"));
  return absl::StrCat(problems == 0 ? "Rollcall can work here, with " : "Rollcall has found ",
                      problems == 0 ? Number(warnings, "warning") : found, "; ", rest, ".");
}

std::vector<StatusLine> OutcomeLines(const std::vector<Finding>& findings) {
  const LineStyle style =
      Count(findings, State::kProblem) > 0 ? LineStyle::kBad : LineStyle::kTitle;
  std::vector<StatusLine> lines;
  AddWrappedAdvice("", Outcome(findings), style, &lines);
  lines.push_back({});
  return lines;
}

}  // namespace

std::vector<StatusLine> DoctorLines(const std::vector<Finding>& findings) {
  std::vector<StatusLine> lines = OutcomeLines(findings);
  for (const bool applies : {true, false}) {
    for (const Finding& finding : findings) {
      if ((finding.judgement.state != State::kNotApplicable) == applies)
        AddFinding(finding, &lines);
    }
  }
  return lines;
}

std::string DoctorJson(const std::vector<Finding>& findings, const std::string& version,
                       const std::string& host) {
  nlohmann::ordered_json checks = nlohmann::ordered_json::array();
  for (const Finding& finding : findings) {
    checks.push_back({{"id", finding.id},
                      {"state", doctor::NameOf(finding.judgement.state)},
                      {"what", CleanText(finding.judgement.what)},
                      {"type_next", CleanText(finding.judgement.next)}});
  }
  const nlohmann::ordered_json all = {{"version", version},
                                      {"host", CleanText(host)},
                                      {"problems", Count(findings, State::kProblem)},
                                      {"warnings", Count(findings, State::kWarning)},
                                      {"checks", checks}};
  return all.dump(2);
}

}  // namespace rollcall
