// SPDX-License-Identifier: Apache-2.0
// Alerts to real HTTP servers and commands.
#include "daemon/alerts/alerts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "alert_test_incidents.h"
#include "alert_test_receivers.h"
#include "daemon/alerts/alert_delivery.h"
#include "daemon/alerts/alert_target.h"
#include "daemon/history/history.h"
#include "daemon/jobs/daemon_counters.h"
#include "eventually.h"

namespace rollcall {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::Not;

TEST(AlertSenderTest, SendsAnIncidentOnceAndItsEndOnce) {
  Receiver receiver(0);
  {
    AlertSender sender(To(AlertKind::kJson, receiver.url()));
    sender.Send(Incident(), AlertEvent::kConfirmed);
    sender.Send(Incident(), AlertEvent::kConfirmed);
    sender.Send(Incident(), AlertEvent::kResolved);
    sender.Send(Incident(), AlertEvent::kResolved);
    ASSERT_TRUE(Eventually([&] { return sender.sent() == 2; }));
  }
  ASSERT_EQ(receiver.bodies().size(), 2u);
  EXPECT_THAT(receiver.bodies()[0], HasSubstr("firing"));
  EXPECT_THAT(receiver.bodies()[1], HasSubstr("resolved"));
}

TEST(AlertSenderTest, EachAlertHasAKeyOfItsOwn) {
  Receiver receiver(1);
  AlertSender sender(To(AlertKind::kJson, receiver.url()));
  sender.Send(Incident(), AlertEvent::kConfirmed);
  sender.Send(Incident(), AlertEvent::kResolved);
  ASSERT_TRUE(Eventually([&] { return sender.sent() == 2; }));
  EXPECT_EQ(receiver.keys(), (std::vector<std::string>{"job-1/1", "job-1/1", "job-1/2"}));
}

TEST(AlertSenderTest, ARestartedDaemonSendsNothingTwice) {
  Receiver receiver(0);
  const auto outbox = std::make_shared<FakeOutbox>();
  {
    AlertSender sender(To(AlertKind::kJson, receiver.url()), outbox);
    sender.Send(Incident(), AlertEvent::kConfirmed);
    ASSERT_TRUE(Eventually([&] { return sender.sent() == 1; }));
  }
  ASSERT_EQ(outbox->rows().size(), 1u);
  EXPECT_TRUE(outbox->rows()[0].sent);
  AlertSender sender(To(AlertKind::kJson, receiver.url()), outbox);
  sender.Restore(outbox->rows());
  sender.Send(Incident(), AlertEvent::kConfirmed);
  sender.Send(Incident(), AlertEvent::kUpdated);  // nothing has changed
  sender.Send(Incident(), AlertEvent::kResolved);
  ASSERT_TRUE(Eventually([&] { return sender.sent() == 1; }));
  EXPECT_EQ(receiver.keys(), (std::vector<std::string>{"job-1/1", "job-1/2"}));
}

TEST(AlertSenderTest, ARestartedDaemonSendsWhatIsUnsentToTheReceiversThatLackIt) {
  Receiver works(0), fails(1'000'000);
  AlertOptions options = To(AlertKind::kJson, works.url());
  options.targets.push_back({AlertKind::kJson, fails.url()});
  options.finish_within = std::chrono::seconds(1);
  const auto outbox = std::make_shared<FakeOutbox>();
  {
    AlertSender sender(options, outbox);
    sender.Send(Incident(), AlertEvent::kConfirmed);
    ASSERT_TRUE(Eventually([&] { return sender.sent() == 1 && fails.bodies().size() > 1; }));
  }
  ASSERT_EQ(outbox->rows().size(), 1u);
  EXPECT_FALSE(outbox->rows()[0].sent);
  const size_t before = fails.bodies().size();
  AlertSender sender(options, outbox);
  sender.Restore(outbox->rows());
  ASSERT_TRUE(Eventually([&] { return fails.bodies().size() > before; }));
  EXPECT_EQ(works.bodies().size(), 1u);
  EXPECT_EQ(fails.keys().back(), "job-1/1");
}

TEST(AlertSenderTest, AnAlertWaitsForTheOutboxButNotForLong) {
  Receiver receiver(0);
  const auto outbox = std::make_shared<FakeOutbox>();
  outbox->responds = false;
  AlertOptions options = To(AlertKind::kJson, receiver.url());
  options.save_within_ns = 200'000'000;
  AlertSender sender(options, outbox);
  const auto begun = std::chrono::steady_clock::now();
  sender.Send(Incident(), AlertEvent::kConfirmed);
  ASSERT_TRUE(Eventually([&] { return sender.sent() == 1; }));
  EXPECT_GE(std::chrono::steady_clock::now() - begun, std::chrono::milliseconds(200));
  ASSERT_TRUE(Eventually([&] { return outbox->rows()[0].sent; }));
}

TEST(AlertSenderTest, AChangeOfCulpritsGoesOutOnceWithTheNewestState) {
  Receiver receiver(0);
  AlertOptions options = To(AlertKind::kJson, receiver.url());
  options.updates_apart_ns = 3'000'000'000;  // longer than a busy machine takes to send three
  AlertSender sender(options);
  sender.Send(Incident(), AlertEvent::kConfirmed);
  sender.Send(WithCulprit(7), AlertEvent::kUpdated);
  sender.Send(WithCulprit(8), AlertEvent::kUpdated);
  ASSERT_TRUE(Eventually([&] { return sender.sent() == 2; }));
  EXPECT_EQ(receiver.keys(), (std::vector<std::string>{"job-1/1", "job-1/2"}));
  EXPECT_THAT(receiver.bodies()[1], HasSubstr(R"("ranks":"8, 4")"));
  EXPECT_THAT(receiver.bodies()[1], HasSubstr(R"("status":"updated")"));
}

TEST(AlertSenderTest, TheEndReplacesAWaitingUpdate) {
  Receiver receiver(0);
  const auto outbox = std::make_shared<FakeOutbox>();
  AlertSender sender(To(AlertKind::kJson, receiver.url()), outbox);
  sender.Send(Incident(), AlertEvent::kConfirmed);
  sender.Send(WithCulprit(7), AlertEvent::kUpdated);
  sender.Send(WithCulprit(7), AlertEvent::kResolved);
  ASSERT_TRUE(Eventually([&] { return sender.sent() == 2; }));
  EXPECT_EQ(receiver.keys(), (std::vector<std::string>{"job-1/1", "job-1/3"}));
  for (const AlertRow& row : outbox->rows()) EXPECT_TRUE(row.sent) << row.sequence;
}

v1::Incident WithId(const std::string& id) {
  v1::Incident incident = Incident();
  incident.set_id(id);
  return incident;
}

TEST(AlertSenderTest, AHangThatLastsIsRememberedLongerThanOneThatIsOver) {
  Receiver receiver(0);
  AlertOptions options = To(AlertKind::kJson, receiver.url());
  options.most_announced = 2;
  DaemonCounters counters;
  AlertSender sender(options, nullptr, &counters);
  sender.Send(WithId("lasts"), AlertEvent::kConfirmed);
  sender.Send(WithId("over"), AlertEvent::kConfirmed);
  sender.Send(WithId("over"), AlertEvent::kResolved);
  sender.Send(WithId("new"), AlertEvent::kConfirmed);
  sender.Send(WithId("lasts"), AlertEvent::kResolved);
  ASSERT_TRUE(Eventually([&] { return sender.sent() == 5; }));
  EXPECT_THAT(receiver.keys(), testing::Contains("lasts/2"));
  EXPECT_EQ(counters.Get().dropped[static_cast<size_t>(Dropped::kAlerts)], 0u);
}

TEST(AlertSenderTest, AnEndThatNoAlertWillAnnounceIsCounted) {
  Receiver receiver(0);
  AlertOptions options = To(AlertKind::kJson, receiver.url());
  options.most_announced = 1;
  DaemonCounters counters;
  AlertSender sender(options, nullptr, &counters);
  sender.Send(WithId("first"), AlertEvent::kConfirmed);
  sender.Send(WithId("second"), AlertEvent::kConfirmed);
  sender.Send(WithId("first"), AlertEvent::kResolved);
  ASSERT_TRUE(Eventually([&] { return sender.sent() == 2; }));
  EXPECT_EQ(counters.Get().dropped[static_cast<size_t>(Dropped::kAlerts)], 1u);
}

// Ten thousand texts would take much memory.
TEST(AlertSenderTest, TheTextOfAnIncidentGoesWhenItsEndWasSent) {
  Receiver receiver(0);
  AlertSender sender(To(AlertKind::kJson, receiver.url()), std::make_shared<FakeOutbox>());
  sender.Send(Incident(), AlertEvent::kConfirmed);
  ASSERT_TRUE(Eventually([&] { return sender.sent() == 1; }));
  EXPECT_EQ(sender.texts(), 1u) << "the incident lasts";
  sender.Send(Incident(), AlertEvent::kResolved);
  ASSERT_TRUE(Eventually([&] { return sender.sent() == 2; }));
  EXPECT_TRUE(Eventually([&] { return sender.texts() == 0; }));
}

TEST(AlertSenderTest, ANewOutboxGetsTheTextOfAnEndThatIsNotSent) {
  Receiver fails(1'000'000);
  AlertOptions options = To(AlertKind::kJson, fails.url());
  options.finish_within = std::chrono::seconds(1);
  const auto outbox = std::make_shared<FakeOutbox>();
  AlertSender sender(options, outbox);
  sender.Send(Incident(), AlertEvent::kConfirmed);
  sender.Send(Incident(), AlertEvent::kResolved);
  EXPECT_EQ(sender.texts(), 1u);
  outbox->Lose();
  sender.SaveAgain();
  const std::vector<AlertRow> rows = outbox->rows();
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].kind, "resolved");
  EXPECT_FALSE(rows[0].sent);
  EXPECT_EQ(rows[0].body.verdicts_size(), 1);
}

