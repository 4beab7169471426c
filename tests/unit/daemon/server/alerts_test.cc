// SPDX-License-Identifier: Apache-2.0
// Alerts to real HTTP servers and commands.
#include "daemon/server/alerts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <httplib.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "daemon/server/alert_delivery.h"
#include "eventually.h"

namespace rollcall {
namespace {

namespace fs = std::filesystem;

// As in every program that runs a daemon: a command may end before it has read the alert.
[[maybe_unused]] const auto kFormerHandler = signal(SIGPIPE, SIG_IGN);
using testing::HasSubstr;
using testing::Not;

v1::Incident Incident() {
  v1::Incident incident;
  incident.set_id("job-1");
  incident.set_job("job");
  incident.set_tenant("ml");
  incident.set_attempt(2);
  incident.set_state("confirmed");
  incident.set_report_path("/reports/x");
  incident.mutable_opened_at()->set_seconds(1'700'000'000);
  v1::Verdict* verdict = incident.add_verdicts();
  verdict->set_cause("missing_rank");
  verdict->set_certainty("certain");
  verdict->set_summary("rank 3 \"never\" entered <AllReduce> & co");
  for (int rank : {3, 4}) {
    v1::Culprit* culprit = verdict->add_culprits();
    culprit->set_rank(rank);
    culprit->set_host("node-17");
  }
  return incident;
}

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
  EXPECT_EQ(body["attempt"], "2");
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
              HasSubstr(":white_check_mark: resolved, the job goes on"));
  EXPECT_THAT(SlackAtEnd("ended")["text"].get<std::string>(),
              testing::AllOf(HasSubstr("the job ended while it hung: rank 3"),
                             Not(HasSubstr("white_check_mark"))));
}

TEST(AlertBodyTest, SlackHasJobAttemptHostLineAndTheFirstAdvice) {
  AlertMessage message = {Incident(), AlertEvent::kConfirmed, 1, "missing_rank"};
  v1::Verdict* verdict = message.incident.mutable_verdicts(0);
  verdict->mutable_culprits(0)->set_at("train.py:31 in validate");
  verdict->add_advice()->set_text("Validate on all ranks.");
  verdict->add_advice()->set_text("Not this one.");
  const std::string blocks =
      nlohmann::json::parse(AlertBody({AlertKind::kSlack, "where"}, "", {}, message))["blocks"].dump();
  for (const char* text : {"*Job*\\njob", "*Attempt*\\n2", "*Hosts*\\nnode-17",
                           "*Line*\\ntrain.py:31 in validate", "Validate on all ranks."}) {
    EXPECT_THAT(blocks, HasSubstr(text));
  }
  EXPECT_THAT(blocks, Not(HasSubstr("Not this one")));
}

TEST(AlertBodyTest, NoFieldOfSlackIsLongerThanItsLimit) {
  AlertMessage message = {Incident(), AlertEvent::kConfirmed, 1, "missing_rank"};
  message.incident.mutable_verdicts(0)->mutable_culprits(0)->set_at(std::string(20000, '&'));
  const auto body =
      nlohmann::json::parse(AlertBody({AlertKind::kSlack, "where"}, "", {}, message));
  for (const auto& field : body["blocks"][1]["fields"]) {
    EXPECT_LE(field["text"].get<std::string>().size(), 2000u);
  }
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
  const auto body = nlohmann::json::parse(
      AlertBody({AlertKind::kAlertmanager, "where"}, "", {}, message));
  EXPECT_EQ(body[0]["labels"]["cause"], "host_lost");
  EXPECT_EQ(body[0]["annotations"]["cause"], "missing_rank");
  EXPECT_FALSE(body[0].contains("endsAt"));
}

TEST(AlertBodyTest, SaysThatItIsAnUpdateAndHasAKey) {
  EXPECT_EQ(MakeBody(AlertKind::kJson, {}, AlertEvent::kUpdated)["status"], "updated");
  EXPECT_EQ(MakeBody(AlertKind::kJson)["idempotency_key"], "job-1/1");
  EXPECT_THAT(MakeBody(AlertKind::kSlack, {}, AlertEvent::kUpdated)["text"].get<std::string>(),
              HasSubstr("updated: rank 3"));
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

// A server that answers the first `failures` requests with this status.
class Receiver {
 public:
  explicit Receiver(int failures, int code = 503) {
    server_.Post("/hook", [=](const httplib::Request& request, httplib::Response& response) {
      const std::lock_guard<std::mutex> lock(mutex_);
      bodies_.push_back(request.body);
      keys_.push_back(request.get_header_value("Idempotency-Key"));
      if (static_cast<int>(bodies_.size()) <= failures) response.status = code;
    });
    port_ = server_.bind_to_any_port("127.0.0.1");
    thread_ = std::thread([this] { server_.listen_after_bind(); });
  }
  ~Receiver() {
    // A server that is stopped before it listens would listen for ever.
    while (!server_.is_running()) std::this_thread::yield();
    server_.stop();
    thread_.join();
  }
  std::string url() const { return absl::StrCat("http://127.0.0.1:", port_, "/hook"); }
  std::vector<std::string> keys() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return keys_;
  }
  std::vector<std::string> bodies() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return bodies_;
  }

