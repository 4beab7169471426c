// SPDX-License-Identifier: Apache-2.0
#include "cli/incidents/incident_counts.h"

#include <algorithm>
#include <iostream>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "daemon/access/clean_message.h"
#include "daemon/report/incident_words.h"

namespace rollcall {
namespace {

constexpr size_t kWidest = 60;  // a column of values

struct Unit {
  char letter;
  int64_t seconds;
};
constexpr Unit kUnits[] = {{'d', 86'400}, {'h', 3600}, {'m', 60}, {'s', 1}};
constexpr int64_t kMostSeconds = int64_t{100} * 365 * 86'400;

std::string HoursInWords(double seconds) { return absl::StrFormat("%.1f h", seconds / 3600); }

void Print(const v1::CountIncidentsRequest& request, const v1::CountIncidentsResponse& response) {
  size_t width = request.by().size();
  for (const v1::IncidentCount& count : response.counts()) {
    width = std::max(width, std::min(count.value().size(), kWidest));
  }
  if (!response.counts().empty()) {
    std::cout << absl::StrFormat("%-*s  incidents  certain   rank-hours  newest\n",
                                 static_cast<int>(width), request.by());
  }
  for (const v1::IncidentCount& count : response.counts()) {
    std::cout << absl::StrFormat("%-*s  %9d  %7d  %11s  %s  %s\n", static_cast<int>(width),
                                 count.value(), count.incidents(), count.certain_incidents(),
                                 HoursInWords(count.lost_rank_seconds()), TimeInWords(count.last()),
                                 count.newest());
  }
  if (response.counts().empty())
    std::cout << "no confirmed incident has a " << request.by() << " here\n";
  if (response.total() > response.counts_size()) {
    std::cout << response.counts_size() << " of " << response.total() << "; more:  --limit=N\n";
  }
  if (!response.note().empty()) std::cout << "note: " << response.note() << "\n";
}

}  // namespace

int64_t SinceSeconds(const std::string& text) {
  if (text.empty()) return 0;
  int64_t number = 0;
  for (const Unit& unit : kUnits) {
    const absl::string_view digits = absl::string_view(text).substr(0, text.size() - 1);
    if (text.back() != unit.letter || !absl::SimpleAtoi(digits, &number)) continue;
    return number > 0 && number <= kMostSeconds / unit.seconds ? number * unit.seconds : 0;
  }
  return 0;
}

int PrintIncidentCounts(const v1::CountIncidentsRequest& request, const std::string& format,
                        DaemonQuery* query) {
  v1::CountIncidentsResponse response;
  const bool answered = query->AskPatiently("incidents", [&](auto* stub, auto* context) {
    return stub->CountIncidents(context, request, &response);
  });
  if (!answered) return query->exit_code();
  CleanStrings(&response);
  if (format == "json") {
    PrintJson(response);
  } else {
    Print(request, response);
  }
  return 0;
}

}  // namespace rollcall
