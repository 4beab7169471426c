// SPDX-License-Identifier: Apache-2.0
// Alerts, to real HTTP servers and commands.
#include "daemon/server/alerts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <httplib.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "daemon/server/alert_delivery.h"
#include "eventually.h"

namespace rollcall {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::Not;

v1::Incident Incident() {
  v1::Incident incident;
  incident.set_id("job-1");
  incident.set_job("job");
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

nlohmann::json BodyOf(AlertKind kind, const AlertOptions& options = {}, bool resolved = false) {
  return nlohmann::json::parse(AlertBody({kind, "where"}, "secret-key", options, Incident(), resolved));
}

TEST(AlertBodyTest, OfJsonHasWhatOneWantsToKnow) {
  AlertOptions options;
  options.page = "https://rollcall.example/x";
  const auto body = BodyOf(AlertKind::kJson, options);
  EXPECT_EQ(body["status"], "firing");
  EXPECT_EQ(body["summary"], "rank 3 \"never\" entered <AllReduce> & co");
  EXPECT_EQ(body["ranks"], "3, 4");
  EXPECT_EQ(body["hosts"], "node-17");
  EXPECT_EQ(body["link"], "https://rollcall.example/x/#/incident/job-1");
  EXPECT_EQ(BodyOf(AlertKind::kJson, options, true)["status"], "resolved");
}

TEST(AlertBodyTest, OfATemplateStaysJsonWhateverTheTextIs) {
  AlertOptions options;
  options.template_text = R"x({"msg": "{{status}}: {{summary}} ({{nothing}})"})x";
  EXPECT_EQ(BodyOf(AlertKind::kJson, options)["msg"],
            "firing: rank 3 \"never\" entered <AllReduce> & co ({{nothing}})");
}

TEST(AlertBodyTest, OfSlackEscapesItsThreeCharacters) {
  EXPECT_THAT(BodyOf(AlertKind::kSlack)["text"].get<std::string>(),
              HasSubstr("&lt;AllReduce&gt; &amp; co"));
}

TEST(AlertBodyTest, OfPagerDutyResolvesWhatItTriggered) {
  const auto trigger = BodyOf(AlertKind::kPagerDuty);
  const auto resolve = BodyOf(AlertKind::kPagerDuty, {}, true);
  EXPECT_EQ(trigger["routing_key"], "secret-key");
  EXPECT_EQ(trigger["event_action"], "trigger");
  EXPECT_EQ(trigger["payload"]["severity"], "critical");
  EXPECT_EQ(resolve["event_action"], "resolve");
  EXPECT_EQ(trigger["dedup_key"], resolve["dedup_key"]);
}

TEST(AlertBodyTest, OfAlertmanagerHasTheSameLabelsWhenItIsOver) {
  const auto firing = BodyOf(AlertKind::kAlertmanager);
  const auto resolved = BodyOf(AlertKind::kAlertmanager, {}, true);
  EXPECT_EQ(firing[0]["labels"], resolved[0]["labels"]);
  EXPECT_EQ(firing[0]["startsAt"], "2023-11-14T22:13:20Z");
  EXPECT_FALSE(firing[0].contains("endsAt"));
  EXPECT_TRUE(resolved[0].contains("endsAt"));
}

TEST(AlertTargetTest, IsAKindAndAPlace) {
  EXPECT_EQ(ParseAlertTarget("slack=https://x/?a=b")->where, "https://x/?a=b");
  EXPECT_EQ(ParseAlertTarget("exec=mail me")->kind, AlertKind::kCommand);
  for (const char* wrong : {"", "slack", "slack=", "fax=1"}) {
    EXPECT_THAT(std::string(ParseAlertTarget(wrong).status().message()),
                HasSubstr("--alert=slack=@/etc"));
  }
}

// A server that fails the first `failures` times with this code.
class Receiver {
 public:
  explicit Receiver(int failures, int code = 503) {
    server_.Post("/hook", [=](const httplib::Request& request, httplib::Response& response) {
      const std::lock_guard<std::mutex> lock(mutex_);
      bodies_.push_back(request.body);
      if (static_cast<int>(bodies_.size()) <= failures) response.status = code;
    });
    port_ = server_.bind_to_any_port("127.0.0.1");
    thread_ = std::thread([this] { server_.listen_after_bind(); });
  }
  ~Receiver() {
    // Told to stop before it listens, it would listen for ever.
    while (!server_.is_running()) std::this_thread::yield();
    server_.stop();
    thread_.join();
  }
  std::string url() const { return absl::StrCat("http://127.0.0.1:", port_, "/hook"); }
  std::vector<std::string> bodies() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return bodies_;
  }

 private:
  httplib::Server server_;
  std::mutex mutex_;
  std::vector<std::string> bodies_;
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

TEST(AlertSenderTest, TellsOnceOfAnIncidentAndOnceOfItsEnd) {
  Receiver receiver(0);
  {
    AlertSender sender(To(AlertKind::kJson, receiver.url()));
    sender.Send(Incident(), false);
    sender.Send(Incident(), false);
    sender.Send(Incident(), true);
    sender.Send(Incident(), true);
    ASSERT_TRUE(Eventually([&] { return sender.sent() == 2; }));
  }
  ASSERT_EQ(receiver.bodies().size(), 2u);
  EXPECT_THAT(receiver.bodies()[0], HasSubstr("firing"));
  EXPECT_THAT(receiver.bodies()[1], HasSubstr("resolved"));
}

TEST(AlertSenderTest, SaysNothingOfTheEndOfWhatNobodyWasToldOf) {
  Receiver receiver(0);
  { AlertSender(To(AlertKind::kJson, receiver.url())).Send(Incident(), true); }
  EXPECT_TRUE(receiver.bodies().empty());
}

TEST(AlertSenderTest, TriesAgainUntilItIsTaken) {
  Receiver receiver(3);
  AlertSender sender(To(AlertKind::kJson, receiver.url()));
  sender.Send(Incident(), false);
  EXPECT_TRUE(Eventually([&] { return sender.sent() == 1; }));
  EXPECT_EQ(receiver.bodies().size(), 4u);
}

TEST(AlertSenderTest, TellsOfTheEndAfterTheBeginningAlsoWhereThatTakesSeveralTries) {
  Receiver receiver(2);
  AlertSender sender(To(AlertKind::kJson, receiver.url()));
  sender.Send(Incident(), false);
  sender.Send(Incident(), true);
  ASSERT_TRUE(Eventually([&] { return sender.sent() == 2; }));
  ASSERT_EQ(receiver.bodies().size(), 4u);
  EXPECT_THAT(receiver.bodies()[2], HasSubstr("firing"));
  EXPECT_THAT(receiver.bodies()[3], HasSubstr("resolved"));
}

TEST(AlertSenderTest, GivesUpOnWhatWillNeverBeTaken) {
  Receiver receiver(100, 400);
  AlertSender sender(To(AlertKind::kJson, receiver.url()));
  sender.Send(Incident(), false);
  EXPECT_TRUE(Eventually([&] { return sender.failed() == 1; }));
  EXPECT_EQ(receiver.bodies().size(), 1u);
}

TEST(AlertSenderTest, ReadsASecretFromItsFileEachTime) {
  Receiver receiver(0);
  const std::string file = testing::TempDir() + "/alert-url-" + std::to_string(getpid());
  fs::remove(file);
  AlertSender sender(To(AlertKind::kJson, "@" + file));
  sender.Send(Incident(), false);
  std::ofstream(file) << receiver.url() << "\n";
  EXPECT_TRUE(Eventually([&] { return sender.sent() == 1; }));
  fs::remove(file);
}

TEST(AlertSenderTest, NeverLogsTheAddress) {
  testing::internal::CaptureStderr();
  testing::internal::CaptureStdout();
  {
    AlertSender sender(To(AlertKind::kJson, "http://127.0.0.1:1/secret-token"));
    sender.Send(Incident(), false);
  }
  const std::string said =
      testing::internal::GetCapturedStderr() + testing::internal::GetCapturedStdout();
  EXPECT_THAT(said, HasSubstr("could not be delivered (json)"));
  EXPECT_THAT(said, Not(HasSubstr("secret-token")));
}

TEST(AlertSenderTest, GivesACommandTheBody) {
  const std::string file = testing::TempDir() + "/alert-body-" + std::to_string(getpid());
  {
    AlertSender sender(To(AlertKind::kCommand, "cat > " + file));
    sender.Send(Incident(), false);
    ASSERT_TRUE(Eventually([&] { return sender.sent() == 1; }));
  }
  std::ifstream stream(file);
  EXPECT_EQ(nlohmann::json::parse(stream)["incident"], "job-1");
  fs::remove(file);
}

// A listener that takes connections and says this to each, byte by byte, for as long as it lives.
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

TEST(AlertSenderTest, AReceiverThatNeverAnswersDelaysNoOther) {
  const AllThreadsEnd all_threads_end;
  const Slow silent("");
  Receiver receiver(0);
  AlertOptions options = To(AlertKind::kJson, silent.url());
  options.targets.push_back({AlertKind::kJson, receiver.url()});
  options.finish_within = std::chrono::seconds(0);
  const auto begun = std::chrono::steady_clock::now();
  AlertSender sender(options);
  sender.Send(Incident(), false);
  sender.Send(Incident(), true);
  ASSERT_TRUE(Eventually([&] { return receiver.bodies().size() == 2; }));
  EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(5));
  EXPECT_EQ(sender.waiting(), 2u);
}

TEST(AlertSenderTest, EndsInTimeAndSaysWhatWasNotDelivered) {
  const AllThreadsEnd all_threads_end;
  const Slow silent(""), trickle("HTTP/1.1 200 OK\r\nX: ");
  AlertOptions options = To(AlertKind::kJson, silent.url());
  options.targets.push_back({AlertKind::kJson, trickle.url()});
  options.targets.push_back({AlertKind::kCommand, "sleep 1000 & sleep 1000"});
  testing::internal::CaptureStdout();
  const auto begun = std::chrono::steady_clock::now();
  {
    AlertSender sender(options);
    sender.Send(Incident(), false);
    sender.Finish(begun + std::chrono::seconds(2));
    EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::milliseconds(3500));
    EXPECT_EQ(sender.sent(), 0u);
  }
  const std::string said = testing::internal::GetCapturedStdout();
  EXPECT_THAT(said, HasSubstr("1 alert was not delivered (json)"));
  EXPECT_THAT(said, HasSubstr("1 alert was not delivered (exec)"));
}

TEST(AlertDeliveryTest, AnAnswerThatTricklesInBuysNoTime) {
  const Slow trickle("HTTP/1.1 200 OK\r\nX: ");
  Cancellation cancellation;
  const auto begun = std::chrono::steady_clock::now();
  EXPECT_TRUE(absl::IsUnavailable(PostAlert(trickle.url(), "{}", &cancellation)));
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
  EXPECT_THAT(std::string(status.message()), HasSubstr("the daemon stops"));
  pid_t grandchild = 0;
  std::ifstream(file) >> grandchild;
  ASSERT_GT(grandchild, 1);
  // Dead, or a zombie that nobody has collected yet.
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

}  // namespace
}  // namespace rollcall
