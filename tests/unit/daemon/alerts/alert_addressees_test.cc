// SPDX-License-Identifier: Apache-2.0
// Which receivers get which alerts of an incident: what the routes send to them, and notes only
// those that are programs. alert_routes_test.cc has the routes themselves.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "alert_test_incidents.h"
#include "alert_test_receivers.h"
#include "daemon/alerts/alert_routes.h"
#include "daemon/alerts/alert_target.h"
#include "daemon/alerts/alerts.h"
#include "daemon/history/history.h"
#include "eventually.h"

namespace rollcall {
namespace {

using testing::HasSubstr;

// A chat that gets everything, and a pager that gets what is certain.
AlertOptions ByCertainty(const Receiver& chat, const Receiver& pager) {
  AlertOptions options = To(AlertKind::kJson, chat.url());
  AlertTarget routed;
  routed.where = pager.url();
  routed.name = "pager";
  routed.is_routed = true;
  options.targets.push_back(routed);
  AlertRoute route;
  route.certainty = "certain";
  route.to = {1};
  options.routes = {route};
  return options;
}

v1::Incident WithCertainty(const std::string& certainty) {
  v1::Incident incident = Incident();
  incident.mutable_verdicts(0)->set_certainty(certainty);
  return incident;
}

TEST(AlertRoutingTest, AReceiverGetsOnlyWhatItsRoutesSend) {
  Receiver chat(0), pager(0);
  AlertSender sender(ByCertainty(chat, pager));
  sender.Send(WithCertainty("likely"), AlertEvent::kConfirmed);
  sender.Send(WithCertainty("likely"), AlertEvent::kResolved);
  ASSERT_TRUE(Eventually([&] { return sender.sent() == 2; }));
  EXPECT_EQ(chat.bodies().size(), 2u);
  EXPECT_TRUE(pager.bodies().empty());
}

TEST(AlertRoutingTest, SendsAFirstAlertOnceAVerdictBecomesCertain) {
  Receiver chat(0), pager(0);
  AlertSender sender(ByCertainty(chat, pager));
  sender.Send(WithCertainty("likely"), AlertEvent::kConfirmed);
  sender.Send(WithCertainty("certain"), AlertEvent::kUpdated);
  ASSERT_TRUE(Eventually([&] { return sender.sent() == 2; }));
  sender.Send(WithCertainty("certain"), AlertEvent::kUpdated);  // nothing has changed
  sender.Send(WithCertainty("certain"), AlertEvent::kResolved);
  ASSERT_TRUE(Eventually([&] { return sender.sent() == 4; }));
  EXPECT_EQ(chat.keys(), (std::vector<std::string>{"job-1/1", "job-1/3"}));
  ASSERT_EQ(pager.keys(), (std::vector<std::string>{"job-1/2", "job-1/3"}));
  EXPECT_THAT(pager.bodies()[0], HasSubstr(R"("status":"firing")"));
  EXPECT_THAT(pager.bodies()[1], HasSubstr(R"("first":"job-1/2")"));
}

TEST(AlertRoutingTest, SendsCorrectionAndEndToTheReceiversOfTheFirstAlert) {
  Receiver chat(0), pager(0);
  AlertOptions options = ByCertainty(chat, pager);
  options.updates_apart_ns = 0;
  AlertSender sender(options);
  sender.Send(Incident(), AlertEvent::kConfirmed);
  ASSERT_TRUE(Eventually([&] { return sender.sent() == 2; }));
  v1::Incident other = WithCulprit(7);
  other.mutable_verdicts(0)->set_certainty("likely");
  sender.Send(other, AlertEvent::kUpdated);
  ASSERT_TRUE(Eventually([&] { return sender.sent() == 4; }));
  sender.Send(other, AlertEvent::kResolved);
  ASSERT_TRUE(Eventually([&] { return sender.sent() == 6; }));
  EXPECT_EQ(pager.keys(), (std::vector<std::string>{"job-1/1", "job-1/2", "job-1/3"}));
}

TEST(AlertRoutingTest, AnIncidentThatNoRouteSendsMayGetOneLater) {
  Receiver chat(0), pager(0);
  AlertOptions options = ByCertainty(chat, pager);
  options.targets.erase(options.targets.begin());
  options.routes[0].to = {0};
  const auto outbox = std::make_shared<FakeOutbox>();
  AlertSender sender(options, outbox);
  sender.Send(WithCertainty("likely"), AlertEvent::kConfirmed);
  EXPECT_TRUE(outbox->rows().empty());
  sender.SaveAgain();
  EXPECT_TRUE(outbox->rows().empty());
  sender.Send(WithCertainty("certain"), AlertEvent::kUpdated);
  ASSERT_TRUE(Eventually([&] { return sender.sent() == 1; }));
  EXPECT_EQ(pager.keys(), std::vector<std::string>{"job-1/1"});
  EXPECT_THAT(pager.bodies()[0], HasSubstr(R"("status":"firing")"));
}

TEST(AlertRoutingTest, ARestartedDaemonKnowsWhoWasTold) {
  Receiver chat(0), pager(0);
  const AlertOptions options = ByCertainty(chat, pager);
  const auto outbox = std::make_shared<FakeOutbox>();
  {
    AlertSender sender(options, outbox);
    sender.Send(WithCertainty("likely"), AlertEvent::kConfirmed);
    ASSERT_TRUE(Eventually([&] { return sender.sent() == 1; }));
  }
  {
    AlertSender sender(options, outbox);
    sender.Restore(outbox->rows());
    sender.Send(WithCertainty("likely"), AlertEvent::kConfirmed);
    sender.Send(WithCertainty("certain"), AlertEvent::kUpdated);
    ASSERT_TRUE(Eventually([&] { return sender.sent() == 1; }));
  }
  AlertSender sender(options, outbox);
  sender.Restore(outbox->rows());
  sender.Send(WithCertainty("certain"), AlertEvent::kUpdated);
  sender.Send(WithCertainty("certain"), AlertEvent::kResolved);
  ASSERT_TRUE(Eventually([&] { return sender.sent() == 2; }));
  EXPECT_EQ(chat.keys(), (std::vector<std::string>{"job-1/1", "job-1/3"}));
  EXPECT_EQ(pager.keys(), (std::vector<std::string>{"job-1/2", "job-1/3"}));
}

TEST(AlertRoutingTest, ARestartedDaemonSendsWhatIsUnsentOnlyWhereItBelongs) {
  Receiver chat(0), pager(0);
  AlertOptions options = ByCertainty(chat, pager);
  const auto outbox = std::make_shared<FakeOutbox>();
  AlertRow row;
  row.incident = "job-1";
  row.sequence = 1;
  row.kind = "confirmed";
  row.made_ns = absl::GetCurrentTimeNanos();
  row.body = WithCertainty("likely");
  AlertSender sender(options, outbox);
  sender.Restore({row});
  ASSERT_TRUE(Eventually([&] { return sender.sent() == 1; }));
  EXPECT_EQ(chat.keys(), std::vector<std::string>{"job-1/1"});
  EXPECT_EQ(sender.waiting(), 0u);
  EXPECT_TRUE(pager.bodies().empty());
}

// A chat and a bus that get everything.
AlertOptions ToChatAndBus(const Receiver& chat, const Receiver& bus) {
  AlertOptions options = To(AlertKind::kJson, chat.url());
  options.targets.push_back({AlertKind::kCloudEvents, bus.url()});
  return options;
}

TEST(AlertAnnotationTest, SendsNotesToABusButNotToPeople) {
  Receiver chat(0), bus(0);
  AlertSender sender(ToChatAndBus(chat, bus));
  sender.Send(Incident(), AlertEvent::kConfirmed);
  sender.Send(Incident(), AlertEvent::kAnnotated);
  sender.Send(Incident(), AlertEvent::kAnnotated);
  sender.Send(Incident(), AlertEvent::kResolved);
  sender.Send(Incident(), AlertEvent::kAnnotated);
  ASSERT_TRUE(Eventually([&] { return sender.sent() == 6; }));
  EXPECT_EQ(chat.keys(), (std::vector<std::string>{"job-1/1", "job-1/4"}));
  EXPECT_EQ(bus.keys(), (std::vector<std::string>{"job-1/1", "job-1/2", "job-1/3", "job-1/4"}));
  EXPECT_THAT(bus.bodies()[1], HasSubstr(R"("type":"rollcall.incident.annotated")"));
  EXPECT_EQ(sender.waiting(), 0u);
}

TEST(AlertAnnotationTest, ANoteDelaysNoCorrection) {
  Receiver chat(0), bus(0);
  AlertOptions options = ToChatAndBus(chat, bus);
  options.updates_apart_ns = 100'000'000;
  AlertSender sender(options);
  sender.Send(Incident(), AlertEvent::kConfirmed);
  sender.Send(WithCulprit(7), AlertEvent::kUpdated);
  sender.Send(WithCulprit(7), AlertEvent::kAnnotated);
  ASSERT_TRUE(Eventually([&] { return sender.sent() == 5; }));
  EXPECT_EQ(chat.keys(), (std::vector<std::string>{"job-1/1", "job-1/2"}));
  EXPECT_EQ(bus.keys(), (std::vector<std::string>{"job-1/1", "job-1/2", "job-1/3"}));
}

// A silence holds the correction back, and ends after the note.
TEST(AlertAnnotationTest, ACorrectionThatANoteAlreadyShowsGoesOutAllTheSame) {
  Receiver chat(0), bus(0);
  AlertOptions options = ToChatAndBus(chat, bus);
  options.updates_apart_ns = 0;
  AlertSender sender(options);
  sender.Send(Incident(), AlertEvent::kConfirmed);
  sender.Send(WithCulprit(7), AlertEvent::kAnnotated);
  sender.Send(WithCulprit(7), AlertEvent::kUpdated);
  ASSERT_TRUE(Eventually([&] { return sender.sent() == 5; }));
  EXPECT_EQ(chat.keys(), (std::vector<std::string>{"job-1/1", "job-1/3"}));
}

// What the chat and the bus of a restarted daemon have got, of whose alert an event of this kind
// is unsent. The hang ends after `sent` messages in all.
struct Got {
  std::vector<std::string> chat, bus;
};

Got RestartWithUnsent(const std::string& kind, uint64_t sent) {
  Receiver chat(0), bus(0);
  const AlertOptions options = ToChatAndBus(chat, bus);
  const auto outbox = std::make_shared<FakeOutbox>();
  {
    AlertSender sender(options, outbox);
    sender.Send(Incident(), AlertEvent::kConfirmed);
    EXPECT_TRUE(Eventually([&] { return sender.sent() == 2; }));
  }
  std::vector<AlertRow> rows = outbox->rows();
  rows.push_back(rows.at(0));
  rows[1].sequence = 2;
  rows[1].kind = kind;
  rows[1].sent = false;
  rows[1].receivers.clear();
  AlertSender sender(options, outbox);
  sender.Restore(rows);
  sender.Send(Incident(), AlertEvent::kUpdated);  // nothing has changed
  sender.Send(Incident(), AlertEvent::kResolved);
  EXPECT_TRUE(Eventually([&] { return sender.sent() == sent; }));
  return {chat.keys(), bus.keys()};
}

TEST(AlertAnnotationTest, SendsAnUnsentNoteOnlyToTheBusAfterARestart) {
  const Got got = RestartWithUnsent("annotated", 3);
  EXPECT_EQ(got.chat, (std::vector<std::string>{"job-1/1", "job-1/3"}));
  EXPECT_EQ(got.bus, (std::vector<std::string>{"job-1/1", "job-1/2", "job-1/3"}));
}

TEST(AlertAnnotationTest, LeavesUnsentAlertsOfALaterReleaseAlone) {
  const Got got = RestartWithUnsent("of-a-later-release", 2);
  EXPECT_EQ(got.chat, (std::vector<std::string>{"job-1/1", "job-1/3"}));
  EXPECT_EQ(got.bus, got.chat);
}

}  // namespace
}  // namespace rollcall
