// SPDX-License-Identifier: Apache-2.0
// The page's connections, with real sockets: slow ones, many of them, and silent ones.
#include "net/http_front.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/descriptors.h"
#include "eventually.h"
#include "net/http_request.h"

namespace rollcall {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;
using testing::HasSubstr;

constexpr int64_t kMs = 1'000'000;

const Owner kViewer = {"greedy", "ipv4:127.0.0.1"};

// With limits that no client reaches before a test has failed.
HttpLimits PatientLimits() {
  HttpLimits limits;
  limits.request_ns = limits.idle_ns = limits.stalled_ns = limits.answer_ns = 600'000 * kMs;
  return limits;
}

// A client's end of a connection.
class Client {
 public:
  // `from`: an address of this host; INADDR_ANY: what the system chooses.
  explicit Client(const sockaddr_in& address, in_addr_t from = INADDR_ANY)
      : fd_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in own = {};
    own.sin_family = AF_INET;
    own.sin_addr.s_addr = htonl(from);
    EXPECT_EQ(bind(fd_, reinterpret_cast<const sockaddr*>(&own), sizeof(own)), 0);
    is_connected_ = connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
  }
  ~Client() { close(fd_); }
  Client(Client&& other) noexcept
      : fd_(std::exchange(other.fd_, -1)), is_connected_(other.is_connected_) {}
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  bool is_connected() const { return is_connected_; }
  bool Send(const std::string& text) const {
    return send(fd_, text.data(), text.size(), MSG_NOSIGNAL) == ssize_t(text.size());
  }
  // Reads until the connection ends, `until` has arrived, or nothing arrives for a while.
  std::string Receive(const std::string& until = "", milliseconds patience = kPatience) const {
    std::string heard;
    char bytes[65536];
    pollfd ready = {fd_, POLLIN, 0};
    while (until.empty() || heard.find(until) == std::string::npos) {
      if (poll(&ready, 1, static_cast<int>(patience.count())) <= 0) break;
      const ssize_t count = recv(fd_, bytes, sizeof(bytes), 0);
      if (count <= 0) break;
      heard.append(bytes, size_t(count));
    }
    return heard;
  }
  // Whether the front closes it.
  bool IsClosed() const {
    const auto deadline = steady_clock::now() + kPatience;
    char bytes[65536];
    pollfd ready = {fd_, POLLIN, 0};
    while (steady_clock::now() < deadline) {
      if (poll(&ready, 1, 10) <= 0) continue;
      if (recv(fd_, bytes, sizeof(bytes), MSG_DONTWAIT) <= 0) return true;
    }
    return false;
  }
  // Ends the connection at once, and keeps the descriptor.
  void Reset() const {
    sockaddr nobody = {};
    nobody.sa_family = AF_UNSPEC;
    EXPECT_EQ(connect(fd_, &nobody, sizeof(nobody)), 0);
  }

 private:
  int fd_;
  bool is_connected_ = false;
};

class HttpFrontTest : public testing::Test {
 protected:
  void Start(HttpLimits limits = {}) {
    const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    address_.sin_family = AF_INET;
    address_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ASSERT_EQ(bind(listener, reinterpret_cast<sockaddr*>(&address_), sizeof(address_)), 0);
    ASSERT_EQ(listen(listener, 5), 0);
    socklen_t size = sizeof(address_);
    getsockname(listener, reinterpret_cast<sockaddr*>(&address_), &size);
    front_ = std::make_unique<HttpFront>(
        listener, limits,
        [this](const std::string& request, const HttpCaller&) { return Answer(request); },
        [this](const HttpTopic&) { return version_.load(); }, nullptr,
        [this] {
          connections_at_health_ = front_->counts().connections;
          return std::string();
        },
        [this](const Owner& viewer) { over_share_.push_back(viewer.user); });
    ASSERT_TRUE(front_->Start());
  }
  void TearDown() override {
    Release();
    if (front_ != nullptr) front_->Stop();
    front_.reset();
  }