 private:
  httplib::Server server_;
  std::mutex mutex_;
  std::vector<std::string> bodies_, keys_;
  int port_ = 0;
  std::thread thread_;
};

AlertOptions To(AlertKind kind, const std::string& where) {
  AlertOptions options;
  options.targets = {{kind, where}};
  options.first_pause_ns = 5'000'000;
  options.longest_pause_ns = 20'000'000;
  return options;
}

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

// An outbox in memory. Calls `saved` at once unless `responds` is false.
class FakeOutbox : public AlertOutbox {
 public:
  void Save(AlertRow alert, std::function<void()> saved) override {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      rows_[{alert.incident, alert.sequence}] = std::move(alert);
    }
    if (responds) saved();
  }
  void Mark(const std::string& incident, int32_t sequence, const std::string& receiver) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    AlertRow& row = rows_[{incident, sequence}];
    if (receiver.empty()) {
      row.sent = true;
    } else {
      row.receivers.insert(receiver);
    }
  }
  std::vector<AlertRow> rows() {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::vector<AlertRow> rows;
    for (const auto& [key, row] : rows_) rows.push_back(row);
    return rows;
  }
  // A new outbox is in place of this one.
  void Lose() {
    const std::lock_guard<std::mutex> lock(mutex_);
    rows_.clear();
  }
  std::atomic<bool> responds = true;

 private:
  std::mutex mutex_;
  std::map<std::pair<std::string, int32_t>, AlertRow> rows_;
};

