// SPDX-License-Identifier: Apache-2.0
#include "net/http_request.h"

#include <gtest/gtest.h>

#include <ctime>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace rollcall {
namespace {

std::string Repeat(const std::string& text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += text;
  return all;
}

// The end of a request whose bytes arrive one by one.
RequestEnd FindByteByByte(const std::string& bytes) {
  RequestFinder finder;
  RequestEnd end = finder.Find("");
  for (size_t i = 1; i <= bytes.size() && end.size == 0 && end.refusal == 0; ++i) {
    end = finder.Find(std::string_view(bytes).substr(0, i));
  }
  return end;
}

struct Ending {
  std::string bytes;
  size_t size;
  int refusal;
};

TEST(FindRequestEndTest, FindsTheEndOrTheRefusal) {
  const std::string head = "POST / HTTP/1.1\r\n";
  for (const Ending& c : std::vector<Ending>{
           {"", 0, 0},
           {"GET / HTTP/1.1\r\n\r", 0, 0},
           {"GET / HTTP/1.1\r\n\r\n", 18, 0},
           {"GET / HTTP/1.1\r\n\r\nGET", 18, 0},
           {head + "content-length:2\r\n\r\nab", 39, 0},
           {head + "Content-Length: 2\r\n\r\na", 0, 0},
           {head + "Content-Length: -2\r\n\r\n", 0, 400},
           {head + "Content-Length: 2\r\nContent-Length: 2\r\n\r\nab", 0, 400},
           {head + "Content-Length: +2\r\n\r\nab", 0, 400},
           {head + "Host: a\r\nhost: b\r\n\r\n", 0, 400},
           {head + "Host: a\r\nHosts: b\r\n\r\n", 38, 0},
           {head + "Content-Length : 2\r\n\r\nab", 0, 400},
           {head + "Content-Length: 99999999\r\n\r\n", 0, 413},
           {head + "Transfer-Encoding: chunked\r\n\r\n", 0, 411},
           {head + "Content-Encoding: br\r\nContent-Length: 1\r\n\r\nx", 0, 415},
           {head + "content-encoding:gzip\r\n\r\n", 0, 415},
           {head + "Content-Encoding: identity\r\n\r\n", 47, 0},
           {head + "Content-Type: Multipart/form-data; boundary=b\r\n\r\n", 0, 415},
           {head + "Content-Type: text/plain\r\nContent-Type: multipart/mixed\r\n\r\n", 0, 415},
           {head + "Accept: a\nRange: bytes=0-\r\n\r\n", 0, 400},
           {head + "Accept: a\rRange: bytes=0-\r\n\r\n", 0, 400},
           {head + absl::StrCat("Accept: a", std::string(1, '\0')) + "\r\n\r\n", 0, 400},
           {"GET / HTTP/1.1\nRange: bytes=0-\r\n\r\n", 0, 400},
           {head + "Accept: a\tb\r\n\r\n", 32, 0},
           {"GET /" + std::string(9000, 'x') + " HTTP/1.1\r\n\r\n", 0, 414},
           {head + "X: " + std::string(9000, 'x') + "\r\n\r\n", 0, 431},
           {head + Repeat("a: b\r\n", 101) + "\r\n", 0, 431},
           {head + Repeat("a: b\r\n", 100) + "\r\n", 619, 0},
           {std::string(20'000, 'x'), 0, 431}}) {
    EXPECT_EQ(FindRequestEnd(c.bytes).size, c.size) << c.bytes.substr(0, 60);
    EXPECT_EQ(FindRequestEnd(c.bytes).refusal, c.refusal) << c.bytes.substr(0, 60);
    const RequestEnd slow = FindByteByByte(c.bytes);
    EXPECT_EQ(slow.size, c.size) << c.bytes.substr(0, 60);
    EXPECT_EQ(slow.refusal, c.refusal) << c.bytes.substr(0, 60);
  }
}

// A client that sends a request byte by byte must not keep the thread that serves all: it reads no
// head again for each byte of the body.
TEST(RequestFinderTest, ReadsEachByteOfARequestAboutOnce) {
  const std::string request =
      absl::StrCat("POST / HTTP/1.1\r\n", Repeat("a: " + std::string(150, 'x') + "\r\n", 99),
                   "Content-Length: 65536\r\n\r\n", std::string(65'536, 'b'));
  const std::clock_t start = std::clock();
  EXPECT_EQ(FindByteByByte(request).size, request.size());
  EXPECT_LT(std::clock() - start, CLOCKS_PER_SEC / 4);
}

TEST(RequestFinderTest, BeginsAgain) {
  RequestFinder finder;
  const std::string first = "POST / HTTP/1.1\r\nContent-Length: 9\r\n\r\n123456789";
  EXPECT_EQ(finder.Find(first + "GET").size, first.size());
  finder.Reset();
  EXPECT_EQ(finder.Find("GET / HTTP/1.1\r\n").size, 0u);
  EXPECT_EQ(finder.Find("GET / HTTP/1.1\r\n\r\n").size, 18u);
}

TEST(KeepKnownFieldsTest, KeepsWhatTheServerUses) {
  const std::string known =
      "POST /login HTTP/1.1\r\nHost: x\r\ncookie:a=b\r\nContent-Length: 3\r\n";
  EXPECT_EQ(KeepKnownFields(known + "\r\nabc"), known + "\r\nabc");
  EXPECT_EQ(
      KeepKnownFields(known + "Range: bytes=0-,0-\r\nExpect: 100-continue\r\nX: y\r\n\r\nabc"),
      known + "\r\nabc");
  EXPECT_EQ(KeepKnownFields("GET / HTTP/1.1\r\nRange: bytes=0-\r\n\r\n"), "GET / HTTP/1.1\r\n\r\n");
  EXPECT_EQ(KeepKnownFields("GET / HTTP/1.1\r\nAccept-Encoding: br, gzip\r\n\r\n"),
            "GET / HTTP/1.1\r\nAccept-Encoding: gzip\r\n\r\n");
  EXPECT_EQ(KeepKnownFields("GET / HTTP/1.1\r\nAccept-Encoding: br\r\n\r\n"),
            "GET / HTTP/1.1\r\n\r\n");
}

TEST(RequestPathTest, IsThatOfAGet) {
  EXPECT_EQ(RequestPath("GET /healthz?x HTTP/1.1\r\n"), "/healthz");
  EXPECT_EQ(RequestPath("HEAD /healthz HTTP/1.1\r\n"), "/healthz");
  EXPECT_EQ(RequestPath("POST /healthz HTTP/1.1\r\n"), "");
}

}  // namespace
}  // namespace rollcall
