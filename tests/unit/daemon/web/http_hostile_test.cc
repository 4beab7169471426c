// SPDX-License-Identifier: Apache-2.0
// What a stranger's requests may cost: a real server, and clients that send any bytes.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "http_fixture.h"

namespace rollcall {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

std::string Repeat(const std::string& text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += text;
  return all;
}

class HttpHostileTest : public HttpAccessTest {
 protected:
  // The response to these bytes, and to nothing more.
  std::string Send(const std::string& bytes) const {
    const std::string& address = server_->address();
    sockaddr_in to = {};
    to.sin_family = AF_INET;
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int port = 0;
    EXPECT_TRUE(absl::SimpleAtoi(address.substr(address.rfind(':') + 1), &port));
    to.sin_port = htons(static_cast<uint16_t>(port));
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    EXPECT_EQ(connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof(to)), 0);
    EXPECT_EQ(send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL), ssize_t(bytes.size()));
    std::string heard;
    char buffer[65536];
    ssize_t count = 0;
    while ((count = recv(fd, buffer, sizeof(buffer), 0)) > 0) heard.append(buffer, size_t(count));
    close(fd);
    return heard;
  }
  // `fields` are whole lines of the header.
  std::string Ask(const std::string& path, const std::string& fields) const {
    return Send(absl::StrCat("GET ", path, " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n",
                             fields, "\r\n"));
  }
  std::string LogInBy(const std::string& fields, const std::string& body) const {
    return Send(absl::StrCat("POST /login HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n",
                             fields, "Content-Length: ", body.size(), "\r\n\r\n", body));
  }
};

TEST_F(HttpHostileTest, ManyRangesOfAnAnswerAreOneAnswer) {
  Start();
  const std::string plain = Ask("/login.css", "");
  ASSERT_THAT(plain, StartsWith("HTTP/1.1 200"));
  for (const std::string range : {"0-", "0-1,0-1", "-1", "5-1", "9999999-", "x"}) {
    EXPECT_TRUE(Ask("/login.css", absl::StrCat("Range: bytes=", range, "\r\n")) == plain) << range;
  }
  const std::string many = absl::StrCat("Range: bytes=0-", Repeat(",0-", 2600), "\r\n");
  EXPECT_TRUE(Ask("/login.css", many) == plain);
  EXPECT_TRUE(Ask("/login.css", "rAnGe:bytes=0-,0-\r\n") == plain);
  const std::string viewer = "Authorization: Bearer viewer\r\n";
  EXPECT_TRUE(Ask("/api/v1/jobs", viewer + many) == Ask("/api/v1/jobs", viewer));
}

TEST_F(HttpHostileTest, ARangeHiddenInAnotherFieldIsRefused) {
  Start();
  EXPECT_THAT(Ask("/login.css", "Accept: a\nRange: bytes=0-,0-\r\n"), StartsWith("HTTP/1.1 400"));
}

// A body of 800 bytes can stand for a gigabyte.
TEST_F(HttpHostileTest, NoBodyIsDecompressed) {
  Start();
  for (const std::string encoding : {"gzip", "br", "deflate", "identity, gzip"}) {
    EXPECT_THAT(LogInBy(absl::StrCat("Content-Encoding: ", encoding, "\r\n"), "x"),
                StartsWith("HTTP/1.1 415"))
        << encoding;
  }
  EXPECT_THAT(LogInBy("Transfer-Encoding: chunked\r\n", "0\r\n\r\n"), StartsWith("HTTP/1.1 411"));
}

TEST_F(HttpHostileTest, FormsInSeveralPartsAreRefused) {
  Start();
  const std::string body =
      "--B\r\nContent-Disposition: form-data; name=\"token\"\r\n\r\nviewer\r\n--B--\r\n";
  EXPECT_THAT(LogInBy("Content-Type: multipart/form-data; boundary=B\r\n", body),
              StartsWith("HTTP/1.1 415"));
}

TEST_F(HttpHostileTest, ACompleteBodyNeedsNoContinue) {
  Start();
  const std::string answer = LogInBy("Expect: 100-continue\r\nContent-Type: application/json\r\n",
                                     "{\"token\":\"viewer\"}");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200"));
}

TEST_F(HttpHostileTest, SaysWhichPartOfARequestIsTooLarge) {
  Start();
  const std::string large(9000, 'x');
  EXPECT_THAT(Ask("/login", absl::StrCat("X: ", large, "\r\n")), StartsWith("HTTP/1.1 431"));
  EXPECT_THAT(Ask("/login", absl::StrCat("Cookie: a=", large, "\r\n")), StartsWith("HTTP/1.1 431"));
  EXPECT_THAT(Ask("/login", Repeat("a: b\r\n", 200)), StartsWith("HTTP/1.1 431"));
  EXPECT_THAT(Ask("/" + large, ""), StartsWith("HTTP/1.1 414"));
  EXPECT_THAT(LogInBy("", std::string(65 << 10, 'x')), StartsWith("HTTP/1.1 413"));
}

// httplib's brotli is much slower than gzip.
TEST_F(HttpHostileTest, CompressesByGzipOnly) {
  Start();
  const std::string fields = "Authorization: Bearer viewer\r\nAccept-Encoding: ";
  EXPECT_THAT(Ask("/login.css", fields + "br\r\n"), Not(HasSubstr("Content-Encoding")));
  EXPECT_THAT(Ask("/login.css", fields + "br, gzip\r\n"), HasSubstr("Content-Encoding: gzip"));
}

}  // namespace
}  // namespace rollcall
