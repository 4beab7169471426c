// SPDX-License-Identifier: Apache-2.0
#include "daemon/report/trace.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "rollcall/v1/incident.pb.h"
#include "rollcall/v1/query.pb.h"

namespace rollcall {
namespace {

using nlohmann::json;

constexpr double kStart = 1'800'000'000;

v1::Incident MakeIncident() {
  v1::Incident incident;
  incident.set_id("train-1");
  incident.set_job("train");
  incident.set_tenant("default");
  incident.set_state("confirmed");
  incident.mutable_opened_at()->set_seconds(static_cast<int64_t>(kStart) + 8);
  v1::Verdict* verdict = incident.add_verdicts();
  verdict->set_cause("missing_rank");
  verdict->set_certainty("certain");
  verdict->set_culprit_ranks("3");
  verdict->set_summary("rank 3 has not called AllReduce #11");
  verdict->mutable_communicator()->set_id("a91f000000000000");
  verdict->mutable_communicator()->set_name("dp");
  verdict->mutable_call()->set_operation("AllReduce");
  verdict->mutable_call()->set_position(11);
  verdict->add_waiting_ranks(0);
  verdict->add_waiting_ranks(1);
  v1::Culprit* culprit = verdict->add_culprits();
  culprit->set_rank(3);
  culprit->set_host("node-17");
  culprit->set_pid(4121);
  return incident;
}

class Calls {
 public:
  Calls() { response_.mutable_now()->set_seconds(static_cast<int64_t>(kStart) + 60); }

  // Times after kStart; `returned` 0 if the call has not returned.
  v1::CallSpan* Add(int32_t rank, const std::string& operation, double position, double entered,
                    double returned) {
    v1::CallSpan* span = CommOf(rank)->add_calls();
    span->mutable_call()->set_operation(operation);
    span->mutable_call()->set_position(position);
    span->mutable_call()->set_dtype("float32");
    span->mutable_call()->set_count(1048576);
    span->mutable_call()->set_root(-1);
    span->set_entered_seconds(kStart + entered);
    span->set_returned_seconds(returned == 0 ? 0 : kStart + returned);
    return span;
  }
  const v1::CallsResponse& response() const { return response_; }

