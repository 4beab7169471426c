// SPDX-License-Identifier: Apache-2.0
#include "daemon/report/trace.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "daemon/words/rank_ranges.h"
#include "interpose/ops.h"
#include "rollcall/v1/incident.pb.h"
#include "rollcall/v1/query.pb.h"

namespace rollcall {
namespace {

using Json = nlohmann::ordered_json;

// Above all ranks, so that the incident has a process of its own.
constexpr int32_t kIncidentPid = 1'000'000'000;

double TraceSeconds(const google::protobuf::Timestamp& time) {
  return static_cast<double>(time.seconds()) + time.nanos() / 1e9;
}

std::string InRfc3339(double seconds) {
  const int64_t whole = static_cast<int64_t>(std::floor(seconds));
  const int64_t micros = std::llround((seconds - static_cast<double>(whole)) * 1e6);
  return absl::FormatTime("%Y-%m-%dT%H:%M:%E6SZ",
                          absl::FromUnixSeconds(whole) + absl::Microseconds(micros),
                          absl::UTCTimeZone());
}

// The host is inside the call, or the GPU has not finished it.
bool IsOpen(const v1::CallSpan& span) { return span.returned_seconds() == 0 || span.waits(); }

double LastMoment(const v1::CallSpan& span) {
  return std::max(span.entered_seconds(), span.returned_seconds());
}

template <typename Visit>
void ForEachCall(const v1::CallsResponse& calls, const Visit& visit) {
  for (const v1::RankCalls& rank : calls.ranks()) {
    for (const v1::CommunicatorCalls& comm : rank.communicators()) {
      for (const v1::CallSpan& span : comm.calls()) visit(span);
    }
  }
}

std::set<std::string> NamesOfP2p() {
  std::set<std::string> names;
  for (uint32_t code = 1; code <= UINT8_MAX; ++code) {
    const Op op = static_cast<Op>(code);
    if (OpKind(op) == CallKind::kP2p) names.insert(OpName(op));
  }
  return names;
}

// Only these take no position.
bool IsPointToPoint(const std::string& operation) {
  static const std::set<std::string> names = NamesOfP2p();
  return names.count(operation) > 0;
}

std::string CallName(const v1::Call& call) {
  const std::string operation = call.operation().empty() ? "a call" : call.operation();
  if (IsPointToPoint(operation)) {
    return call.root() < 0 ? operation : absl::StrCat(operation, " peer ", call.root());
  }
  return absl::StrCat(operation, " #", static_cast<int64_t>(call.position()));
}

// Deals the calls of one rank on one communicator out to lanes, in each of which a call begins
// after the one before has ended. Viewers draw overlapping calls of one lane wrongly.
std::vector<std::vector<const v1::CallSpan*>> DealOut(const v1::CommunicatorCalls& comm) {
  std::vector<const v1::CallSpan*> spans;
  for (const v1::CallSpan& span : comm.calls()) spans.push_back(&span);
  std::stable_sort(spans.begin(), spans.end(), [](const auto* a, const auto* b) {
    return a->entered_seconds() < b->entered_seconds();
  });
  std::vector<std::vector<const v1::CallSpan*>> lanes;
  for (const v1::CallSpan* span : spans) {
    const auto free = std::find_if(lanes.begin(), lanes.end(), [span](const auto& lane) {
      return !IsOpen(*lane.back()) && lane.back()->returned_seconds() <= span->entered_seconds();
    });
    if (free == lanes.end()) {
      lanes.push_back({span});
    } else {
      free->push_back(span);
    }
  }
  return lanes;
}

class TraceWriter {
 public:
  TraceWriter(const v1::CallsResponse& calls, bool from_incident, const v1::Incident& incident,
              const TraceOptions& options)
      : calls_(calls),
        from_incident_(from_incident),
        incident_(incident),
        options_(options),
        coverage_(CoverageOf(calls)) {
    base_seconds_ = std::floor(FirstMoment());
    end_seconds_ = EndMoment();
    if (incident.verdicts_size() == 0) return;
    const auto& culprits = incident.verdicts(0).culprits();
    for (const v1::Culprit& culprit : culprits) culprits_.emplace(culprit.rank(), &culprit);
  }

