// SPDX-License-Identifier: Apache-2.0
// What each kind of receiver gets, against the limits that its maker documents.
#include "daemon/alerts/alert_messages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "daemon/alerts/alerts.h"

namespace rollcall {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

AlertMessage Message(AlertEvent event = AlertEvent::kConfirmed) {
  AlertMessage message;
  v1::Incident& incident = message.incident;
  incident.set_id("llm-7");
  incident.set_job("llm");
  incident.set_tenant("ml");
  incident.set_attempt(2);
  incident.set_state(event == AlertEvent::kResolved ? "resolved" : "confirmed");
  incident.set_report_path("/reports/x");
  incident.mutable_opened_at()->set_seconds(1'700'000'000);
  v1::Verdict* verdict = incident.add_verdicts();
  verdict->set_cause("missing_rank");
  verdict->set_certainty("certain");
  verdict->set_summary("rank 3 has not called AllReduce #10");
  verdict->add_advice()->set_text("Validate on all ranks.");
  v1::Culprit* culprit = verdict->add_culprits();
  culprit->set_rank(3);
  culprit->set_host("node-17");
  culprit->set_at("train.py:31 in validate");
  message.event = event;
  message.sequence = event == AlertEvent::kConfirmed ? 1 : 2;
  message.first_cause = "host_lost";
  return message;
}

// With texts of a job that knows no limits.
AlertMessage HugeMessage(const std::string& text, AlertEvent event = AlertEvent::kConfirmed) {
  AlertMessage message = Message(event);
  v1::Incident& incident = message.incident;
  std::string all;
  while (all.size() < 40'000) all += text;
  incident.set_job(all);
  incident.set_id(all + "-1");
  incident.set_tenant(all);
  incident.set_report_path(all);
  v1::Verdict* verdict = incident.mutable_verdicts(0);
  verdict->set_summary(all);
  verdict->mutable_advice(0)->set_text(all);
  verdict->mutable_culprits(0)->set_host(all);
  verdict->mutable_culprits(0)->set_at(all);
  return message;
}

AlertOptions WithPage() {
  AlertOptions options;
  options.page = "https://rollcall.example";
  return options;
}

std::vector<AlertRequest> Requests(AlertKind kind, const AlertMessage& message) {
  AlertTarget target;
  target.kind = kind;
  return AlertRequests(target, "the-key", WithPage(), message).value();
}

std::string Mail(const AlertMessage& message, const std::string& from = "") {
  AlertOptions options = WithPage();
  options.mail_from = from;
  return AlertBody({AlertKind::kEmail, "where"}, "ops@example.com", options, message);
}

std::string MailText(const std::string& mail) {
  std::string text;
  std::string body = mail.substr(mail.find("\n\n") + 2);
  body.erase(std::remove(body.begin(), body.end(), '\n'), body.end());
  EXPECT_TRUE(absl::Base64Unescape(body, &text));
  return text;
}

// All that a message says, decoded.
std::string WordsOf(AlertKind kind, const AlertMessage& message) {
  if (kind == AlertKind::kEmail) return MailText(Mail(message));
  return Requests(kind, message).back().body;
}

class EveryKindTest : public testing::TestWithParam<AlertKind> {};

TEST_P(EveryKindTest, NamesJobAttemptHostLineAndTheFirstAdvice) {
  const std::string words = WordsOf(GetParam(), Message());
  for (const char* part : {"llm", "2", "node-17", "train.py:31 in validate",
                           "Validate on all ranks.", "rank 3 has not called AllReduce #10"}) {
    EXPECT_THAT(words, HasSubstr(part));
  }
}

TEST_P(EveryKindTest, BuildsMessagesFromTextsThatAreNotUtf8) {
  EXPECT_FALSE(WordsOf(GetParam(), HugeMessage("\xff\xfe")).empty());
}

INSTANTIATE_TEST_SUITE_P(, EveryKindTest,
                         testing::Values(AlertKind::kJson, AlertKind::kSlack, AlertKind::kTeams,
                                         AlertKind::kPagerDuty, AlertKind::kOpsgenie,
                                         AlertKind::kAlertmanager, AlertKind::kCloudEvents,
                                         AlertKind::kKafka, AlertKind::kEmail),
                         [](const auto& info) { return std::string(FactsOf(info.param).name); });

class CorrectionTest : public testing::TestWithParam<AlertKind> {};

TEST_P(CorrectionTest, RefersToTheFirstMessage) {
  EXPECT_THAT(WordsOf(GetParam(), Message(AlertEvent::kUpdated)),
              HasSubstr("correction of the first message about llm-7"));
}

INSTANTIATE_TEST_SUITE_P(, CorrectionTest,
                         testing::Values(AlertKind::kSlack, AlertKind::kTeams, AlertKind::kOpsgenie,
                                         AlertKind::kEmail),
                         [](const auto& info) { return std::string(FactsOf(info.param).name); });

TEST(CorrectionByKeyTest, NamesTheKeyOfTheFirst) {
  const json body = json::parse(WordsOf(AlertKind::kJson, Message(AlertEvent::kUpdated)));
  EXPECT_EQ(body["first"], "llm-7/1");
  EXPECT_EQ(json::parse(WordsOf(AlertKind::kJson, Message()))["first"], "");
}

// https://github.com/cloudevents/spec/blob/v1.0.2/cloudevents/spec.md
TEST(CloudEventsTest, HasTheRequiredAttributesAndTheIncidentAsData) {
  const AlertRequest request = Requests(AlertKind::kCloudEvents, Message())[0];
  EXPECT_STREQ(request.content_type, "application/cloudevents+json; charset=utf-8");
  const json event = json::parse(request.body);
  EXPECT_EQ(event["specversion"], "1.0");
  EXPECT_EQ(event["id"], "llm-7/1");
  EXPECT_EQ(event["source"], "https://rollcall.example/");
  EXPECT_EQ(event["type"], "rollcall.incident.confirmed");
  EXPECT_EQ(event["subject"], "llm-7");
  EXPECT_EQ(event["data"]["verdicts"][0]["culprits"][0]["host"], "node-17");
  for (const auto& [name, value] : event.items()) {
    if (name == "data") continue;
    EXPECT_TRUE(value.is_string()) << name;
    EXPECT_EQ(name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789"), std::string::npos);
  }
}

TEST(CloudEventsTest, TheTypeSaysWhetherTheJobGoesOn) {
  AlertMessage end = Message(AlertEvent::kResolved);
  const auto type = [](const AlertMessage& message) {
    return json::parse(Requests(AlertKind::kCloudEvents, message)[0].body)["type"];
  };
  EXPECT_EQ(type(Message(AlertEvent::kUpdated)), "rollcall.incident.updated");
  EXPECT_EQ(type(end), "rollcall.incident.resolved");
  end.incident.set_state("ended");
  EXPECT_EQ(type(end), "rollcall.incident.ended");
}

TEST(KafkaTest, KeysRecordsByIncidentToKeepTheirOrder) {
  const AlertRequest request = Requests(AlertKind::kKafka, Message())[0];
  EXPECT_STREQ(request.content_type, "application/vnd.kafka.json.v2+json");
  const json record = json::parse(request.body)["records"][0];
  EXPECT_EQ(record["key"], "llm-7");
  EXPECT_EQ(record["value"]["id"], "llm-7/1");
}

TEST(TeamsTest, IsAMessageWithOneAdaptiveCard) {
  const json body = json::parse(WordsOf(AlertKind::kTeams, Message()));
  EXPECT_EQ(body["type"], "message");
  ASSERT_EQ(body["attachments"].size(), 1u);
  EXPECT_EQ(body["attachments"][0]["contentType"], "application/vnd.microsoft.card.adaptive");
  const json& card = body["attachments"][0]["content"];
  EXPECT_EQ(card["type"], "AdaptiveCard");
  EXPECT_EQ(card["version"], "1.4");
  EXPECT_EQ(card["actions"][0]["url"], "https://rollcall.example/#/incident/llm-7");
}

TEST(TeamsTest, TextOfAJobIsNotMarkdown) {
  AlertMessage message = Message();
  message.incident.mutable_verdicts(0)->set_summary("[click](https://evil.example) **now**");
  const json body = json::parse(WordsOf(AlertKind::kTeams, message));
  for (const json& block : body["attachments"][0]["content"]["body"]) {
    EXPECT_EQ(block["type"], "RichTextBlock") << block;
    for (const json& run : block["inlines"]) EXPECT_EQ(run["type"], "TextRun");
  }
}

TEST(TeamsTest, IsNeverLongerThanAWebhookTakes) {
  for (const char* text : {"x", "\"", "\x01", "\xff", "\xc3\xa9"}) {
    AlertMessage message = HugeMessage(text);
    message.incident.set_id("short");  // the link
    EXPECT_LT(WordsOf(AlertKind::kTeams, message).size(), 28'000u) << text;
  }
}

size_t Length(const json& text) {
  const std::string bytes = text.get<std::string>();
  return static_cast<size_t>(
      std::count_if(bytes.begin(), bytes.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

TEST(OpsgenieTest, CreatesAnAlertWithinItsLimits) {
  for (const char* text : {"x", "\"", "\xff", "\xc3\xa9"}) {
    const auto requests = Requests(AlertKind::kOpsgenie, HugeMessage(text));
    ASSERT_EQ(requests.size(), 1u);
    EXPECT_EQ(requests[0].url, "https://api.opsgenie.com/v2/alerts");
    EXPECT_EQ(requests[0].authorization, "GenieKey the-key");
    const json body = json::parse(requests[0].body);
    EXPECT_LE(Length(body["message"]), 130u);
    EXPECT_LE(Length(body["alias"]), 512u);
    EXPECT_LE(Length(body["description"]), 15'000u);
    EXPECT_LE(Length(body["entity"]), 512u);
    EXPECT_LE(Length(body["source"]), 100u);
    size_t details = 0;
    for (const auto& [key, value] : body["details"].items()) details += key.size() + Length(value);
    EXPECT_LE(details, 8'000u);
  }
}

TEST(OpsgenieTest, ACorrectionChangesTheTextsAndThenAddsOneNote) {
  const auto requests = Requests(AlertKind::kOpsgenie, Message(AlertEvent::kUpdated));
  ASSERT_EQ(requests.size(), 3u);
  const std::string alert = "https://api.opsgenie.com/v2/alerts/rollcall-llm-7";
  EXPECT_EQ(requests[0].url, alert + "/message?identifierType=alias");
  EXPECT_EQ(requests[1].url, alert + "/description?identifierType=alias");
  EXPECT_EQ(requests[2].url, alert + "/notes?identifierType=alias");
  EXPECT_STREQ(requests[0].method, "PUT");
  EXPECT_STREQ(requests[2].method, "POST");
  EXPECT_TRUE(requests[0].may_be_refused && requests[1].may_be_refused);
  EXPECT_FALSE(requests[2].may_be_refused);
}

TEST(OpsgenieTest, AnAcknowledgementNamesThePersonAndMayBeTakenBack) {
  AlertMessage message = Message(AlertEvent::kAcknowledged);
  const std::string alert = "https://api.opsgenie.com/v2/alerts/rollcall-llm-7";
  EXPECT_EQ(Requests(AlertKind::kOpsgenie, message)[0].url,
            alert + "/unacknowledge?identifierType=alias");
  message.incident.mutable_acknowledged()->set_who("alice");
  const AlertRequest request = Requests(AlertKind::kOpsgenie, message)[0];
  EXPECT_EQ(request.url, alert + "/acknowledge?identifierType=alias");
  EXPECT_EQ(json::parse(request.body)["user"], "alice");
}

TEST(OpsgenieTest, TheEndClosesTheAlertOfTheBeginning) {
  for (const AlertMessage& message :
       {Message(AlertEvent::kResolved), HugeMessage("a/b ?", AlertEvent::kResolved)}) {
    AlertMessage first = message;
    first.event = AlertEvent::kConfirmed;
    const std::string alias =
        json::parse(Requests(AlertKind::kOpsgenie, first)[0].body)["alias"].get<std::string>();
    EXPECT_EQ(
        Requests(AlertKind::kOpsgenie, message)[0].url,
        absl::StrCat("https://api.opsgenie.com/v2/alerts/", alias, "/close?identifierType=alias"));
  }
}

TEST(OpsgenieTest, RefusesAKeyThatWouldEndTheHeader) {
  AlertTarget target;
  target.kind = AlertKind::kOpsgenie;
  const auto requests = AlertRequests(target, "key\r\nX: y", {}, Message());
  EXPECT_TRUE(absl::IsInvalidArgument(requests.status()));
  EXPECT_THAT(std::string(requests.status().message()), Not(HasSubstr("X: y")));
}

TEST(PagerDutyTest, AFileOfRoutesMayNameAnotherAddress) {
  AlertTarget target;
  target.kind = AlertKind::kPagerDuty;
  EXPECT_EQ(AlertRequests(target, "key", {}, Message()).value()[0].url,
            "https://events.pagerduty.com/v2/enqueue");
  target.url = "https://events.eu.pagerduty.com/v2/enqueue";
  EXPECT_EQ(AlertRequests(target, "key", {}, Message()).value()[0].url, target.url);
}

std::string Header(const std::string& mail, const std::string& name) {
  std::istringstream lines(mail.substr(0, mail.find("\n\n")));
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind(name + ": ", 0) == 0) return line.substr(name.size() + 2);
  }
  return "";
}

TEST(MailTest, LaterMailsAreAThreadWithTheFirst) {
  const std::string first = Mail(Message()), later = Mail(Message(AlertEvent::kUpdated)),
                    end = Mail(Message(AlertEvent::kResolved));
  EXPECT_EQ(Header(first, "Subject"), "[rollcall] llm, attempt 2 hangs: host_lost (llm-7)");
  EXPECT_EQ(Header(later, "Subject"), "Re: " + Header(first, "Subject"));
  EXPECT_EQ(Header(end, "Subject"), "Re: " + Header(first, "Subject"));
  const std::string id = Header(first, "Message-ID");
  EXPECT_THAT(id, AllOf(StartsWith("<"), HasSubstr("@")));
  EXPECT_EQ(Header(first, "In-Reply-To"), "");
  EXPECT_EQ(Header(later, "In-Reply-To"), id);
  EXPECT_EQ(Header(end, "References"), id);
  EXPECT_NE(Header(later, "Message-ID"), id);
}

TEST(MailTest, IncidentsOfOneIdAndAnotherTimeAreOtherThreads) {
  AlertMessage other = Message();
  other.incident.mutable_opened_at()->set_seconds(1'800'000'000);
  EXPECT_NE(Header(Mail(other), "Message-ID"), Header(Mail(Message()), "Message-ID"));
}

TEST(MailTest, HasASenderIfOneIsGiven) {
  EXPECT_EQ(Header(Mail(Message(), "rollcall@example.com"), "From"), "rollcall@example.com");
  EXPECT_EQ(Header(Mail(Message()), "From"), "");
}

TEST(MailTest, NoTextOfAJobEndsAHeader) {
  for (const char* text :
       {"x\nBcc: all@example.com\n\nhello", "\r\nBcc: x", "=?utf-8?q?=0aBcc:?="}) {
    AlertMessage message = Message();
    message.incident.set_job(text);
    message.first_cause = text;
    const std::string mail = Mail(message);
    EXPECT_EQ(Header(mail, "Bcc"), "") << mail;
    EXPECT_EQ(Header(mail, "MIME-Version"), "1.0") << mail;
  }
}

TEST(MailTest, NoLineIsTooLongAndAllFitsThePipeOfTheProgram) {
  for (const char* text : {"x", "\xff", "\xc3\xa9"}) {
    const std::string mail = Mail(HugeMessage(text, AlertEvent::kUpdated));
    EXPECT_LT(mail.size(), 60'000u);
    std::istringstream lines(mail);
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 998u);
  }
}

TEST(AlertKindsTest, EachHasANameOfItsOwn) {
  for (const char* name : {"json", "slack", "teams", "pagerduty", "opsgenie", "alertmanager",
                           "kubernetes", "email", "exec"}) {
    const AlertKindFacts* facts = FindAlertKind(name);
    ASSERT_NE(facts, nullptr) << name;
    EXPECT_EQ(&FactsOf(facts->kind), facts);
    EXPECT_THAT(AlertKindsInWords(), HasSubstr(name));
  }
  EXPECT_EQ(FindAlertKind("fax"), nullptr);
}

// --- Events of Kubernetes.

AlertMessage MessageOfPods(const std::vector<std::string>& pods,
                           AlertEvent event = AlertEvent::kConfirmed) {
  AlertMessage message = Message(event);
  message.incident.set_tenant("ml");
  v1::Verdict* verdict = message.incident.mutable_verdicts(0);
  verdict->clear_culprits();
  for (const std::string& pod : pods) verdict->add_culprits()->set_pod(pod);
  return message;
}

TEST(KubernetesTest, EachPodOfACulpritGetsAnEventInItsNamespace) {
  const auto requests = Requests(AlertKind::kKubernetes,
                                 MessageOfPods({"ml/train-0", "", "ml/train-1", "ml/train-0"}));
  ASSERT_EQ(requests.size(), 2u);
  EXPECT_EQ(requests[0].url, "https://kubernetes.default.svc/api/v1/namespaces/ml/events");
  EXPECT_EQ(requests[0].authorization, "Bearer the-key");
  const json event = json::parse(requests[1].body);
  EXPECT_EQ(event["kind"], "Event");
  EXPECT_EQ(event["involvedObject"],
            json::parse(R"({"apiVersion": "v1", "kind": "Pod", "name": "train-1",
                                                     "namespace": "ml"})"));
  EXPECT_EQ(event["metadata"]["namespace"], "ml");
  EXPECT_EQ(event["type"], "Warning");
  EXPECT_EQ(event["reason"], "JobHangs");
  EXPECT_THAT(event["message"].get<std::string>(),
              AllOf(HasSubstr("rank 3 has not called AllReduce #10"), HasSubstr("job llm")));
}

TEST(KubernetesTest, TheEventCarriesTheUidOfThePodWhereItIsKnown) {
  AlertMessage message = MessageOfPods({"ml/train-0", "ml/train-1"});
  message.incident.mutable_verdicts(0)->mutable_culprits(1)->set_pod_uid("6f1c2a34");
  const auto requests = Requests(AlertKind::kKubernetes, message);
  ASSERT_EQ(requests.size(), 2u);
  EXPECT_FALSE(json::parse(requests[0].body)["involvedObject"].contains("uid"));
  EXPECT_EQ(json::parse(requests[1].body)["involvedObject"]["uid"], "6f1c2a34");
}

TEST(KubernetesTest, AnotherTryIsTheSameEventAndAnotherAlertANewOne) {
  const auto name = [](const AlertMessage& message) {
    return json::parse(Requests(AlertKind::kKubernetes, message).at(0).body)["metadata"]["name"];
  };
  EXPECT_EQ(name(MessageOfPods({"ml/a"})), name(MessageOfPods({"ml/a"})));
  EXPECT_NE(name(MessageOfPods({"ml/a"})), name(MessageOfPods({"ml/a"}, AlertEvent::kUpdated)));
  EXPECT_EQ(Requests(AlertKind::kKubernetes, MessageOfPods({"ml/a"})).at(0).done_before, 409);
}

TEST(KubernetesTest, TheEndIsNormal) {
  const auto requests =
      Requests(AlertKind::kKubernetes, MessageOfPods({"ml/a"}, AlertEvent::kResolved));
  const json event = json::parse(requests.at(0).body);
  EXPECT_EQ(event["type"], "Normal");
  EXPECT_EQ(event["reason"], "JobHangEnded");
}

TEST(KubernetesTest, PodsOutsideTheNamespaceOfTheTenantGetNoEvent) {
  const auto requests =
      Requests(AlertKind::kKubernetes, MessageOfPods({"kube-system/etcd-0", "ml/a", "m/b"}));
  ASSERT_EQ(requests.size(), 1u);
  EXPECT_THAT(requests[0].url, HasSubstr("/namespaces/ml/"));
}

// A process names its pod itself, and the daemon's token may create events in each namespace.
TEST(KubernetesTest, WhatIsNotANameOfAPodGetsNoRequest) {
  for (const char* pod : {"", "train", "ml/", "/a", "ml/a/b", "../a", "ml/..", "ml/a/../b", "ML/a",
                          "m.l/a", "ml/a?x=1", "ml/a b", "ml/-a", "ml/a\n"}) {
    EXPECT_TRUE(Requests(AlertKind::kKubernetes, MessageOfPods({pod})).empty()) << pod;
  }
  EXPECT_TRUE(
      Requests(AlertKind::kKubernetes, MessageOfPods({"ml/" + std::string(254, 'a')})).empty());
}

TEST(KubernetesTest, NoMoreThanEightPodsGetAnEventAndLongTextsAreCut) {
  std::vector<std::string> pods;
  for (int i = 0; i < 20; ++i) pods.push_back(absl::StrCat("ml/", std::string(230, 'p'), i));
  AlertMessage message = MessageOfPods(pods);
  message.incident.mutable_verdicts(0)->set_summary(std::string(5000, 's'));
  const auto requests = Requests(AlertKind::kKubernetes, message);
  ASSERT_EQ(requests.size(), 8u);
  const json event = json::parse(requests[0].body);
  EXPECT_LE(event["metadata"]["name"].get<std::string>().size(), 253u);
  EXPECT_LE(event["message"].get<std::string>().size(), 1000u);
}

TEST(KubernetesTest, AMalformedTokenIsRefused) {
  AlertTarget target;
  target.kind = AlertKind::kKubernetes;
  for (const char* token : {"", "a b", "a\nb"}) {
    EXPECT_EQ(AlertRequests(target, token, WithPage(), MessageOfPods({"ml/a"})).status().code(),
              absl::StatusCode::kInvalidArgument);
  }
}

}  // namespace
}  // namespace rollcall
