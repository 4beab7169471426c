// SPDX-License-Identifier: Apache-2.0
// The page's connections through TLS, with OpenSSL as client: slow ones, broken ones, many of them,
// and a certificate that changes.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/descriptors.h"
#include "eventually.h"
#include "net/http_front.h"
#include "net/http_request.h"
#include "tls_client.h"

namespace rollcall {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;
using testing::HasSubstr;
using testing::StartsWith;

constexpr int64_t kMs = 1'000'000;
constexpr char kGet[] = "GET / HTTP/1.1\r\n\r\n";
constexpr size_t kLarge = size_t{64} << 20;

class HttpTlsTest : public testing::Test {
 protected:
  void Start(HttpLimits limits = {}, bool with_tls = true) {
    const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    address_.sin_family = AF_INET;
    address_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ASSERT_EQ(bind(listener, reinterpret_cast<sockaddr*>(&address_), sizeof(address_)), 0);
    ASSERT_EQ(listen(listener, 5), 0);
    socklen_t size = sizeof(address_);
    getsockname(listener, reinterpret_cast<sockaddr*>(&address_), &size);
    Exchange(server_);
    TlsSource source;
    if (with_tls) {
      source = [this] {
        const std::lock_guard<std::mutex> lock(mutex_);
        return context_;
      };
    }
    front_ = std::make_unique<HttpFront>(
        listener, limits,
        [](const std::string& request, const HttpCaller& caller) {
          return Answer(request, caller);
        },
        [this](const HttpTopic&) { return version_.load(); }, source);
    ASSERT_TRUE(front_->Start());
  }
  void Exchange(const TestPair& pair) {
    TlsSettings settings = settings_;
    settings.certificate_pem = pair.certificate_pem;
    settings.key_pem = pair.key_pem;
    const auto made = TlsContext::Make(settings);
    ASSERT_TRUE(made.ok()) << made.status();
    const std::lock_guard<std::mutex> lock(mutex_);
    context_ = *made;
  }
  static HttpFront::Reply Answer(const std::string& request, const HttpCaller& caller) {
    HttpFront::Reply reply;
    const std::string_view path = RequestPath(request);
    reply.is_stream = path == "/stream";
    if (path == "/stream") {
      reply.bytes = "HEAD\n";
    } else if (path == "/large") {
      reply.bytes = std::string(kLarge, 'x');
      reply.close = true;
    } else {
      reply.bytes = absl::StrCat("<", caller.peer, " ", caller.is_encrypted ? "TLS" : "plain", " ",
                                 caller.certificate_pem, ">");
    }
    return reply;
  }
  void ExpectServed() const {
    TlsClient client(address_);
    ASSERT_TRUE(client.Handshake());
    client.Send(kGet);
    EXPECT_THAT(client.Receive(">"), HasSubstr(" TLS "));
  }

  const OpensslAuthority authority_;
  const TestPair server_ = authority_.Issue("DNS:localhost");
  TlsSettings settings_;
  sockaddr_in address_ = {};
  std::unique_ptr<HttpFront> front_;
  std::atomic<uint64_t> version_{1};
  std::mutex mutex_;
  std::shared_ptr<const TlsContext> context_;
};

// Until a request is complete. Handshakes on a busy machine must be within it.
constexpr int64_t kShortNs = 3000 * kMs;

// A socket without TLS.
class PlainClient {
 public:
  explicit PlainClient(const sockaddr_in& address) : fd_(socket(AF_INET, SOCK_STREAM, 0)) {
    (void)!connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof(address));
  }
  ~PlainClient() { close(fd_); }
  void Send(const std::string& text) const {
    (void)!send(fd_, text.data(), text.size(), MSG_NOSIGNAL);
  }
  std::string Receive(milliseconds patience = kPatience) const {
    std::string heard;
    char bytes[4096];
    pollfd ready = {fd_, POLLIN, 0};
    while (poll(&ready, 1, static_cast<int>(patience.count())) > 0) {
      const ssize_t count = recv(fd_, bytes, sizeof(bytes), 0);
      if (count <= 0) return heard + (count == 0 ? "<end>" : "<reset>");
      heard.append(bytes, static_cast<size_t>(count));
    }
    return heard;
  }