TEST(AlertSenderTest, SendsNoEndWithoutABeginning) {
  Receiver receiver(0);
  {
    AlertSender(To(AlertKind::kJson, receiver.url())).Send(Incident(), AlertEvent::kResolved);
  }
  EXPECT_TRUE(receiver.bodies().empty());
}

TEST(AlertSenderTest, RetriesUntilDelivered) {
  Receiver receiver(3);
  AlertSender sender(To(AlertKind::kJson, receiver.url()));
  sender.Send(Incident(), AlertEvent::kConfirmed);
  EXPECT_TRUE(Eventually([&] { return sender.sent() == 1; }));
  EXPECT_EQ(receiver.bodies().size(), 4u);
}

TEST(AlertSenderTest, SendsTheEndAfterTheBeginningDespiteRetries) {
  Receiver receiver(2);
  AlertSender sender(To(AlertKind::kJson, receiver.url()));
  sender.Send(Incident(), AlertEvent::kConfirmed);
  sender.Send(Incident(), AlertEvent::kResolved);
  ASSERT_TRUE(Eventually([&] { return sender.sent() == 2; }));
  ASSERT_EQ(receiver.bodies().size(), 4u);
  EXPECT_THAT(receiver.bodies()[2], HasSubstr("firing"));
  EXPECT_THAT(receiver.bodies()[3], HasSubstr("resolved"));
}