  HttpFront::Reply Answer(const std::string& request) {
    HttpFront::Reply reply;
    if (RequestPath(request).substr(0, 7) == "/stream") {
      reply.is_stream = true;
      reply.viewer = kViewer;
      if (RequestPath(request) == "/stream/ann") reply.viewer.user = "ann";
      reply.bytes = "HEAD\n";
      return reply;
    }
    if (RequestPath(request) == "/hold") Hold();
    if (RequestPath(request) == "/hold-front") {
      const std::shared_ptr<void> last(nullptr, [this](void*) { Hold(); });
      reply.is_allowed = [last] { return true; };  // the front's thread destroys it
    }
    reply.bytes = RequestPath(request) == "/large" ? std::string(32 << 20, 'x')
                                                   : absl::StrCat("<", request.size(), ">");
    return reply;
  }
  void Hold() {
    std::unique_lock<std::mutex> lock(mutex_);
    ++held_;
    release_.wait(lock, [this] { return released_; });
  }
  void Release() {
    const std::lock_guard<std::mutex> lock(mutex_);
    released_ = true;
    release_.notify_all();
  }
  int answers_held() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return held_;
  }

  Client Connect() const { return Client(address_); }
  void ExpectHealthy() const {
    const auto begun = steady_clock::now();
    const Client client = Connect();
    EXPECT_TRUE(client.Send("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"));
    EXPECT_THAT(client.Receive(), HasSubstr("200 OK"));
    EXPECT_LT(steady_clock::now() - begun, kPatience) << "it is closed after the answer";
  }
  // Connections that have sent half a request.
  std::vector<Client> Slow(int count) const {
    std::vector<Client> clients;
    for (int i = 0; i < count; ++i) {
      clients.push_back(Connect());
      EXPECT_TRUE(clients.back().is_connected()) << i;
      clients.back().Send("GET / HTTP/1.1\r\nHo");
    }
    return clients;
  }

  sockaddr_in address_ = {};
  std::vector<std::string> over_share_;
  std::unique_ptr<HttpFront> front_;
  std::atomic<uint64_t> version_{1};
  std::atomic<uint64_t> connections_at_health_{0};
  std::mutex mutex_;
  std::condition_variable release_;
  bool released_ = false;
  int held_ = 0;
};

TEST_F(HttpFrontTest, AnswersRequestsOfOneConnectionInOrder) {
  Start();
  const Client client = Connect();
  const std::string get = "GET / HTTP/1.1\r\n\r\n";
  const std::string post = "POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc";
  client.Send(get + post.substr(0, 30));
  EXPECT_EQ(client.Receive(">"), absl::StrCat("<", get.size(), ">"));
  client.Send(post.substr(30));
  EXPECT_EQ(client.Receive(">"), absl::StrCat("<", post.size(), ">"));
}

TEST_F(HttpFrontTest, AHundredAndFortySlowConnectionsDelayNoOther) {
  Start(PatientLimits());
  const std::vector<Client> slow = Slow(140);
  ExpectHealthy();
  const Client client = Connect();
  client.Send("GET / HTTP/1.1\r\n\r\n");
  EXPECT_EQ(client.Receive(">"), "<18>");
  EXPECT_EQ(front_->counts().dropped, 0u);
}

TEST_F(HttpFrontTest, ElevenHundredSlowConnectionsLeaveDescriptorsAndDelayNoOther) {
  RaiseDescriptorLimit();
  rlimit limit = {};
  getrlimit(RLIMIT_NOFILE, &limit);
  if (limit.rlim_cur < 2000) GTEST_SKIP() << "this process may open " << limit.rlim_cur << " files";
  Start(PatientLimits());
  const std::vector<Client> slow = Slow(1100);
  ExpectHealthy();
  EXPECT_LE(front_->counts().connections, 256u);
  EXPECT_GE(front_->counts().dropped, 1100u - 256u);
  const Client client = Connect();
  client.Send("GET / HTTP/1.1\r\n\r\n");
  EXPECT_EQ(client.Receive(">"), "<18>");
}

TEST_F(HttpFrontTest, AQueueOfStrangersDoesNotKeepAnOpenConnectionWaiting) {
  HttpLimits limits = PatientLimits();
  limits.connections = 1000;
  Start(limits);
  const Client open = Connect();
  EXPECT_TRUE(open.Send("GET /a HTTP/1.1\r\nHost: x\r\n\r\n"));
  EXPECT_THAT(open.Receive(">"), HasSubstr(">"));
  const Client holder = Connect();
  holder.Send("GET /hold-front HTTP/1.1\r\nHost: x\r\n\r\n");
  ASSERT_TRUE(Eventually([this] { return answers_held() == 1; }));
  constexpr int kStrangers = 300;
  const std::vector<Client> strangers = Slow(kStrangers);
  EXPECT_TRUE(open.Send("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"));
  Release();
  EXPECT_THAT(open.Receive("200 OK"), HasSubstr("200 OK"));
  EXPECT_LT(connections_at_health_, uint64_t{kStrangers / 2});
}