 private:
  const int fd_;
};

TEST_F(HttpTlsTest, AnswersRequestsOfOneConnectionAndSaysWhereItComesFrom) {
  Start();
  TlsClient client(address_);
  ASSERT_TRUE(client.Handshake());
  for (int i = 0; i < 3; ++i) {
    client.Send(kGet);
    EXPECT_THAT(client.Receive(">"), StartsWith("<ipv4:127.0.0.1:"));
  }
  client.Send("GET /healthz HTTP/1.1\r\n\r\n");
  EXPECT_THAT(client.Receive(), HasSubstr("200 OK"));
  EXPECT_TRUE(client.has_farewell());
}

TEST_F(HttpTlsTest, AnswersTwoRequestsOfOneRecord) {
  Start();
  TlsClient client(address_);
  ASSERT_TRUE(client.Handshake());
  client.Send(std::string(kGet) + kGet);
  EXPECT_THAT(client.Receive(">"), HasSubstr("TLS"));
  EXPECT_THAT(client.Receive(">"), HasSubstr("TLS"));
}

TEST_F(HttpTlsTest, PassesOnTheVerifiedCertificateOfAClient) {
  settings_.client_ca_pem = authority_.pem();
  Start();
  const TestPair own = authority_.Issue("URI:spiffe://x/rollcall/viewer");
  TlsClient client(address_, own);
  ASSERT_TRUE(client.Handshake());
  client.Send(kGet);
  EXPECT_THAT(client.Receive(">"), HasSubstr(own.certificate_pem));
  ExpectServed();  // a certificate is not required
}

TEST_F(HttpTlsTest, RefusesCertificatesOfOthersAndExpiredOnes) {
  settings_.client_ca_pem = authority_.pem();
  Start();
  for (const TestPair& pair : {OpensslAuthority().Issue("URI:spiffe://x/rollcall/viewer"),
                               authority_.Issue("DNS:a", -7200, -3600)}) {
    TlsClient client(address_, pair);
    // With TLS 1.3 the refusal comes after the client's end of the handshake.
    client.Handshake();
    client.Send(kGet);
    EXPECT_EQ(client.Receive(">"), "");
  }
  ExpectServed();
}

TEST_F(HttpTlsTest, RefusesClientsWithoutTheRequiredCertificateOrSan) {
  settings_.client_ca_pem = authority_.pem();
  settings_.requires_client_certificate = true;
  settings_.client_sans = {"scraper.example"};
  Start();
  TlsClient none(address_), other(address_, authority_.Issue("DNS:other.example")),
      named(address_, authority_.Issue("DNS:scraper.example"));
  for (TlsClient* client : {&none, &other, &named}) {
    client->Handshake();
    client->Send(kGet);
    EXPECT_EQ(client->Receive(">") != "", client == &named);
  }
}

TEST_F(HttpTlsTest, RefusesTls11AndTakesTls12) {
  Start();
  TlsClient old(address_, {}, TLS1_1_VERSION), accepted(address_, {}, TLS1_2_VERSION);
  EXPECT_FALSE(old.Handshake());
  EXPECT_TRUE(accepted.Handshake());
}

TEST_F(HttpTlsTest, RefusesTls12WhereOnly13IsAllowed) {
  settings_.needs_tls13 = true;
  Start();
  EXPECT_FALSE(TlsClient(address_, {}, TLS1_2_VERSION).Handshake());
  ExpectServed();
}

TEST_F(HttpTlsTest, RefusesRenegotiation) {
  Start();
  TlsClient client(address_, {}, TLS1_2_VERSION);
  ASSERT_TRUE(client.Handshake());
  // The server answers with a warning, and does no handshake.
  EXPECT_EQ(SSL_renegotiate(client.ssl()), 1);
  EXPECT_LE(SSL_do_handshake(client.ssl()), 0);
  ExpectServed();
}