  std::string Write() {
    WriteIncident();
    for (const v1::RankCalls& rank : calls_.ranks()) WriteRank(rank);
    const Json trace = {
        {"displayTimeUnit", "ms"},
        {"baseTimeNanoseconds", static_cast<int64_t>(base_seconds_) * 1'000'000'000},
        {"otherData", Metadata()},
        {"traceEvents", std::move(events_)}};
    return trace.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  }

 private:
  double FirstMoment() const {
    double first = coverage_.from_seconds;
    if (incident_.has_opened_at()) first = std::min(first, TraceSeconds(incident_.opened_at()));
    return first;
  }

  // Returns the moment until which calls that have not ended are drawn.
  double EndMoment() const {
    const double end = incident_.has_closed_at() ? TraceSeconds(incident_.closed_at())
                                                 : TraceSeconds(calls_.now());
    return std::max(end, coverage_.until_seconds);
  }

  int64_t Ns(double seconds) const { return std::llround((seconds - base_seconds_) * 1e9); }

  Json Event(const char* kind, const std::string& name, int32_t pid, int tid,
             double seconds) const {
    return {{"name", name}, {"cat", "rollcall"}, {"ph", kind},
            {"pid", pid},   {"tid", tid},        {"ts", static_cast<double>(Ns(seconds)) / 1e3}};
  }

  void AddName(const char* what, int32_t pid, int tid, const char* key, const Json& value) {
    events_.push_back({{"name", what},
                       {"ph", "M"},
                       {"pid", pid},
                       {"tid", tid},
                       {"ts", 0},
                       {"args", {{key, value}}}});
  }

  void WriteIncident() {
    if (incident_.id().empty()) return;
    AddName("process_name", kIncidentPid, 1, "name", absl::StrCat("incident ", incident_.id()));
    AddName("process_sort_index", kIncidentPid, 1, "sort_index", -1);
    AddName("thread_name", kIncidentPid, 1, "name", "life of the incident");
    const auto mark = [this](const char* name, bool known, const auto& time) {
      if (!known) return;
      Json event = Event("i", name, kIncidentPid, 1, TraceSeconds(time));
      event["s"] = "g";
      event["args"] = {{"at", InRfc3339(TraceSeconds(time))}};
      if (incident_.verdicts_size() > 0) event["args"]["summary"] = incident_.verdicts(0).summary();
      events_.push_back(std::move(event));
    };
    mark("opened", incident_.has_opened_at(), incident_.opened_at());
    mark("confirmed", incident_.has_confirmed_at(), incident_.confirmed_at());
    mark("closed", incident_.has_closed_at(), incident_.closed_at());
  }

  void WriteRank(const v1::RankCalls& rank) {
    AddName("process_name", rank.rank(), 0, "name", absl::StrCat("rank ", rank.rank()));
    AddName("process_sort_index", rank.rank(), 0, "sort_index", rank.rank());
    const auto culprit = culprits_.find(rank.rank());
    if (culprit != culprits_.end()) {
      AddName("process_labels", rank.rank(), 0, "labels", LabelOf(*culprit->second));
    }
    int tid = 0;
    for (const v1::CommunicatorCalls& comm : rank.communicators()) {
      bool is_first = true;
      for (const auto& lane : DealOut(comm)) {
        ++tid;
        AddName("thread_name", rank.rank(), tid, "name",
                absl::StrCat(NameOf(comm.communicator()), is_first ? "" : ", at the same time"));
        AddName("thread_sort_index", rank.rank(), tid, "sort_index", tid);
        for (const v1::CallSpan* span : lane) WriteCall(rank.rank(), tid, comm, *span);
        is_first = false;
      }
    }
  }

  std::string LabelOf(const v1::Culprit& culprit) const {
    const v1::Verdict& verdict = incident_.verdicts(0);
    std::string label = absl::StrCat("culprit, ", verdict.cause(), ", ", verdict.certainty());
    if (!culprit.host().empty()) absl::StrAppend(&label, ", ", culprit.host());
    if (culprit.pid() > 0) absl::StrAppend(&label, ", pid ", culprit.pid());
    return label;
  }

  std::string NameOf(const v1::CommunicatorRef& comm) const {
    if (options_.with_names && !comm.name().empty()) return comm.name();
    return comm.id().substr(0, 8);
  }
  std::string NameOf(const v1::Call& call) const { return CallName(call); }

  void WriteCall(int32_t rank, int tid, const v1::CommunicatorCalls& comm,
                 const v1::CallSpan& span) {
    const std::string name = NameOf(span.call());
    const Json args = ArgsOf(rank, comm, span);
    Json event = Event(IsOpen(span) ? "B" : "X", name, rank, tid, span.entered_seconds());
    event["args"] = args;
    if (!IsOpen(span)) {
      const int64_t ns = Ns(span.returned_seconds()) - Ns(span.entered_seconds());
      event["dur"] = static_cast<double>(std::max<int64_t>(ns, 0)) / 1e3;
    }
    events_.push_back(std::move(event));
    if (!IsOpen(span)) return;
    Json mark = Event("i", absl::StrCat(name, span.waits() ? " waits" : " has not returned"), rank,
                      tid, end_seconds_);
    mark["s"] = "t";
    mark["args"] = args;
    events_.push_back(std::move(mark));
  }

  Json ArgsOf(int32_t rank, const v1::CommunicatorCalls& comm, const v1::CallSpan& span) const {
    const v1::Call& call = span.call();
    Json args = {{"communicator", NameOf(comm.communicator())},
                 {"communicator_id", comm.communicator().id()},
                 {"communicator_size", comm.communicator().size()},
                 {"position", static_cast<int64_t>(call.position())},
                 {"dtype", call.dtype()},
                 {"count", static_cast<int64_t>(call.count())}};
    if (comm.rank_in_communicator() >= 0) {
      args["rank_in_communicator"] = comm.rank_in_communicator();
    }
    if (!call.reduction().empty()) args["reduction"] = call.reduction();
    if (call.root() >= 0) args["root"] = call.root();
    if (!call.shape().empty()) args["shape"] = call.shape();
    if (!call.logical().empty()) args["logical"] = call.logical();
    if (options_.with_names && !call.code().empty()) args["code"] = call.code();
    if (!span.gpu().empty()) args["gpu"] = span.gpu();
    args["entered_at"] = InRfc3339(span.entered_seconds());
    args["state"] = span.waits() ? "waits" : IsOpen(span) ? "has not returned" : "returned";
    if (span.waits() && span.returned_seconds() > 0) {
      args["host_returned_at"] = InRfc3339(span.returned_seconds());
    }
    if (culprits_.count(rank) > 0) args["culprit"] = true;
    AddVerdict(comm.communicator(), call, &args);
    return args;
  }

  // The verdict on this call, if there is one.
  void AddVerdict(const v1::CommunicatorRef& comm, const v1::Call& call, Json* args) const {
    for (const v1::Verdict& verdict : incident_.verdicts()) {
      if (verdict.communicator().id() != comm.id() ||
          verdict.call().position() != call.position() || IsPointToPoint(call.operation())) {
        continue;
      }
      (*args)["cause"] = verdict.cause();
      (*args)["certainty"] = verdict.certainty();
      (*args)["culprits"] = verdict.culprit_ranks();
      return;
    }
  }

  Json Metadata() const {
    std::vector<int32_t> ranks;
    for (const v1::RankCalls& rank : calls_.ranks()) ranks.push_back(rank.rank());
    Json data = {{"format", "rollcall-trace-1"},
                 {"job", incident_.job()},
                 {"tenant", incident_.tenant()},
                 {"attempt", incident_.attempt()},
                 {"ranks", RankRanges(ranks).List()},
                 {"calls", coverage_.calls},
                 {"source", from_incident_ ? "incident" : "calls"},
                 {"covers_from", InRfc3339(coverage_.from_seconds)},
                 {"covers_until", InRfc3339(end_seconds_)},
                 {"ts_begins_at", InRfc3339(base_seconds_)}};
    if (incident_.id().empty()) return data;
    data["incident"] = incident_.id();
    data["incident_state"] = incident_.state();
    if (incident_.has_opened_at())
      data["opened_at"] = InRfc3339(TraceSeconds(incident_.opened_at()));
    if (incident_.verdicts_size() == 0) return data;
    const v1::Verdict& verdict = incident_.verdicts(0);
    data["cause"] = verdict.cause();
    data["certainty"] = verdict.certainty();
    data["culprits"] = verdict.culprit_ranks();
    data["summary"] = verdict.summary();
    return data;
  }

  const v1::CallsResponse& calls_;
  const bool from_incident_;
  const v1::Incident& incident_;
  const TraceOptions options_;
  const TraceCoverage coverage_;
  double base_seconds_ = 0;  // ts 0
  double end_seconds_ = 0;
  std::map<int32_t, const v1::Culprit*> culprits_;  // of the root cause
  Json events_ = Json::array();
};

}  // namespace

TraceCoverage CoverageOf(const v1::CallsResponse& calls) {
  TraceCoverage coverage;
  double from = std::numeric_limits<double>::infinity();
  ForEachCall(calls, [&](const v1::CallSpan& span) {
    ++coverage.calls;
    from = std::min(from, span.entered_seconds());
    coverage.until_seconds = std::max(coverage.until_seconds, LastMoment(span));
  });
  if (coverage.calls > 0) coverage.from_seconds = from;
  for (const v1::RankCalls& rank : calls.ranks()) {
    coverage.ranks += std::any_of(rank.communicators().begin(), rank.communicators().end(),
                                  [](const auto& comm) { return comm.calls_size() > 0; });
  }
  return coverage;
}

v1::CallsResponse CallsBetween(v1::CallsResponse calls, double from_seconds, double until_seconds) {
  const auto is_outside = [&](const v1::CallSpan& span) {
    return span.entered_seconds() > until_seconds ||
           (!IsOpen(span) && span.returned_seconds() < from_seconds);
  };
  for (v1::RankCalls& rank : *calls.mutable_ranks()) {
    for (v1::CommunicatorCalls& comm : *rank.mutable_communicators()) {
      auto* spans = comm.mutable_calls();
      spans->erase(std::remove_if(spans->begin(), spans->end(), is_outside), spans->end());
    }
  }
  return calls;
}

v1::CallsResponse WaitsOf(const v1::Incident& incident) {
  v1::CallsResponse response;
  if (!incident.has_opened_at()) return response;
  *response.mutable_now() = incident.has_closed_at() ? incident.closed_at() : incident.opened_at();
  std::map<int32_t, v1::RankCalls> ranks;
  for (const v1::Verdict& verdict : incident.verdicts()) {
    for (const int32_t rank : verdict.waiting_ranks()) {
      v1::CommunicatorCalls* calls = ranks[rank].add_communicators();
      *calls->mutable_communicator() = verdict.communicator();
      calls->set_rank_in_communicator(-1);  // the incident does not keep it
      v1::CallSpan* span = calls->add_calls();
      *span->mutable_call() = verdict.call();
      span->mutable_call()->clear_code();  // of another rank, perhaps
      span->set_entered_seconds(TraceSeconds(incident.opened_at()));
      span->set_waits(true);
    }
  }
  for (auto& [rank, calls] : ranks) {
    calls.set_rank(rank);
    response.add_ranks()->Swap(&calls);
  }
  return response;
}

std::string ToTrace(const v1::CallsResponse& calls, bool from_incident,
                    const v1::Incident& incident, const TraceOptions& options) {
  return TraceWriter(calls, from_incident, incident, options).Write();
}

}  // namespace rollcall
