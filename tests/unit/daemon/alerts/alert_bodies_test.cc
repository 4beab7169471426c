// SPDX-License-Identifier: Apache-2.0
// How AlertBody() says the facts of an incident. alert_messages_test.cc has the receivers' limits.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "alert_test_incidents.h"
#include "daemon/alerts/alert_target.h"
#include "daemon/alerts/alerts.h"
#include "rollcall/v1/incident.pb.h"

namespace rollcall {
namespace {

using testing::HasSubstr;
using testing::Not;

nlohmann::json MakeBody(AlertKind kind, const AlertOptions& options = {},
                        AlertEvent event = AlertEvent::kConfirmed) {
  const AlertMessage message = {Incident(), event, 1, "missing_rank"};
  return nlohmann::json::parse(AlertBody({kind, "where"}, "secret-key", options, message));
}

TEST(AlertBodyTest, JsonHasTheMainFacts) {
  AlertOptions options;
  options.page = "https://rollcall.example/x";
  const auto body = MakeBody(AlertKind::kJson, options);
  EXPECT_EQ(body["status"], "firing");
  EXPECT_EQ(body["summary"], "rank 3 \"never\" entered <AllReduce> & co");
  EXPECT_EQ(body["ranks"], "3, 4");
  EXPECT_EQ(body["hosts"], "node-17");
  EXPECT_EQ(body["tenant"], "ml");
  EXPECT_EQ(body["attempt"], 2);
  EXPECT_EQ(body["idle"], 2);
  EXPECT_EQ(body["sequence"], 1);
  EXPECT_EQ(body["runbook"], "https://rollcall.example/x/#/runbook/missing_rank");
  EXPECT_EQ(body["acknowledge"], "https://rollcall.example/x/#/incident/job-1?do=acknowledge");
  EXPECT_EQ(body["link"], "https://rollcall.example/x/#/incident/job-1");
  EXPECT_EQ(MakeBody(AlertKind::kJson, options, AlertEvent::kResolved)["status"], "resolved");
}

TEST(AlertBodyTest, ATemplateStaysJsonForAnyText) {
  AlertOptions options;
  options.template_text = R"x({"msg": "{{status}}: {{summary}} ({{nothing}})"})x";
  EXPECT_EQ(MakeBody(AlertKind::kJson, options)["msg"],
            "firing: rank 3 \"never\" entered <AllReduce> & co ({{nothing}})");
}

TEST(AlertBodyTest, SlackEscapesItsThreeCharacters) {
  EXPECT_THAT(MakeBody(AlertKind::kSlack)["text"].get<std::string>(),
              HasSubstr("&lt;AllReduce&gt; &amp; co"));
}

nlohmann::json SlackAtEnd(const std::string& state) {
  AlertMessage message = {Incident(), AlertEvent::kResolved, 2, "missing_rank"};
  message.incident.set_state(state);
  return nlohmann::json::parse(AlertBody({AlertKind::kSlack, "where"}, "", {}, message));
}

TEST(AlertBodyTest, AJobThatEndedWhileItHungIsNotGreen) {
  EXPECT_THAT(SlackAtEnd("resolved")["text"].get<std::string>(),
              HasSubstr(":white_check_mark: job: resolved, the job goes on"));
  EXPECT_THAT(SlackAtEnd("ended")["text"].get<std::string>(),
              testing::AllOf(HasSubstr("the job ended while it hung, after 0 s: rank 3"),
                             Not(HasSubstr("white_check_mark"))));
}

TEST(AlertBodyTest, SlackHasJobAttemptHostLineAndTheFirstAdvice) {
  AlertMessage message = {Incident(), AlertEvent::kConfirmed, 1, "missing_rank"};
  v1::Verdict* verdict = message.incident.mutable_verdicts(0);
  verdict->mutable_culprits(0)->set_at("train.py:31 in validate");
  verdict->add_advice()->set_text("Validate on all ranks.");
  verdict->add_advice()->set_text("Not this one.");
  const std::string blocks =
      nlohmann::json::parse(AlertBody({AlertKind::kSlack, "where"}, "", {}, message))["blocks"]
          .dump();
  for (const char* text : {"*Job*\\njob", "*Attempt*\\n2", "*Hosts*\\nnode-17",
                           "*Line*\\ntrain.py:31 in validate", "Validate on all ranks."}) {
    EXPECT_THAT(blocks, HasSubstr(text));
  }
  EXPECT_THAT(blocks, Not(HasSubstr("Not this one")));
}

TEST(AlertBodyTest, NoFieldOfSlackIsLongerThanItsLimit) {
  AlertMessage message = {Incident(), AlertEvent::kConfirmed, 1, "missing_rank"};
  message.incident.mutable_verdicts(0)->mutable_culprits(0)->set_at(std::string(20000, '&'));
  const auto body = nlohmann::json::parse(AlertBody({AlertKind::kSlack, "where"}, "", {}, message));
  for (const auto& field : body["blocks"][1]["fields"]) {
    EXPECT_LE(field["text"].get<std::string>().size(), 2000u);
  }
}

TEST(AlertBodyTest, NamesTheOwnersOfTheCulpritsWhoseUsersThisHostKnows) {
  AlertOptions options;
  options.user_name = [](uint32_t user) { return user == 1001 ? "alice" : ""; };
  AlertMessage message = {Incident(), AlertEvent::kConfirmed, 1, "missing_rank"};
  v1::Verdict* verdict = message.incident.mutable_verdicts(0);
  verdict->mutable_culprits(0)->set_uid(1001);
  verdict->mutable_culprits(1)->set_uid(1002);
  verdict->add_culprits()->set_uid(UINT32_MAX);  // has no number on its host
  const auto body =
      nlohmann::json::parse(AlertBody({AlertKind::kJson, "where"}, "", options, message));
  EXPECT_EQ(body["user"], "alice, uid 1002");
}

TEST(AlertBodyTest, ARunbookMayBeElsewhere) {
  AlertOptions options;
  options.runbook = "https://wiki/{cause}.html";
  EXPECT_EQ(MakeBody(AlertKind::kJson, options)["runbook"], "https://wiki/missing_rank.html");
  options.runbook = "https://wiki/hangs";
  EXPECT_EQ(MakeBody(AlertKind::kJson, options)["runbook"], "https://wiki/hangs/missing_rank");
}

TEST(AlertBodyTest, AnAcknowledgementStopsThePagerAndNamesThePerson) {
  AlertMessage message = {Incident(), AlertEvent::kAcknowledged, 2, "missing_rank"};
  const auto body = [&](AlertKind kind) {
    return nlohmann::json::parse(AlertBody({kind, "where"}, "key", {}, message));
  };
  EXPECT_EQ(body(AlertKind::kPagerDuty)["event_action"], "trigger") << "it was taken back";
  message.incident.mutable_acknowledged()->set_who("alice");
  EXPECT_EQ(body(AlertKind::kPagerDuty)["event_action"], "acknowledge");
  EXPECT_EQ(body(AlertKind::kJson)["acknowledged_by"], "alice");
  EXPECT_EQ(body(AlertKind::kJson)["status"], "acknowledged");
  EXPECT_THAT(body(AlertKind::kSlack)["text"].get<std::string>(),
              HasSubstr("alice takes care of job-1"));
}

TEST(AlertBodyTest, PagerDutyResolvesTheSameKey) {
  const auto trigger = MakeBody(AlertKind::kPagerDuty);
  const auto resolve = MakeBody(AlertKind::kPagerDuty, {}, AlertEvent::kResolved);
  EXPECT_EQ(trigger["routing_key"], "secret-key");
  EXPECT_EQ(trigger["event_action"], "trigger");
  EXPECT_EQ(trigger["payload"]["severity"], "critical");
  EXPECT_EQ(resolve["event_action"], "resolve");
  EXPECT_EQ(trigger["dedup_key"], resolve["dedup_key"]);
}

TEST(AlertBodyTest, AlertmanagerHasTheSameLabelsWhenResolved) {
  const auto firing = MakeBody(AlertKind::kAlertmanager);
  const auto resolved = MakeBody(AlertKind::kAlertmanager, {}, AlertEvent::kResolved);
  EXPECT_EQ(firing[0]["labels"], resolved[0]["labels"]);
  EXPECT_EQ(firing[0]["labels"]["tenant"], "ml");
  EXPECT_EQ(firing[0]["labels"]["attempt"], "2");
  EXPECT_EQ(firing[0]["startsAt"], "2023-11-14T22:13:20Z");
  EXPECT_FALSE(firing[0].contains("endsAt"));
  EXPECT_TRUE(resolved[0].contains("endsAt"));
}

TEST(AlertBodyTest, AlertmanagerKeepsItsLabelsWhenTheCauseChanges) {
  AlertMessage message = {Incident(), AlertEvent::kUpdated, 2, "host_lost"};
  const auto body =
      nlohmann::json::parse(AlertBody({AlertKind::kAlertmanager, "where"}, "", {}, message));
  EXPECT_EQ(body[0]["labels"]["cause"], "host_lost");
  EXPECT_EQ(body[0]["annotations"]["cause"], "missing_rank");
  EXPECT_FALSE(body[0].contains("endsAt"));
}

TEST(AlertBodyTest, SaysThatItIsAnUpdateAndHasAKey) {
  EXPECT_EQ(MakeBody(AlertKind::kJson, {}, AlertEvent::kUpdated)["status"], "updated");
  EXPECT_EQ(MakeBody(AlertKind::kJson)["idempotency_key"], "job-1/1");
  EXPECT_THAT(MakeBody(AlertKind::kSlack, {}, AlertEvent::kUpdated)["text"].get<std::string>(),
              HasSubstr("correction of the first message about job-1: 2 GPUs idle since 22:13"));
  EXPECT_EQ(MakeBody(AlertKind::kPagerDuty, {}, AlertEvent::kUpdated)["event_action"], "trigger");
}

TEST(AlertTargetTest, HasAKindAndATarget) {
  EXPECT_EQ(ParseAlertTarget("slack=https://x/?a=b")->where, "https://x/?a=b");
  EXPECT_EQ(ParseAlertTarget("exec=mail me")->kind, AlertKind::kCommand);
  for (const char* wrong : {"", "slack", "slack=", "fax=1"}) {
    EXPECT_THAT(std::string(ParseAlertTarget(wrong).status().message()),
                HasSubstr("--alert=slack=@/etc"));
  }
}

}  // namespace
}  // namespace rollcall