TEST(AlertSenderTest, GivesUpOnARefusedAlert) {
  Receiver receiver(100, 400);
  AlertSender sender(To(AlertKind::kJson, receiver.url()));
  sender.Send(Incident(), AlertEvent::kConfirmed);
  EXPECT_TRUE(Eventually([&] { return sender.failed() == 1; }));
  EXPECT_EQ(receiver.bodies().size(), 1u);
}

TEST(AlertSenderTest, ReadsASecretFromItsFileEachTime) {
  Receiver receiver(0);
  const std::string file = testing::TempDir() + "/alert-url-" + std::to_string(getpid());
  fs::remove(file);
  AlertSender sender(To(AlertKind::kJson, "@" + file));
  sender.Send(Incident(), AlertEvent::kConfirmed);
  std::ofstream(file) << receiver.url() << "\n";
  EXPECT_TRUE(Eventually([&] { return sender.sent() == 1; }));
  fs::remove(file);
}

TEST(AlertSenderTest, NeverLogsTheAddress) {
  testing::internal::CaptureStderr();
  testing::internal::CaptureStdout();
  {
    AlertSender sender(To(AlertKind::kJson, "http://127.0.0.1:1/secret-token"));
    sender.Send(Incident(), AlertEvent::kConfirmed);
  }
  const std::string said =
      testing::internal::GetCapturedStderr() + testing::internal::GetCapturedStdout();
  EXPECT_THAT(said, HasSubstr("cannot deliver the alert of"));
  EXPECT_THAT(said, Not(HasSubstr("secret-token")));
}