 private:
  v1::CommunicatorCalls* CommOf(int32_t rank) {
    for (v1::RankCalls& known : *response_.mutable_ranks()) {
      if (known.rank() == rank) return known.mutable_communicators(0);
    }
    v1::RankCalls* made = response_.add_ranks();
    made->set_rank(rank);
    v1::CommunicatorCalls* comm = made->add_communicators();
    comm->mutable_communicator()->set_id("a91f000000000000");
    comm->mutable_communicator()->set_name("dp");
    comm->mutable_communicator()->set_size(4);
    return comm;
  }
  v1::CallsResponse response_;
};

json Trace(const Calls& calls, const v1::Incident& incident = MakeIncident(),
           const TraceOptions& options = {}) {
  return json::parse(ToTrace(calls.response(), false, incident, options));
}

std::vector<json> EventsOf(const json& trace, const std::string& kind, int32_t rank) {
  std::vector<json> found;
  for (const json& event : trace["traceEvents"]) {
    if (event["ph"] == kind && event["pid"] == rank) found.push_back(event);
  }
  return found;
}

TEST(TraceTest, AnEndedCallIsACompleteEventWithItsArguments) {
  Calls calls;
  v1::CallSpan* span = calls.Add(3, "AllReduce", 10, 2.25, 2.5);
  span->mutable_call()->set_reduction("sum");
  span->mutable_call()->set_code("train.py:57 in step");
  const json event = EventsOf(Trace(calls), "X", 3).at(0);
  EXPECT_EQ(event["name"], "AllReduce #10");
  EXPECT_EQ(event["ts"], 250'000);  // after the whole second in which the trace begins
  EXPECT_EQ(event["dur"], 250'000);
  const json& args = event["args"];
  EXPECT_EQ(args["communicator"], "dp");
  EXPECT_EQ(args["dtype"], "float32");
  EXPECT_EQ(args["count"], 1048576);
  EXPECT_EQ(args["reduction"], "sum");
  EXPECT_EQ(args["code"], "train.py:57 in step");
  EXPECT_EQ(args["culprit"], true);
  EXPECT_EQ(args["entered_at"], "2027-01-15T08:00:02.250000Z");
  EXPECT_FALSE(args.contains("root")) << "the call has none";
  EXPECT_FALSE(args.contains("cause")) << "the verdict is about another call";
}

TEST(TraceTest, TimesCountFromABaseSoThatNoViewerRoundsThem) {
  Calls calls;
  calls.Add(0, "AllReduce", 10, 2.25, 2.5);
  const json trace = Trace(calls);
  EXPECT_EQ(trace["baseTimeNanoseconds"], 1'800'000'002'000'000'000);
  EXPECT_EQ(trace["otherData"]["ts_begins_at"], "2027-01-15T08:00:02.000000Z");
}

TEST(TraceTest, DrawsAWaitingCallOpenWithItsVerdict) {
  Calls calls;
  calls.Add(0, "AllReduce", 11, 3, 3.125)->set_waits(true);
  const json trace = Trace(calls);
  EXPECT_TRUE(EventsOf(trace, "X", 0).empty());
  const json begin = EventsOf(trace, "B", 0).at(0);
  EXPECT_EQ(begin["args"]["state"], "waits");
  EXPECT_EQ(begin["args"]["cause"], "missing_rank");
  EXPECT_EQ(begin["args"]["certainty"], "certain");
  EXPECT_EQ(begin["args"]["culprits"], "3");
  EXPECT_EQ(begin["args"]["host_returned_at"], "2027-01-15T08:00:03.125000Z");
  const json mark = EventsOf(trace, "i", 0).at(0);
  EXPECT_EQ(mark["name"], "AllReduce #11 waits");
  EXPECT_EQ(mark["ts"], 57'000'000) << "the daemon's time of the answer";
}

TEST(TraceTest, ACallBesideAnOpenOneHasALaneOfItsOwn) {
  Calls calls;
  calls.Add(0, "AllReduce", 10, 1, 2);
  calls.Add(0, "AllReduce", 11, 3, 3.125)->set_waits(true);
  calls.Add(0, "AllReduce", 12, 4, 4.125);
  const json trace = Trace(calls);
  const std::vector<json> ended = EventsOf(trace, "X", 0);
  const json open = EventsOf(trace, "B", 0).at(0);
  EXPECT_EQ(ended.at(0)["tid"], open["tid"]);
  EXPECT_NE(ended.at(1)["tid"], open["tid"]);
}

TEST(TraceTest, CallsThatTouchStayInOneLane) {
  Calls calls;
  calls.Add(0, "AllReduce", 10, 1, 2);
  calls.Add(0, "AllReduce", 11, 2, 3);
  const std::vector<json> events = EventsOf(Trace(calls), "X", 0);
  EXPECT_EQ(events.at(0)["tid"], events.at(1)["tid"]);
}

TEST(TraceTest, ASendHasAPeerAndNoPosition) {
  Calls calls;
  calls.Add(0, "Send", 11, 3, 3.5)->mutable_call()->set_root(2);
  const json event = EventsOf(Trace(calls), "X", 0).at(0);
  EXPECT_EQ(event["name"], "Send peer 2");
  EXPECT_FALSE(event["args"].contains("cause")) << "position 11 is that of a collective";
}

TEST(TraceTest, OfAClosedIncidentOpenCallsEndWithIt) {
  Calls calls;
  calls.Add(0, "AllReduce", 11, 3, 0);
  v1::Incident incident = MakeIncident();
  incident.mutable_closed_at()->set_seconds(static_cast<int64_t>(kStart) + 30);
  const json mark = EventsOf(Trace(calls, incident), "i", 0).at(0);
  EXPECT_EQ(mark["name"], "AllReduce #11 has not returned");
  EXPECT_EQ(mark["ts"], 27'000'000);
}

TEST(TraceTest, RanksAreProcessesAndTheCulpritHasALabel) {
  Calls calls;
  calls.Add(3, "AllReduce", 10, 2, 2.5);
  std::string name, label;
  for (const json& event : EventsOf(Trace(calls), "M", 3)) {
    if (event["name"] == "process_name") name = event["args"]["name"];
    if (event["name"] == "process_labels") label = event["args"]["labels"];
  }
  EXPECT_EQ(name, "rank 3");
  EXPECT_EQ(label, "culprit, missing_rank, certain, node-17, pid 4121");
}

TEST(TraceTest, WithoutNamesThereAreNoCommunicatorNamesAndNoLinesOfCode) {
  Calls calls;
  calls.Add(0, "AllReduce", 10, 1, 2)->mutable_call()->set_code("secret.py:57 in step");
  TraceOptions options;
  options.with_names = false;
  const std::string text = ToTrace(calls.response(), false, MakeIncident(), options);
  EXPECT_EQ(text.find("secret.py"), std::string::npos);
  EXPECT_EQ(text.find("\"dp\""), std::string::npos);
  EXPECT_NE(text.find("\"a91f0000\""), std::string::npos);
}

TEST(TraceTest, MetadataSaysWhatTheTraceCovers) {
  Calls calls;
  calls.Add(0, "AllReduce", 10, 1, 2);
  calls.Add(2, "AllReduce", 10, 1.5, 4);
  const json data = Trace(calls)["otherData"];
  EXPECT_EQ(data["source"], "calls");
  EXPECT_EQ(data["ranks"], "0,2");
  EXPECT_EQ(data["calls"], 2);
  EXPECT_EQ(data["covers_from"], "2027-01-15T08:00:01.000000Z");
  EXPECT_EQ(data["covers_until"], "2027-01-15T08:01:00.000000Z");
  EXPECT_EQ(data["incident"], "train-1");
}

TEST(TraceTest, TextThatIsNotUtf8DoesNotBreakTheJson) {
  Calls calls;
  v1::Incident incident = MakeIncident();
  incident.set_job("a\xff\"b");
  calls.Add(0, "AllReduce", 10, 1, 2);
  EXPECT_EQ(Trace(calls, incident)["otherData"]["job"], "a\xEF\xBF\xBD\"b");
}

TEST(CoverageTest, IsOfTheCallsAndOfTheRanksThatHaveSome) {
  Calls calls;
  calls.Add(0, "AllReduce", 10, 1, 2);
  calls.Add(0, "AllReduce", 11, 3, 0);
  v1::CallsResponse response = calls.response();
  response.add_ranks()->set_rank(1);  // without calls
  const TraceCoverage coverage = CoverageOf(response);
  EXPECT_EQ(coverage.calls, 2u);
  EXPECT_EQ(coverage.ranks, 1u);
  EXPECT_EQ(coverage.from_seconds, kStart + 1);
  EXPECT_EQ(coverage.until_seconds, kStart + 3);
  EXPECT_EQ(CoverageOf(v1::CallsResponse()).calls, 0u);
}

TEST(TraceTest, AJobWithoutAnIncidentHasItsCallsOnly) {
  Calls calls;
  calls.Add(0, "AllReduce", 10, 1, 2);
  v1::Incident job;
  job.set_job("train");
  job.set_tenant("team");
  const json trace = Trace(calls, job);
  EXPECT_EQ(trace["otherData"]["job"], "train");
  EXPECT_EQ(trace["otherData"]["tenant"], "team");
  EXPECT_FALSE(trace["otherData"].contains("incident"));
  EXPECT_EQ(trace.dump().find("life of the incident"), std::string::npos);
}

TEST(CallsBetweenTest, KeepsCallsOfWhichAPartLiesBetween) {
  Calls calls;
  calls.Add(0, "AllReduce", 10, 1, 2);
  calls.Add(0, "AllReduce", 11, 3, 5);
  calls.Add(0, "AllReduce", 12, 7, 8);
  calls.Add(1, "AllReduce", 11, 1, 0);
  const v1::CallsResponse kept = CallsBetween(calls.response(), kStart + 4, kStart + 6);
  ASSERT_EQ(kept.ranks(0).communicators(0).calls_size(), 1);
  EXPECT_EQ(kept.ranks(0).communicators(0).calls(0).call().position(), 11);
  EXPECT_EQ(kept.ranks(1).communicators(0).calls_size(), 1) << "it has not returned";
  EXPECT_EQ(CoverageOf(CallsBetween(calls.response(), 0, kStart)).calls, 0u);
}

TEST(WaitsOfTest, AnIncidentAloneShowsWhoWaitedFromItsOpeningToItsEnd) {
  v1::Incident incident = MakeIncident();
  incident.mutable_closed_at()->set_seconds(static_cast<int64_t>(kStart) + 30);
  const v1::CallsResponse waits = WaitsOf(incident);
  EXPECT_EQ(CoverageOf(waits).ranks, 2u);
  const json trace = json::parse(ToTrace(waits, true, incident));
  EXPECT_EQ(trace["otherData"]["source"], "incident");
  const json begin = EventsOf(trace, "B", 1).at(0);
  EXPECT_EQ(begin["name"], "AllReduce #11");
  EXPECT_EQ(begin["ts"], 0);
  EXPECT_FALSE(begin["args"].contains("rank_in_communicator")) << "the incident does not keep it";
  EXPECT_EQ(EventsOf(trace, "i", 1).at(0)["ts"], 22'000'000);
}

TEST(WaitsOfTest, AnIncidentWithoutWaitingRanksHasNone) {
  v1::Incident incident = MakeIncident();
  incident.mutable_verdicts(0)->clear_waiting_ranks();
  EXPECT_EQ(CoverageOf(WaitsOf(incident)).calls, 0u);
}

}  // namespace
}  // namespace rollcall