TEST_F(HttpFrontTest, SlowBytesDoNotExtendTheDeadline) {
  HttpLimits limits;
  limits.request_ns = 1000 * kMs;
  Start(limits);
  const Client client = Connect();
  EXPECT_TRUE(Eventually([&] { return !client.Send("G"); }));
  const Client unfinished = Connect();
  unfinished.Send("GET / HTTP/1.1\r\n");
  EXPECT_THAT(unfinished.Receive(), HasSubstr("408"));
  const Client silent = Connect();
  EXPECT_TRUE(silent.IsClosed());
}

TEST_F(HttpFrontTest, ClosingAnIdleConnectionIsNotADrop) {
  HttpLimits limits = PatientLimits();
  limits.idle_ns = 300 * kMs;
  Start(limits);
  const Client client = Connect();
  client.Send("GET / HTTP/1.1\r\n\r\n");
  EXPECT_EQ(client.Receive(">"), "<18>");
  EXPECT_TRUE(client.IsClosed());
  EXPECT_EQ(front_->counts().dropped, 0u);
}

TEST_F(HttpFrontTest, AClientThatReadsNothingUsesNoThreadAndIsDropped) {
  HttpLimits limits;
  limits.threads = 1;
  limits.stalled_ns = 600 * kMs;
  Start(limits);
  const Client lazy = Connect();
  lazy.Send("GET /large HTTP/1.1\r\n\r\n");
  const Client client = Connect();
  client.Send("GET / HTTP/1.1\r\n\r\n");
  EXPECT_EQ(client.Receive(">"), "<18>");
  EXPECT_TRUE(Eventually([&] { return front_->counts().dropped == 1; }));
}

TEST_F(HttpFrontTest, RefusesRequestsWhileResponsesFillTheMemory) {
  HttpLimits limits = PatientLimits();
  limits.unsent_bytes = 1 << 20;
  Start(limits);
  const Client lazy = Connect();
  lazy.Send("GET /large HTTP/1.1\r\n\r\n");
  EXPECT_TRUE(Eventually([&] {
    const Client client = Connect();
    client.Send("GET / HTTP/1.1\r\nConnection: close\r\n\r\n");
    return client.Receive("\n\n", milliseconds(300)).find("503") != std::string::npos;
  }));
  ExpectHealthy();
}

// Room for one body of kLarge bytes, not for two.
constexpr size_t kLarge = 700'000;

HttpLimits LimitsOfBodies() {
  HttpLimits limits = PatientLimits();
  limits.threads = 2;
  limits.body_bytes = limits.bodies_bytes = 1'000'000;
  return limits;
}

std::string HeadFor(size_t body, const std::string& path = "/") {
  return absl::StrCat("GET ", path, " HTTP/1.1\r\nContent-Length: ", body, "\r\n\r\n");
}

TEST_F(HttpFrontTest, ABodyWithoutRoomIsRefusedBeforeItIsSent) {
  Start(LimitsOfBodies());
  const Client first = Connect();
  first.Send(HeadFor(kLarge, "/hold") + std::string(kLarge, 'x'));
  ASSERT_TRUE(Eventually([this] { return answers_held() == 1; }));
  const Client second = Connect();
  second.Send(HeadFor(kLarge));
  const std::string refusal = second.Receive();
  EXPECT_THAT(refusal, HasSubstr(" 503 "));
  EXPECT_THAT(refusal, HasSubstr("Retry-After: "));
  // Small requests and /healthz go on.
  ExpectHealthy();
  const Client small = Connect();
  small.Send(HeadFor(3) + "abc");
  EXPECT_THAT(small.Receive(">"), HasSubstr("<"));
  Release();
  EXPECT_THAT(first.Receive(">"), HasSubstr("<"));
  const Client third = Connect();
  third.Send(HeadFor(kLarge) + std::string(kLarge, 'x'));
  EXPECT_THAT(third.Receive(">"), HasSubstr("<"));
}