TEST(AlertSenderTest, GivesACommandTheBody) {
  const std::string file = testing::TempDir() + "/alert-body-" + std::to_string(getpid());
  {
    AlertSender sender(To(AlertKind::kCommand, "cat > " + file));
    sender.Send(Incident(), AlertEvent::kConfirmed);
    ASSERT_TRUE(Eventually([&] { return sender.sent() == 1; }));
  }
  std::ifstream stream(file);
  EXPECT_EQ(nlohmann::json::parse(stream)["incident"], "job-1");
  fs::remove(file);
}

TEST(AlertSenderTest, AReceiverThatNeverRespondsDelaysNoOther) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "the worker that is left behind logs while exit() ends the logger; the programs "
                  "end by LeaveProcess()";
#endif
  const AllThreadsEnd all_threads_end;
  const Slow silent("");
  Receiver receiver(0);
  // So many that one delivery after the other would take longer than this test waits.
  constexpr size_t kSilent = 1 + kPatience / kDeliverWithin;
  AlertOptions options = To(AlertKind::kJson, silent.url());
  options.targets.resize(kSilent, options.targets[0]);
  options.targets.push_back({AlertKind::kJson, receiver.url()});
  options.finish_within = std::chrono::seconds(0);
  AlertSender sender(options);
  sender.Send(Incident(), AlertEvent::kConfirmed);
  sender.Send(Incident(), AlertEvent::kResolved);
  ASSERT_TRUE(Eventually([&] { return receiver.bodies().size() == 2; }));
  // The sender counts a delivery once it has read the response.
  EXPECT_TRUE(Eventually([&] { return sender.waiting() == 2 * kSilent; }));
}

TEST(AlertSenderTest, EndsInTimeAndLogsUndeliveredAlerts) {
  const AllThreadsEnd all_threads_end;
  const Slow silent(""), trickle("HTTP/1.1 200 OK\r\nX: ");
  AlertOptions options = To(AlertKind::kJson, silent.url());
  options.targets.push_back({AlertKind::kJson, trickle.url()});
  options.targets.push_back({AlertKind::kCommand, "sleep 1000 & sleep 1000"});
  testing::internal::CaptureStdout();
  const auto begun = std::chrono::steady_clock::now();
  {
    AlertSender sender(options);
    sender.Send(Incident(), AlertEvent::kConfirmed);
    sender.Finish(begun + std::chrono::seconds(2));
    EXPECT_LT(std::chrono::steady_clock::now() - begun, kDeliverWithin) << "the time for a try";
    EXPECT_EQ(sender.sent(), 0u);
  }
  const std::string said = testing::internal::GetCapturedStdout();
  EXPECT_THAT(said, HasSubstr("cannot deliver 1 alert (json)"));
  EXPECT_THAT(said, HasSubstr("cannot deliver 1 alert (exec)"));
}

}  // namespace
}  // namespace rollcall