v1::Incident WithCulprit(int rank) {
  v1::Incident incident = Incident();
  incident.mutable_verdicts(0)->mutable_culprits(0)->set_rank(rank);
  return incident;
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
  options.updates_apart_ns = 500'000'000;
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

TEST(AlertSenderTest, AnEndThatNobodyWillAnnounceIsCounted) {
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
  { AlertSender(To(AlertKind::kJson, receiver.url())).Send(Incident(), AlertEvent::kResolved); }
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

TEST(AlertRoutingTest, AVerdictThatBecomesCertainIsTheFirstAlertOfWhoWaitsForThat) {
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

TEST(AlertRoutingTest, WhoGotTheFirstAlertGetsTheCorrectionAndTheEndWhateverTheRoutesSay) {
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

TEST(AlertAnnotationTest, ANoteIsAnEventOfItsOwnForABusAndNoMessageForPeople) {
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

TEST(AlertAnnotationTest, ARestartedDaemonSendsAnUnsentNoteToTheBusAloneAndGoesOn) {
  Receiver chat(0), bus(0);
  const AlertOptions options = ToChatAndBus(chat, bus);
  const auto outbox = std::make_shared<FakeOutbox>();
  {
    AlertSender sender(options, outbox);
    sender.Send(Incident(), AlertEvent::kConfirmed);
    ASSERT_TRUE(Eventually([&] { return sender.sent() == 2; }));
  }
  std::vector<AlertRow> rows = outbox->rows();
  rows.push_back(rows[0]);
  rows[1].sequence = 2;
  rows[1].kind = "annotated";
  rows[1].sent = false;
  rows[1].receivers.clear();
  AlertSender sender(options, outbox);
  sender.Restore(rows);
  sender.Send(Incident(), AlertEvent::kUpdated);  // nothing has changed
  sender.Send(Incident(), AlertEvent::kResolved);
  ASSERT_TRUE(Eventually([&] { return sender.sent() == 3; }));
  EXPECT_EQ(chat.keys(), (std::vector<std::string>{"job-1/1", "job-1/3"}));
  EXPECT_EQ(bus.keys(), (std::vector<std::string>{"job-1/1", "job-1/2", "job-1/3"}));
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

// A listener that accepts connections and sends this text to each, byte by byte, until its end.
class Slow {
 public:
  explicit Slow(std::string text) : text_(std::move(text)) {
    fd_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    bind(fd_, reinterpret_cast<sockaddr*>(&address), sizeof(address));
    listen(fd_, 16);
    socklen_t size = sizeof(address);
    getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &size);
    url_ = absl::StrCat("http://127.0.0.1:", ntohs(address.sin_port), "/");
    thread_ = std::thread([this] { Trickle(); });
  }
  ~Slow() {
    shutdown(fd_, SHUT_RDWR);
    stopping_ = true;
    thread_.join();
    close(fd_);
  }
  const std::string& url() const { return url_; }

 private:
  void Trickle() {
    std::vector<int> all;
    while (!stopping_) {
      pollfd ready = {fd_, POLLIN, 0};
      if (poll(&ready, 1, 20) > 0 && !stopping_) all.push_back(accept(fd_, nullptr, nullptr));
      const char next = text_.empty() ? 0 : text_[at_++ % text_.size()];
      for (const int fd : all) {
        if (!text_.empty()) (void)send(fd, &next, 1, MSG_NOSIGNAL);
      }
    }
    for (const int fd : all) close(fd);
  }

  const std::string text_;
  size_t at_ = 0;
  int fd_ = -1;
  std::string url_;
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

TEST(AlertSenderTest, AReceiverThatNeverRespondsDelaysNoOther) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "the worker that is left behind logs while exit() ends the logger; the programs "
                  "end by LeaveProcess()";
#endif
  const AllThreadsEnd all_threads_end;
  const Slow silent("");
  Receiver receiver(0);
  AlertOptions options = To(AlertKind::kJson, silent.url());
  options.targets.push_back({AlertKind::kJson, receiver.url()});
  options.finish_within = std::chrono::seconds(0);
  const auto begun = std::chrono::steady_clock::now();
  AlertSender sender(options);
  sender.Send(Incident(), AlertEvent::kConfirmed);
  sender.Send(Incident(), AlertEvent::kResolved);
  ASSERT_TRUE(Eventually([&] { return receiver.bodies().size() == 2; }));
  EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(5));
  EXPECT_EQ(sender.waiting(), 2u);
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
    EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::milliseconds(3500));
    EXPECT_EQ(sender.sent(), 0u);
  }
  const std::string said = testing::internal::GetCapturedStdout();
  EXPECT_THAT(said, HasSubstr("cannot deliver 1 alert (json)"));
  EXPECT_THAT(said, HasSubstr("cannot deliver 1 alert (exec)"));
}

TEST(AlertDeliveryTest, ASlowResponseDoesNotExtendTheDeadline) {
  const Slow trickle("HTTP/1.1 200 OK\r\nX: ");
  Cancellation cancellation;
  const auto begun = std::chrono::steady_clock::now();
  EXPECT_TRUE(absl::IsUnavailable(SendAlertRequests({{"POST", trickle.url(), "{}"}}, "job-1/1", "", &cancellation)));
  EXPECT_LT(std::chrono::steady_clock::now() - begun, kDeliverWithin + std::chrono::seconds(3));
}

TEST(AlertDeliveryTest, ACommandThatIsKilledLeavesNothingBehind) {
  const std::string file = testing::TempDir() + "/alert-pid-" + std::to_string(getpid());
  Cancellation cancellation;
  std::thread cancels([&] {
    Eventually([&] { return fs::exists(file) && fs::file_size(file) > 0; });
    cancellation.Cancel();
  });
  const absl::Status status =
      RunAlertCommand("sleep 1000 & echo $! > " + file + "; wait", "{}", 0, &cancellation);
  cancels.join();
  EXPECT_THAT(std::string(status.message()), HasSubstr("the daemon stopped"));
  pid_t grandchild = 0;
  std::ifstream(file) >> grandchild;
  ASSERT_GT(grandchild, 1);
  // Dead, or a zombie that init has not collected yet.
  EXPECT_TRUE(Eventually([&] {
    std::ifstream stat("/proc/" + std::to_string(grandchild) + "/stat");
    std::string pid, name, state;
    return !(stat >> pid >> name >> state) || state == "Z";
  }));
  fs::remove(file);
}

TEST(AlertDeliveryTest, ACommandHasTheUsualLimitOfOpenFiles) {
  Cancellation cancellation;
  EXPECT_TRUE(RunAlertCommand("test $(ulimit -S -n) = 123", "{}", 123, &cancellation).ok());
}

TEST(AlertDeliveryTest, ABrokenPipeEndsACommandAlthoughTheDaemonIgnoresIt) {
  const auto before = signal(SIGPIPE, SIG_IGN);
  Cancellation cancellation;
  const absl::Status status = RunAlertCommand("kill -PIPE $$", "{}", 0, &cancellation);
  signal(SIGPIPE, before);
  EXPECT_FALSE(status.ok()) << "the command has ignored the signal";
}

}  // namespace
}  // namespace rollcall