TEST_F(HttpFrontTest, AClientThatGoesAwayGivesTheRoomOfItsBodyBack) {
  Start(LimitsOfBodies());
  {
    const Client gone = Connect();
    gone.Send(HeadFor(kLarge) + "x");
    EXPECT_TRUE(Eventually([this, &gone] {
      gone.Send("x");  // else it would be closed as one that has stopped
      const Client other = Connect();
      other.Send(HeadFor(kLarge));
      return other.Receive("503", milliseconds(50)).find("503") != std::string::npos;
    }));
  }
  EXPECT_TRUE(Eventually([this] {
    const Client next = Connect();
    next.Send(HeadFor(kLarge) + std::string(kLarge, 'x'));
    return next.Receive(">").find("<") != std::string::npos;
  }));
  EXPECT_EQ(front_->counts().dropped, 0u);
}

TEST_F(HttpFrontTest, AClientThatStopsInItsBodyMakesRoomForAnother) {
  Start(LimitsOfBodies());
  const Client stopped = Connect();
  stopped.Send(HeadFor(kLarge) + "x");
  EXPECT_TRUE(Eventually([this] {
    const Client next = Connect();
    next.Send(HeadFor(kLarge) + std::string(kLarge, 'x'));
    return next.Receive(">").find("<") != std::string::npos;
  }));
  EXPECT_TRUE(stopped.IsClosed());
  EXPECT_EQ(front_->counts().dropped, 1u);
}

TEST_F(HttpFrontTest, IsHealthyWhileAllThreadsAreBusy) {
  HttpLimits limits = PatientLimits();
  limits.threads = 2;
  limits.connections = 20;
  Start(limits);
  std::vector<Client> held;
  for (int i = 0; i < 19; ++i) {
    held.push_back(Connect());
    held.back().Send("GET /hold HTTP/1.1\r\n\r\n");
  }
  ASSERT_TRUE(Eventually([&] { return answers_held() == 2; }));
  ExpectHealthy();
  // All connections wait for the daemon, which refuses the one too many.
  const Client last = Connect();
  last.Send("GET /hold HTTP/1.1\r\n\r\n");
  ASSERT_TRUE(Eventually([&] { return front_->counts().connections == 20; }));
  EXPECT_TRUE(Eventually([&] {  // when the last request is read
    return Connect().Receive("503", milliseconds(50)).find("503") != std::string::npos;
  }));
  Release();
  EXPECT_EQ(held.back().Receive(">"), "<22>");
}

TEST_F(HttpFrontTest, NotifiesViewersOfChangesWithoutAThreadForEach) {
  HttpLimits limits;
  limits.threads = 1;
  limits.viewers = 3;
  Start(limits);
  std::vector<Client> viewers;
  for (int i = 0; i < 3; ++i) {
    viewers.push_back(Connect());
    viewers.back().Send("GET /stream HTTP/1.1\r\n\r\n");
  }
  for (const Client& viewer : viewers) {
    EXPECT_EQ(viewer.Receive("data: 1\n\n"), "HEAD\nevent: change\ndata: 1\n\n");
  }
  EXPECT_FALSE(front_->HasRoomForViewer(kViewer));
  version_ = 2;
  for (const Client& viewer : viewers) {
    EXPECT_EQ(viewer.Receive("data: 2\n\n"), "event: change\ndata: 2\n\n");
  }
  viewers.pop_back();
  EXPECT_TRUE(Eventually([&] { return front_->HasRoomForViewer(kViewer); }));
}

TEST_F(HttpFrontTest, TheUserWithMostStreamsLosesOneToAUserWithFewer) {
  HttpLimits limits;
  limits.viewers = 3;
  Start(limits);
  std::vector<Client> greedy;
  for (int i = 0; i < 3; ++i) {
    greedy.push_back(Connect());
    greedy.back().Send("GET /stream HTTP/1.1\r\n\r\n");
    EXPECT_EQ(greedy.back().Receive("data: 1\n\n"), "HEAD\nevent: change\ndata: 1\n\n");
  }
  EXPECT_FALSE(front_->HasRoomForViewer(kViewer));
  EXPECT_TRUE(front_->HasRoomForViewer({"ann", kViewer.host}));
  const Client ann = Connect();
  ann.Send("GET /stream/ann HTTP/1.1\r\n\r\n");
  EXPECT_EQ(ann.Receive("data: 1\n\n"), "HEAD\nevent: change\ndata: 1\n\n");
  EXPECT_TRUE(Eventually([&] { return front_->counts().connections == 3; }));
  EXPECT_TRUE(greedy.back().IsClosed());
  version_ = 2;
  EXPECT_EQ(greedy.front().Receive("data: 2\n\n"), "event: change\ndata: 2\n\n");
  EXPECT_EQ(over_share_, (std::vector<std::string>{"greedy", "greedy"}))
      << "one who asked in vain, and one who lost a stream";
}