TEST_F(HttpTlsTest, TellsPlainHttpToSpeakTls) {
  Start();
  const PlainClient client(address_);
  client.Send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  const std::string heard = client.Receive();
  EXPECT_THAT(heard, StartsWith("HTTP/1.1 400"));
  EXPECT_THAT(heard, HasSubstr("this page speaks TLS: https://"));
  EXPECT_THAT(heard, HasSubstr("<end>"));
}

TEST_F(HttpTlsTest, ClosesTlsOnAPlainPort) {
  Start({}, false);
  TlsClient client(address_);
  EXPECT_FALSE(client.Handshake());
  const PlainClient plain(address_);
  plain.Send("GET /healthz HTTP/1.1\r\n\r\n");
  EXPECT_THAT(plain.Receive(), HasSubstr("200 OK"));
}

TEST_F(HttpTlsTest, GarbageClosesTheConnectionOnly) {
  Start();
  for (const std::string& bytes :
       {std::string("\x16\x03\x01\xff\xff", 5) + std::string(70'000, '\0'),
        std::string(100, '\xff'), std::string("\0", 1), std::string("\x16\x03\x01\x00\x00", 5)}) {
    const PlainClient client(address_);
    client.Send(bytes);
    client.Receive(milliseconds(100));
  }
  ExpectServed();
}

TEST_F(HttpTlsTest, HandshakesThatStallEndAtTheDeadline) {
  HttpLimits limits;
  limits.request_ns = kShortNs;
  limits.idle_ns = 600'000 * kMs;
  Start(limits);
  const auto begun = steady_clock::now();
  const PlainClient silent(address_), half(address_);
  half.Send("\x16\x03\x01");
  TlsClient quiet(address_);  // ends its handshake and sends no request
  ASSERT_TRUE(quiet.Handshake());
  EXPECT_THAT(silent.Receive(), testing::EndsWith("<end>"));
  EXPECT_THAT(half.Receive(), testing::HasSubstr("<"));
  quiet.Receive();
  EXPECT_LT(steady_clock::now() - begun, kPatience);
  EXPECT_TRUE(Eventually([&] { return front_->counts().connections == 0; }));
}

TEST_F(HttpTlsTest, SlowBytesDoNotExtendTheDeadline) {
  HttpLimits limits;
  limits.request_ns = kShortNs;
  Start(limits);
  TlsClient client(address_);
  ASSERT_TRUE(client.Handshake());
  EXPECT_TRUE(Eventually([&] { return !client.Send("G"); }));
}

TEST_F(HttpTlsTest, TakesARequestByteByByte) {
  Start();
  TlsClient client(address_);
  ASSERT_TRUE(client.Handshake());
  for (const char* at = kGet; *at != '\0'; ++at) client.Send(std::string(1, *at));
  EXPECT_THAT(client.Receive(">"), HasSubstr("TLS"));
}

TEST_F(HttpTlsTest, AClientThatHasSentItsLastRequestGetsTheAnswer) {
  Start();
  TlsClient client(address_);
  ASSERT_TRUE(client.Handshake());
  client.Send(kGet);
  SSL_shutdown(client.ssl());
  shutdown(client.fd(), SHUT_WR);
  EXPECT_THAT(client.Receive(">"), HasSubstr("TLS"));
}

TEST_F(HttpTlsTest, ThreeHundredConnectionsDelayNoOther) {
  RaiseDescriptorLimit();
  Start();
  std::vector<std::unique_ptr<TlsClient>> clients;
  for (int i = 0; i < 300; ++i) {
    clients.push_back(std::make_unique<TlsClient>(address_));
    EXPECT_TRUE(clients.back()->Handshake()) << i;
    clients.back()->Send("GET / HT");
  }
  ExpectServed();
  EXPECT_LE(front_->counts().connections, 256u);
  EXPECT_GE(front_->counts().dropped, 300u - 256u);
  clients.back()->Send("TP/1.1\r\n\r\n");
  EXPECT_THAT(clients.back()->Receive(">"), HasSubstr("TLS"));
}

TEST_F(HttpTlsTest, ASlowReaderGetsAllOfALargeAnswerAndDelaysNoOther) {
  Start();
  TlsClient client(address_);
  ASSERT_TRUE(client.Handshake());
  client.Send("GET /large HTTP/1.1\r\n\r\n");
  std::string heard = client.Receive("x");
  for (int i = 0; i < 5; ++i) {
    std::this_thread::sleep_for(milliseconds(30));
    ExpectServed();
    char bytes[16384];
    const int count = SSL_read(client.ssl(), bytes, sizeof(bytes));
    if (count > 0) heard.append(bytes, static_cast<size_t>(count));
  }
  heard += client.Receive();
  EXPECT_EQ(heard, std::string(kLarge, 'x'));
  EXPECT_TRUE(client.has_farewell());
}

TEST_F(HttpTlsTest, AReaderThatStopsIsDropped) {
  HttpLimits limits;
  limits.stalled_ns = 600 * kMs;
  Start(limits);
  TlsClient client(address_);
  ASSERT_TRUE(client.Handshake());
  client.Send("GET /large HTTP/1.1\r\n\r\n");
  EXPECT_TRUE(Eventually([&] { return front_->counts().dropped == 1; }));
}

TEST_F(HttpTlsTest, AClientMayLeaveAmidAnAnswer) {
  Start();
  for (int i = 0; i < 20; ++i) {
    TlsClient client(address_);
    ASSERT_TRUE(client.Handshake());
    client.Send("GET /large HTTP/1.1\r\n\r\n");
    client.Receive("x");
    const linger at_once = {1, 0};
    setsockopt(client.fd(), SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
  }
  EXPECT_TRUE(Eventually([&] { return front_->counts().connections == 0; }));
  ExpectServed();
}

TEST_F(HttpTlsTest, StreamsKeepTheirCertificateWhileNewConnectionsGetTheNewOne) {
  Start();
  std::vector<std::unique_ptr<TlsClient>> viewers;
  for (int i = 0; i < 20; ++i) {
    viewers.push_back(std::make_unique<TlsClient>(address_));
    ASSERT_TRUE(viewers.back()->Handshake());
    viewers.back()->Send("GET /stream HTTP/1.1\r\n\r\n");
    EXPECT_THAT(viewers.back()->Receive("data: 1\n\n"), HasSubstr("data: 1\n\n"));
  }
  const TestPair renewed = authority_.Issue("DNS:localhost");
  Exchange(renewed);
  TlsClient later(address_);
  ASSERT_TRUE(later.Handshake());
  EXPECT_EQ(later.certificate_of_server(), renewed.certificate_pem);
  version_ = 2;
  for (const auto& viewer : viewers) {
    EXPECT_THAT(viewer->Receive("data: 2\n\n"), HasSubstr("data: 2\n\n"));
  }
}

TEST_F(HttpTlsTest, ABrowsersBytesToAStreamAreIgnored) {
  Start();
  TlsClient viewer(address_);
  ASSERT_TRUE(viewer.Handshake());
  viewer.Send("GET /stream HTTP/1.1\r\n\r\n");
  viewer.Receive("data: 1\n\n");
  viewer.Send(std::string(10'000, 'x'));
  version_ = 2;
  EXPECT_THAT(viewer.Receive("data: 2\n\n"), HasSubstr("data: 2\n\n"));
}

TEST_F(HttpTlsTest, StopsWhateverClientsDo) {
  HttpLimits limits;
  limits.request_ns = limits.idle_ns = limits.stalled_ns = limits.answer_ns = 600'000 * kMs;
  Start(limits);
  std::vector<std::unique_ptr<TlsClient>> clients;
  for (const char* request :
       {"GET /stream HTTP/1.1\r\n\r\n", "GET /large HTTP/1.1\r\n\r\n", "GET"}) {
    clients.push_back(std::make_unique<TlsClient>(address_));
    ASSERT_TRUE(clients.back()->Handshake());
    clients.back()->Send(request);
  }
  const PlainClient silent(address_);
  const auto begun = steady_clock::now();
  front_->Stop();
  EXPECT_LT(steady_clock::now() - begun, kPatience);
}

}  // namespace
}  // namespace rollcall
