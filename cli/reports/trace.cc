// SPDX-License-Identifier: Apache-2.0
#include "cli/reports/trace.h"

#include <algorithm>
#include <iostream>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "cli/output_file.h"
#include "cli/query.h"
#include "daemon/access/clean_message.h"
#include "daemon/words/rank_ranges.h"
#include "rollcall/v1/query.pb.h"

namespace rollcall {
namespace {

// As many as the daemon gives in one answer, and as many calls as it keeps of each communicator.
constexpr size_t kMostRanks = 64;
constexpr int kMostCalls = 1024;

bool WriteTrace(const std::string& path, const std::string& text) {
  const absl::Status written = WriteOutputFile(path, text);
  if (written.ok()) return true;
  std::cerr << "rollcall report: " << written.message()
            << "\n  give --trace a file in a folder where you may write\n";
  return false;
}

std::string InUtc(double seconds) {
  return absl::FormatTime("%Y-%m-%d %H:%M:%S UTC",
                          absl::FromUnixMillis(static_cast<int64_t>(seconds * 1000)),
                          absl::UTCTimeZone());
}

// False if the daemon does not answer; this function has printed why. `*is_gone`: the daemon has
// removed the job.
bool AskForCalls(const TraceRequest& request, DaemonQuery* daemon, const v1::Incident& incident,
                 v1::CallsResponse* calls, bool* is_gone) {
  v1::CallsRequest wanted;
  wanted.set_job(incident.job());
  wanted.set_tenant(incident.tenant());
  wanted.set_attempt(incident.attempt());
  wanted.set_limit(kMostCalls);
  for (const int32_t rank : request.ranks) wanted.add_ranks(rank);
  const bool answered = daemon->Ask("report", [&](auto* stub, auto* context) {
    const grpc::Status status = stub->GetCalls(context, wanted, calls);
    *is_gone = status.error_code() == grpc::StatusCode::NOT_FOUND;
    return *is_gone ? grpc::Status::OK : status;
  });
  CleanStrings(calls);
  return answered;
}

// The waits that the incident keeps, of the ranks that the person wants.
v1::CallsResponse WaitsFor(const TraceRequest& request, const v1::Incident& incident) {
  v1::CallsResponse waits = WaitsOf(incident);
  if (!request.only_these) return waits;
  auto* ranks = waits.mutable_ranks();
  ranks->erase(std::remove_if(ranks->begin(), ranks->end(),
                              [&request](const v1::RankCalls& rank) {
                                return !std::binary_search(request.ranks.begin(),
                                                           request.ranks.end(), rank.rank());
                              }),
               ranks->end());
  return waits;
}

// Says that there is nothing to write.
int RefuseEmptyTrace(const TraceRequest& request, const std::string& id, bool is_gone) {
  std::cerr << "rollcall report: no trace: the daemon "
            << (is_gone ? "no longer has the calls of this job" : "has no calls");
  if (request.only_these) {
    std::cerr << (is_gone ? ", and the incident no wait" : "") << " of "
              << RankRanges(request.ranks).InWords();
  } else {
    std::cerr << ", and the incident names no waiting rank";
  }
  std::cerr << "\n  the verdict and the stacks:  rollcall report " << id << "\n";
  return 1;
}

}  // namespace

std::vector<int32_t> RanksForTrace(const v1::Incident& incident) {
  std::set<int32_t> ranks;
  const auto add = [&ranks](int32_t rank) {
    if (rank >= 0 && ranks.size() < kMostRanks) ranks.insert(rank);
  };
  for (const v1::Verdict& verdict : incident.verdicts()) {
    for (const v1::Culprit& culprit : verdict.culprits()) add(culprit.rank());
  }
  for (const v1::Verdict& verdict : incident.verdicts()) {
    for (const int32_t rank : verdict.waiting_ranks()) add(rank);
  }
  for (int32_t rank = 0; ranks.size() < kMostRanks; ++rank) add(rank);
  return {ranks.begin(), ranks.end()};
}

std::vector<int32_t> ParseTraceRanks(const std::string& text) {
  const RankRanges ranks(text);
  if (ranks.empty() || ranks.size() > kMostRanks || ranks.List() != text) return {};
  return ranks.First(kMostRanks);
}

std::string DescribeCoverage(const std::string& path, const TraceCoverage& coverage,
                             bool from_incident, double opened_seconds) {
  std::string text = absl::StrCat("rollcall report: ", path, ": ");
  if (from_incident) {
    return absl::StrCat(text, "the daemon no longer has the calls of this job, so the trace holds ",
                        "only the waits of the verdict, from the opening of the incident at ",
                        InUtc(opened_seconds), "\n");
  }
  absl::StrAppend(&text, coverage.calls, " calls of ", coverage.ranks,
                  coverage.ranks == 1 ? " rank" : " ranks", ", from ", InUtc(coverage.from_seconds),
                  " to ", InUtc(coverage.until_seconds), ": the newest that the daemon keeps\n");
  if (opened_seconds > 0 && coverage.from_seconds > opened_seconds) {
    absl::StrAppend(&text, "  the calls at the opening of the incident (", InUtc(opened_seconds),
                    ") are no longer among them\n");
  }
  return text;
}

int WriteTrace(const TraceRequest& request, DaemonQuery* daemon, const v1::Incident& named,
               const v1::Incident& shown) {
  v1::CallsResponse calls;
  bool is_gone = false;
  if (!AskForCalls(request, daemon, named, &calls, &is_gone)) return 1;
  TraceCoverage coverage = CoverageOf(calls);
  const bool from_incident = coverage.calls == 0 && (is_gone || !request.only_these);
  if (from_incident) {
    calls = WaitsFor(request, shown);
    coverage = CoverageOf(calls);
  }
  if (coverage.calls == 0) return RefuseEmptyTrace(request, named.id(), is_gone);
  if (!WriteTrace(request.path, ToTrace(calls, from_incident, shown, request.options))) return 1;
  const double opened =
      shown.has_opened_at() ? static_cast<double>(shown.opened_at().seconds()) : 0;
  std::cerr << DescribeCoverage(request.path, coverage, from_incident, opened)
            << "  open it in:  https://ui.perfetto.dev  or  chrome://tracing\n";
  return 0;
}

}  // namespace rollcall