TEST_F(HttpFrontTest, AnAddressWithManyRequestsDoesNotKeepOthersWaiting) {
  HttpLimits limits;
  limits.threads = 4;
  Start(limits);
  std::vector<Client> greedy;
  for (int i = 0; i < 40; ++i) {
    greedy.push_back(Connect());
    greedy.back().Send("GET /hold HTTP/1.1\r\n\r\n");
  }
  ASSERT_TRUE(Eventually([&] { return answers_held() == 3; }));
  const Client other(address_, INADDR_LOOPBACK + 1);
  other.Send("GET / HTTP/1.1\r\n\r\n");
  EXPECT_EQ(other.Receive(">"), "<18>");
  EXPECT_EQ(answers_held(), 3);
  Release();
  for (const Client& client : greedy) EXPECT_EQ(client.Receive(">"), "<22>");
}

// Then new descriptors have the lowest numbers that become free.
class NoFreeNumbers {
 public:
  NoFreeNumbers() {
    for (int& fd : fds_) fd = dup(0);
  }
  ~NoFreeNumbers() {
    for (const int fd : fds_) close(fd);
  }
  NoFreeNumbers(const NoFreeNumbers&) = delete;
  NoFreeNumbers& operator=(const NoFreeNumbers&) = delete;

 private:
  int fds_[100];
};

TEST_F(HttpFrontTest, AnEventOfAClosedConnectionIsNotThatOfItsSuccessor) {
  HttpLimits limits = PatientLimits();
  limits.connections = 2;
  Start(limits);
  const NoFreeNumbers none;
  const Client oldest = Connect();
  ASSERT_TRUE(Eventually([&] { return front_->counts().connections == 1; }));
  const Client busy = Connect();
  busy.Send("GET /hold-front HTTP/1.1\r\n\r\n");
  ASSERT_TRUE(Eventually([&] { return answers_held() == 1; }));
  // The front will learn of two new clients and of the end of the oldest one at once, in this
  // order. The first new client makes the front close the oldest connection. The second new client
  // gets the number of its descriptor.
  const Client first = Connect(), second = Connect();
  second.Send("GET / HTTP/1.1\r\n\r\n");
  oldest.Reset();
  Release();
  EXPECT_EQ(second.Receive(">"), "<18>");
}

TEST_F(HttpFrontTest, WaitsForAFreeDescriptor) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "UndefinedBehaviorSanitizer looks at objects through a pipe, and needs "
                  "descriptors";
#endif
  Start();
  std::vector<Client> clients;
  for (int i = 0; i < 3; ++i) clients.push_back(Connect());
  ASSERT_TRUE(Eventually([&] { return front_->counts().connections == 3; }));
  const int first = dup(0);
  std::vector<int> all = {first};
  for (int fd = 0; (fd = dup(0)) >= 0;) all.push_back(fd);
  // One for the client. The front's own end gets one when an older connection makes room.
  close(all.back());
  all.pop_back();
  ExpectHealthy();
  for (const int fd : all) close(fd);
  ExpectHealthy();
}

TEST_F(HttpFrontTest, StopsWhateverClientsDo) {
  Start(PatientLimits());
  const std::vector<Client> slow = Slow(20);
  const Client lazy = Connect(), viewer = Connect();
  lazy.Send("GET /large HTTP/1.1\r\n\r\n");
  viewer.Send("GET /stream HTTP/1.1\r\n\r\n");
  viewer.Receive("data");
  const auto begun = steady_clock::now();
  front_->Stop();
  EXPECT_LT(steady_clock::now() - begun, kPatience);
  EXPECT_TRUE(viewer.IsClosed());
  EXPECT_FALSE(Client(address_).is_connected()) << "it would wait for an answer in vain";
}

}  // namespace
}  // namespace rollcall
