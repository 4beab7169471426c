// SPDX-License-Identifier: Apache-2.0
#include <google/protobuf/struct.pb.h>
#include <google/protobuf/util/json_util.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <limits>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <utility>

#include "base/read_file.h"
#include "daemon/diagnosis/diagnose.h"
#include "daemon/report/html.h"
#include "daemon/report/incident_proto.h"
#include "daemon/report/incident_words.h"
#include "daemon/report/json.h"
#include "daemon/report/report_files.h"
#include "daemon/report/report_text.h"
#include "daemon/report/stack_picture.h"
#include "daemon/report/stack_places.h"
#include "daemon/report/stacks_text.h"
#include "daemon/report/writer.h"
#include "job_builder.h"
#include "large_job.h"

namespace rollcall {
namespace {

using google::protobuf::Struct;
using google::protobuf::Value;

v1::Incident MakeIncident(const std::string& communicator = "dp",
                          const std::string& host = "node-3") {
  JobBuilder job(4);
  job.comm().name = communicator;
  job.process(3).host = host;
  job.Finish(24);
  job.Enter({0, 1, 2}, At(10));
  Incident incident;
  incident.id = "train-1";
  incident.job = JobKey("train");
  incident.state = IncidentState::kConfirmed;
  incident.opened_ns = At(25);
  incident.confirmed_ns = At(70);
  incident.verdicts = Diagnose(job.state, At(58.2), Limits());
  v1::Incident proto = ToProto(incident);
  proto.set_rollcall_version("0.1.0");
  return proto;
}

TEST(SitesTest, APlaceIsNamedOnce) {
  v1::Verdict v;
  for (const auto& [rank, at] : {std::pair(1, "/x/a.py:7 in f"), std::pair(3, "/x/a.py:7 in f"),
                                 std::pair(2, "/x/a.py:9 in g")}) {
    v1::Culprit& culprit = *v.add_culprits();
    culprit.set_rank(rank);
    culprit.set_at(at);
  }
  v1::SiteRanks& waiting = *v.add_waiting_at();
  waiting.set_at("/x/a.py:9 in g");
  waiting.add_ranks(0);
  waiting.add_ranks(2);
  EXPECT_EQ(SitesInWords(v), "ranks 1,3 at a.py:7 in f; ranks 0,2 at a.py:9 in g");
}

void AddStack(int rank, bool culprit, const std::string& function, v1::Incident* incident) {
  v1::ProcessStack& stack = *incident->add_stacks();
  stack.set_rank(rank);
  stack.set_host("node-" + std::to_string(rank));
  stack.set_pid(4000 + rank);
  stack.set_culprit(culprit);
  v1::ThreadStack& thread = *stack.add_threads();
  thread.set_tid(4000 + rank);
  thread.set_name("python");
  thread.set_state("S");
  v1::Frame& frame = *thread.add_frames();
  frame.set_function(function);
  frame.set_file("train.py");
  frame.set_line(212);
}

Struct ParseJson(const v1::Incident& incident) {
  const absl::StatusOr<std::string> json = ToJson(incident);
  EXPECT_TRUE(json.ok()) << json.status();
  Struct parsed;
  EXPECT_TRUE(google::protobuf::util::JsonStringToMessage(json.value_or("{}"), &parsed).ok());
  return parsed;
}

// Returns the field, which must be present and of this kind.
const Value& Get(const Struct& in, const std::string& name, Value::KindCase kind) {
  static const Value none;
  const auto it = in.fields().find(name);
  if (it == in.fields().end() || it->second.kind_case() != kind) {
    ADD_FAILURE() << name << (it == in.fields().end() ? " is not there" : " has another type");
    return none;
  }
  return it->second;
}

Verdict WithOutside() {
  Verdict v;
  v.culprits.resize(1);
  v.culprits[0].rank = 3;
  v.places.resize(1);
  v.places[0].inside = "Popen.wait";
  v.handled = {3, {"ValueError", "bad shard", "/x/data.py:40 in load_shard"}};
  v.outside = {3, {{4123, "tar", 0.9}}, 0};
  v.socket = {3, {0, 1}, true};
  v.keeper = {3, {4124, "uploads", {"/x/train.py:40 in send_files", "Queue.get", true, ""}}};
  v.start_fault = StartFault::kWaitsElsewhere;
  v.awaited_key = "settings";
  v.standstill.shape = StandShape::kRing;
  v.standstill.in = StandKind::kFileLock;
  v.standstill.on = "/x/records";
  return v;
}

TEST(JsonTest, WhatStacksShowBesideTheLineHasFields) {
  v1::Incident incident;
  *incident.add_verdicts() = ToProto(WithOutside());
  const Value verdicts = Get(ParseJson(incident), "verdicts", Value::kListValue);
  const Struct& v = verdicts.list_value().values(0).struct_value();
  EXPECT_EQ(Get(v, "start_fault", Value::kStringValue).string_value(), "waits_elsewhere");
  const Struct& handled = Get(v, "handled", Value::kStructValue).struct_value();
  EXPECT_EQ(Get(handled, "rank", Value::kNumberValue).number_value(), 3);
  const Struct& exception = Get(handled, "exception", Value::kStructValue).struct_value();
  EXPECT_EQ(Get(exception, "type", Value::kStringValue).string_value(), "ValueError");
  const Struct& outside = Get(v, "outside", Value::kStructValue).struct_value();
  EXPECT_EQ(Get(outside, "inside", Value::kStringValue).string_value(), "Popen.wait");
  EXPECT_EQ(Get(outside, "received_bytes_per_second", Value::kNumberValue).number_value(), 0);
  const Value& children = Get(outside, "children", Value::kListValue);
  ASSERT_EQ(children.list_value().values_size(), 1);
  const Struct& child = children.list_value().values(0).struct_value();
  EXPECT_EQ(Get(child, "pid", Value::kNumberValue).number_value(), 4123);
  EXPECT_EQ(Get(child, "cpus", Value::kNumberValue).number_value(), 0.9);
  const Struct& socket = Get(v, "socket", Value::kStructValue).struct_value();
  EXPECT_EQ(Get(socket, "others", Value::kListValue).list_value().values_size(), 2);
  EXPECT_TRUE(Get(socket, "they_wait", Value::kBoolValue).bool_value());
  const Struct& keeper = Get(v, "keeper", Value::kStructValue).struct_value();
  EXPECT_EQ(Get(keeper, "tid", Value::kNumberValue).number_value(), 4124);
  EXPECT_EQ(Get(keeper, "inside", Value::kStringValue).string_value(), "Queue.get");
  EXPECT_EQ(Get(v, "awaited_key", Value::kStringValue).string_value(), "settings");
  const Struct& stand = Get(v, "standstill", Value::kStructValue).struct_value();
  EXPECT_EQ(Get(stand, "shape", Value::kStringValue).string_value(), "ring");
  EXPECT_EQ(Get(stand, "waits_in", Value::kStringValue).string_value(), "a file lock");
  EXPECT_EQ(Get(stand, "file", Value::kStringValue).string_value(), "/x/records");
}

TEST(JsonTest, WhatNoStackShowsIsAbsent) {
  v1::Incident incident;
  *incident.add_verdicts() = ToProto(Verdict());
  const Value verdicts = Get(ParseJson(incident), "verdicts", Value::kListValue);
  const Struct& v = verdicts.list_value().values(0).struct_value();
  for (const char* name : {"handled", "outside", "socket", "keeper", "standstill"}) {
    EXPECT_EQ(v.fields().count(name), 0u) << name;
  }
  EXPECT_EQ(Get(v, "start_fault", Value::kStringValue).string_value(), "");
}

// An incident in which every second of these ranks has not entered the call.
v1::Incident MakeLargeIncident(int32_t ranks) {
  Incident incident;
  incident.id = "large-1";
  incident.job = JobKey("large");
  incident.verdicts = Diagnose(large_job::MakeJob(large_job::Fault::kHalfMissing, ranks),
                               large_job::kNow, Limits());
  return ToProto(incident);
}

TEST(LargeIncidentTest, ListsSomeCulpritsAndCountsAll) {
  const v1::Incident incident = MakeLargeIncident(20'000);
  const v1::Verdict& v = incident.verdicts(0);
  EXPECT_EQ(v.culprits_size(), 1024);
  EXPECT_EQ(v.culprits_total(), 10'000);
  EXPECT_EQ(v.culprit_hosts_total(), 2500);
  EXPECT_EQ(v.culprit_ranks().substr(0, 6), "1,3,5,");
  EXPECT_EQ(v.waiting_ranks_size(), 1024);
  EXPECT_EQ(v.waiting_total(), 10'000);
  EXPECT_EQ(v.waiting_rank_ranges().substr(0, 6), "0,2,4,");
}

TEST(LargeIncidentTest, CountsAFewCulpritsToo) {
  const v1::Incident incident = MakeIncident();
  const v1::Verdict& v = incident.verdicts(0);
  EXPECT_EQ(v.culprits_total(), 1);
  EXPECT_EQ(v.culprit_ranks(), "3");
  EXPECT_EQ(v.culprit_hosts_total(), 1);
  EXPECT_EQ(v.waiting_total(), 3);
  EXPECT_EQ(v.waiting_rank_ranges(), "0-2");
}

TEST(LargeIncidentTest, NamesAHandfulInTheText) {
  const v1::Incident incident = MakeLargeIncident(20'000);
  const std::string wrapped = ToText(incident);
  EXPECT_LT(wrapped.size(), 20'000u);
  const std::string text = std::regex_replace(wrapped, std::regex("\\s+"), " ");
  EXPECT_NE(text.find("and 9936 more; all together: ranks 1,3,5,7,9,11,13,15 and 9992"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("and 9992 more (10000), for"), std::string::npos) << text;
  EXPECT_LT(ToHtml(incident, false).size(), 30'000u);
}

TEST(LargeIncidentTest, ListsSomeOfTheRanksThatAClaimStandsFor) {
  Incident incident;
  Verdict& verdict = incident.verdicts.emplace_back();
  Culprit& claim = verdict.culprits.emplace_back();
  claim.rank = 1;
  claim.ranks = 262'143;
  verdict.chain.emplace_back().to = {{1, 262'143}};
  const v1::Incident message = ToProto(incident);
  const v1::Verdict& v = message.verdicts(0);
  EXPECT_LT(message.ByteSizeLong(), 100'000u);
  ASSERT_EQ(v.culprits_size(), 1024);
  EXPECT_EQ(v.culprits(1023).rank(), 1024);
  EXPECT_EQ(v.culprits_total(), 262'143);
  EXPECT_EQ(v.culprit_ranks(), "1-262143");
  EXPECT_EQ(v.chain(0).to_size(), 1024);
  EXPECT_EQ(v.chain(0).to_total(), 262'143);
  EXPECT_EQ(v.chain(0).to_ranges(), "1-262143");
}

TEST(LargeIncidentTest, HasTheHostsOfCulpritsThatItDoesNotList) {
  const v1::Incident incident = MakeLargeIncident(20'000);
  const v1::Verdict& v = incident.verdicts(0);
  std::set<std::string> listed;
  for (const v1::Culprit& culprit : v.culprits()) listed.insert(culprit.host());
  std::set<std::string> all = listed;
  for (const std::string& host : v.other_culprit_hosts()) {
    EXPECT_TRUE(all.insert(host).second) << host;
  }
  EXPECT_LT(listed.size(), all.size());
  EXPECT_EQ(static_cast<int>(all.size()), v.culprit_hosts_total());
}

TEST(LargeIncidentTest, InvolvesRanksThatItDoesNotList) {
  const v1::Incident incident = MakeLargeIncident(20'000);
  const RankRanges involved = InvolvedRanks(incident.verdicts(0));
  EXPECT_EQ(involved.size(), 20'000u);
  EXPECT_TRUE(involved.Contains(19'999));
  // Earlier releases write no ranges.
  v1::Verdict former;
  former.add_culprits()->set_rank(3);
  former.add_waiting_ranks(1);
  EXPECT_EQ(InvolvedRanks(former).List(), "1,3");
}

TEST(LargeIncidentTest, FindsTheSitesOfWaitingRanksThatItDoesNotList) {
  v1::Incident incident = MakeLargeIncident(20'000);
  AddStack(19'998, false, "train", &incident);
  incident.mutable_stacks(0)->mutable_threads(0)->mutable_frames(0)->set_python(true);
  AddSites(&incident);
  const v1::Verdict& v = incident.verdicts(0);
  ASSERT_EQ(v.waiting_at_size(), 1);
  EXPECT_EQ(v.waiting_at(0).rank_ranges(), "19998");
  EXPECT_EQ(v.waiting_at(0).total(), 1);
  EXPECT_EQ(v.waiting_at_total(), 1);
}

TEST(JsonTest, HasEveryFieldThatScriptsRelyOn) {
  const Struct root = ParseJson(MakeIncident());
  EXPECT_EQ(Get(root, "job", Value::kStringValue).string_value(), "train");
  EXPECT_EQ(Get(root, "state", Value::kStringValue).string_value(), "confirmed");
  EXPECT_EQ(Get(root, "opened_at", Value::kStringValue).string_value(), "2023-11-14T22:13:45Z");
  const Value& verdicts = Get(root, "verdicts", Value::kListValue);
  ASSERT_EQ(verdicts.list_value().values_size(), 1);
  const Struct& v = verdicts.list_value().values(0).struct_value();
  EXPECT_EQ(Get(v, "cause", Value::kStringValue).string_value(), "missing_rank");
  EXPECT_EQ(Get(v, "certainty", Value::kStringValue).string_value(), "certain");
  const auto& culprits = Get(v, "culprits", Value::kListValue).list_value();
  ASSERT_EQ(culprits.values_size(), 1);
  const Struct& culprit = culprits.values(0).struct_value();
  EXPECT_EQ(Get(culprit, "rank", Value::kNumberValue).number_value(), 3);
  EXPECT_EQ(Get(culprit, "host", Value::kStringValue).string_value(), "node-3");
  EXPECT_EQ(Get(culprit, "pid", Value::kNumberValue).number_value(), 4003);
  EXPECT_EQ(Get(culprit, "device", Value::kNumberValue).number_value(), 3);
  const auto& waiting = Get(v, "waiting_ranks", Value::kListValue).list_value();
  ASSERT_EQ(waiting.values_size(), 3);
  EXPECT_EQ(waiting.values(0).number_value(), 0);
  const Struct& comm = Get(v, "communicator", Value::kStructValue).struct_value();
  EXPECT_EQ(Get(comm, "id", Value::kStringValue).string_value(), "a91f0c2200000001");
  EXPECT_EQ(Get(comm, "name", Value::kStringValue).string_value(), "dp");
  EXPECT_EQ(Get(comm, "size", Value::kNumberValue).number_value(), 4);
  const Struct& call = Get(v, "call", Value::kStructValue).struct_value();
  EXPECT_EQ(Get(call, "position", Value::kNumberValue).number_value(), 24);
  EXPECT_EQ(Get(call, "operation", Value::kStringValue).string_value(), "AllReduce");
  EXPECT_EQ(Get(call, "dtype", Value::kStringValue).string_value(), "float32");
  EXPECT_EQ(Get(call, "count", Value::kNumberValue).number_value(), 1048576);
  EXPECT_EQ(Get(v, "mismatched_fields", Value::kListValue).list_value().values_size(), 0);
  EXPECT_DOUBLE_EQ(Get(v, "waited_seconds", Value::kNumberValue).number_value(), 48.2);
  EXPECT_NE(Get(v, "summary", Value::kStringValue).string_value(), "");
  const auto& advice = Get(v, "advice", Value::kListValue).list_value();
  ASSERT_GE(advice.values_size(), 1);
  const Struct& first = advice.values(0).struct_value();
  EXPECT_EQ(Get(first, "id", Value::kStringValue).string_value(), "uneven-inputs");
  EXPECT_NE(Get(first, "text", Value::kStringValue).string_value(), "");
  EXPECT_EQ(Get(v, "missing_evidence", Value::kListValue).list_value().values_size(), 0);
}

TEST(JsonTest, ACulpritInAContainerHasItsPidThereToo) {
  JobBuilder job(4);
  job.process(3).inner_pid = 17;
  job.Finish(24);
  job.Enter({0, 1, 2}, At(10));
  Incident incident;
  incident.verdicts = Diagnose(job.state, At(58.2), Limits());
  const Struct parsed = ParseJson(ToProto(incident));
  const auto& verdict = parsed.fields().at("verdicts").list_value().values(0).struct_value();
  const auto& culprits = verdict.fields().at("culprits").list_value();
  ASSERT_EQ(culprits.values_size(), 1);
  const auto& culprit = culprits.values(0).struct_value();
  EXPECT_EQ(culprit.fields().at("pid").number_value(), 4003);
  EXPECT_EQ(culprit.fields().at("inner_pid").number_value(), 17);
}

TEST(JsonTest, BytesThatAreNotUtf8DoNotSpoilTheReport) {
  const Struct root = ParseJson(MakeIncident("d\xff\xc3p \xf0\x9f\x98\x80\xed\xa0\x80"));
  const Struct& v = Get(root, "verdicts", Value::kListValue).list_value().values(0).struct_value();
  const Struct& comm = Get(v, "communicator", Value::kStructValue).struct_value();
  EXPECT_EQ(Get(comm, "name", Value::kStringValue).string_value(), "d??p \xf0\x9f\x98\x80???");
}

TEST(HtmlTest, EscapesWhatComesFromTheJob) {
  v1::Incident incident = MakeIncident("<script>alert('x')</script>", "\"><img src=x>");
  AddStack(3, true, "operator<< <&>", &incident);
  const std::string html = ToHtml(incident);
  EXPECT_EQ(html.find("<script>alert"), std::string::npos);
  EXPECT_EQ(html.find("<img"), std::string::npos);
  EXPECT_NE(html.find("&lt;script&gt;alert(&#39;x&#39;)"), std::string::npos);
  EXPECT_NE(html.find("operator&lt;&lt; &lt;&amp;&gt;"), std::string::npos);
}

TEST(HtmlTest, StaysBelowFiveMebibytesWithTheStacksOfFourThousandRanks) {
  v1::Incident incident = MakeIncident();
  // The largest number of nodes that is kept, with long names and rank sets; and whole stacks of
  // culprits.
  v1::StackTree* tree = incident.mutable_stack_tree();
  for (int i = 0; i < 20000; ++i) {
    v1::StackTree::Node* node = tree->add_nodes();
    node->set_parent(i / 2);
    node->set_frame("some_namespace::SomeClass::SomeMethodWithALongName(int, char const*) " +
                    std::to_string(i));
    node->set_ranks("0-17,19-511,700,702,1024-4095");
    node->set_rank_count(4000);
    node->set_threads(4000);
  }
  for (int process = 0; process < 16; ++process) {
    v1::ProcessStack* stack = incident.add_stacks();
    stack->set_culprit(true);
    for (int thread = 0; thread < 40; ++thread) {
      for (int frame = 0; frame < 30; ++frame) {
        v1::Frame* added =
            (frame == 0 ? stack->add_threads() : stack->mutable_threads(stack->threads_size() - 1))
                ->add_frames();
        added->set_function("torch::autograd::Engine::thread_main");
        added->set_module("/usr/lib/python3/dist-packages/torch/lib/libtorch_cpu.so");
      }
    }
  }
  EXPECT_LE(ToHtml(incident).size(), size_t{5} << 20);
}

TEST(HtmlTest, NeedsNoNetwork) {
  const std::string html = ToHtml(MakeIncident());
  // "//" alone may be part of the page, which is compressed and in base64.
  for (const char* outside :
       {"http:", "https:", "\"//", "'//", "(//", "=//", "src=", "href=", "url(h", "@import"}) {
    EXPECT_EQ(html.find(outside), std::string::npos) << outside;
  }
  EXPECT_NE(html.find("prefers-color-scheme"), std::string::npos);
  EXPECT_NE(html.find("<h1>rank 3 (node-3, pid 4003) has not called AllReduce #24"),
            std::string::npos);
}

TEST(TextTest, FitsHundredColumns) {
  v1::Incident incident = MakeIncident(std::string(300, 'x'), std::string(150, 'h') + "\nroot#");
  AddStack(3, true, std::string(250, 'f'), &incident);
  std::istringstream lines(ToText(incident) + StacksToText(incident));
  std::string line;
  size_t longest = 0;
  while (std::getline(lines, line)) longest = std::max(longest, line.size());
  EXPECT_LE(longest, 100u);
  EXPECT_GT(longest, 80u);
}

TEST(TextTest, BeginsWithTheSentence) {
  const std::string text = ToText(MakeIncident());
  EXPECT_EQ(text.substr(0, 52), "rank 3 (node-3, pid 4003) has not called AllReduce #");
  EXPECT_NE(text.find("uneven-inputs: "), std::string::npos);
  EXPECT_NE(text.find("  certainty     certain\n"), std::string::npos);
}

TEST(HtmlTest, ColoursABoxWhoseCountIsNegative) {
  v1::StackTree tree;
  tree.add_nodes()->set_rank_count(1);
  tree.add_nodes()->set_rank_count(std::numeric_limits<int32_t>::min());
  EXPECT_NE(StackPicture(tree).find("hsl(10 75% 72%)"), std::string::npos) << StackPicture(tree);
}

TEST(TextTest, CutsNumbersThatNoIntegerHolds) {
  v1::Incident incident = MakeIncident();
  v1::Verdict& verdict = *incident.mutable_verdicts(0);
  verdict.set_waited_seconds(1e300);
  verdict.mutable_culprits(0)->set_step(9.3e18);
  EXPECT_NE(ToText(incident).find("step 4000000000000000000"), std::string::npos);
}

TEST(TextTest, SaysWhenThereIsNoVerdict) {
  EXPECT_EQ(ToText(v1::Incident()).substr(0, 10), "no verdict");
  EXPECT_EQ(StacksToText(v1::Incident()), "No stacks.\n");
}

TEST(StacksTextTest, ThreadsOfAChildFollowThoseOfItsProcess) {
  v1::Incident incident;
  AddStack(0, true, "wait_for_child", &incident);
  v1::ChildProcess* child = incident.mutable_stacks(0)->add_children();
  child->set_pid(4711);
  child->set_name("loader");
  child->add_threads()->add_frames()->set_function("read_shard");
  for (const std::string& text : {StacksToText(incident), ToHtml(incident)}) {
    const size_t process = text.find("wait_for_child"), frame = text.find("read_shard");
    const size_t title = text.find("process 4711");
    ASSERT_NE(frame, std::string::npos) << text;
    EXPECT_LT(process, title);
    EXPECT_LT(title, frame);
    EXPECT_NE(text.find("which it has started"), std::string::npos);
  }
}

TEST(StacksTextTest, CulpritsComeFirst) {
  v1::Incident incident;
  AddStack(0, false, "wait_for_gpu", &incident);
  AddStack(3, true, "validate", &incident);
  const std::string text = StacksToText(incident);
  EXPECT_LT(text.find("validate"), text.find("wait_for_gpu"));
  EXPECT_NE(text.find("#0  validate  train.py:212"), std::string::npos);
}

class WriterTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "rollcall-report-XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    dir_ = std::filesystem::canonical(pattern).string();
  }
  void TearDown() override { std::filesystem::remove_all(dir_); }

  static std::string Read(const std::string& path) { return ReadFile(path).value_or(""); }

  static size_t Entries(const std::string& path) {
    size_t n = 0;
    for (const auto& entry : std::filesystem::directory_iterator(path)) n += !entry.path().empty();
    return n;
  }

  std::string dir_;
};

TEST_F(WriterTest, WritesFourFilesIntoAFolderThatNamesTimeJobAndCause) {
  const absl::StatusOr<std::string> path = CreateReport(dir_ + "/new/reports", MakeIncident());
  ASSERT_TRUE(path.ok()) << path.status();
  EXPECT_EQ(*path, dir_ + "/new/reports/20231114T221345Z-train-missing_rank");
  EXPECT_EQ(Entries(*path), 4u);
  EXPECT_EQ(Entries(dir_ + "/new/reports"), 1u);
  EXPECT_NE(Read(*path + "/incident.json").find("\"report_path\": \"" + *path), std::string::npos);
  EXPECT_NE(Read(*path + "/report.html").find("<!doctype html>"), std::string::npos);
}

TEST_F(WriterTest, TheFolderNamesTheJobAndItsAttempt) {
  v1::Incident incident = MakeIncident();
  incident.set_job("../ml/train 7");
  incident.set_attempt(2);
  const absl::StatusOr<std::string> path = CreateReport(dir_, incident);
  ASSERT_TRUE(path.ok()) << path.status();
  EXPECT_EQ(*path, dir_ + "/20231114T221345Z-..-ml-train-7.2-missing_rank");
  incident.set_job(std::string(10'000, 'x'));
  EXPECT_TRUE(CreateReport(dir_, incident).ok());
}

TEST_F(WriterTest, OthersHaveNoAccessWhateverTheUmask) {
  const mode_t before = umask(0);
  const absl::StatusOr<std::string> path = CreateReport(dir_ + "/a/b", MakeIncident());
  umask(before);
  ASSERT_TRUE(path.ok()) << path.status();
  int files = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(dir_ + "/a")) {
    const auto mode = static_cast<int>(entry.status().permissions());
    EXPECT_EQ(mode, entry.is_directory() ? 0750 : 0640) << entry.path();
    files += entry.is_directory() ? 0 : 1;
  }
  EXPECT_EQ(files, 4);
  EXPECT_EQ(static_cast<int>(std::filesystem::status(dir_ + "/a").permissions()), 0750);
}

TEST_F(WriterTest, AReportForOthersNamesItsFolderWithoutThePath) {
  const auto path = CreateReport(dir_, MakeIncident(), ReportPlace::kFolderName);
  ASSERT_TRUE(path.ok()) << path.status();
  const std::string json = ReadFile(*path + "/incident.json").value_or("");
  EXPECT_EQ(json.find(dir_), std::string::npos);
  EXPECT_NE(json.find(std::filesystem::path(*path).filename().string()), std::string::npos);
}

TEST_F(WriterTest, ATakenNameGetsANumber) {
  const absl::StatusOr<std::string> first = CreateReport(dir_, MakeIncident());
  const absl::StatusOr<std::string> second = CreateReport(dir_, MakeIncident());
  const absl::StatusOr<std::string> third = CreateReport(dir_, MakeIncident());
  ASSERT_TRUE(first.ok() && second.ok() && third.ok());
  EXPECT_EQ(*second, *first + "-2");
  EXPECT_EQ(*third, *first + "-3");
}

TEST_F(WriterTest, AReportGrowsInPlace) {
  v1::Incident incident = MakeIncident();
  const absl::StatusOr<std::string> path = CreateReport(dir_, incident);
  ASSERT_TRUE(path.ok());
  AddStack(3, true, "validate", &incident);
  ASSERT_TRUE(UpdateReport(*path, incident).ok());
  EXPECT_EQ(Entries(*path), 4u);
  EXPECT_NE(Read(*path + "/stacks.txt").find("validate"), std::string::npos);
}

TEST_F(WriterTest, ATemporaryFolderIsGoneUnlessItGetsAName) {
  {
    const auto named = TemporaryFolder::Create(dir_), unnamed = TemporaryFolder::Create(dir_);
    ASSERT_TRUE(named.ok() && unnamed.ok());
    std::ofstream((*unnamed)->path() + "/stacks.txt").put('x');
    EXPECT_EQ((*named)->Rename(dir_ + "/name"), 0);
    EXPECT_EQ(Entries(dir_), 2u);
  }
  EXPECT_EQ(Entries(dir_), 1u);
  EXPECT_TRUE(std::filesystem::exists(dir_ + "/name"));
}

TEST_F(WriterTest, RemovesLeftoversButNothingThatIsInUseOrOfOthers) {
  const auto in_use = TemporaryFolder::Create(dir_);
  ASSERT_TRUE(in_use.ok());
  for (const char* name : {"/.rollcall-a1B2c3", "/.rollcall-d4E5f6", "/.rollcall-notes", "/mine"}) {
    std::filesystem::create_directory(dir_ + name);
    std::ofstream(dir_ + name + "/report.txt").put('x');
  }
  std::ofstream(dir_ + "/.rollcall-d4E5f6/notes").put('x');
  std::filesystem::create_directory_symlink(dir_ + "/mine", dir_ + "/.rollcall-g7H8i9");
  RemoveLeftovers(dir_);
  EXPECT_TRUE(std::filesystem::exists((*in_use)->path()));
  EXPECT_FALSE(std::filesystem::exists(dir_ + "/.rollcall-a1B2c3"));
  for (const char* file : {"/.rollcall-d4E5f6/notes", "/.rollcall-notes/report.txt",
                           "/mine/report.txt", "/.rollcall-g7H8i9"}) {
    EXPECT_TRUE(std::filesystem::exists(dir_ + file)) << file;
  }
}

TEST_F(WriterTest, ErrorsNameThePathAndTheReason) {
  std::ofstream(dir_ + "/file").put('x');
  for (const absl::Status& status :
       {CheckReportDir(dir_ + "/file"), CreateReport(dir_ + "/file", MakeIncident()).status(),
        UpdateReport(dir_ + "/gone", MakeIncident())}) {
    EXPECT_FALSE(status.ok());
    EXPECT_NE(status.message().find(dir_), std::string::npos) << status;
    EXPECT_NE(status.message().find(": "), std::string::npos) << status;
  }
  EXPECT_TRUE(CheckReportDir(dir_ + "/a/b").ok());
  EXPECT_EQ(Entries(dir_ + "/a/b"), 0u);
}

}  // namespace
}  // namespace rollcall
