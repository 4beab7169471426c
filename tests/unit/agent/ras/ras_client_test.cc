// SPDX-License-Identifier: Apache-2.0
// Asks servers on loopback: as NCCL of several releases speaks, and hostile ones.
#include "agent/ras/ras_client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/monotonic_clock.h"
#include "ras_server.h"

namespace rollcall {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr int64_t kMs = 1'000'000;

constexpr int64_t kLongNs = 120'000 * kMs;

// For servers that answer, also on a busy machine.
RasLimits Patient() {
  RasLimits limits;
  limits.connect_ns = limits.greeting_ns = limits.answer_ns = limits.total_ns = kLongNs;
  return limits;
}

// For servers that greet, and then do not answer.
RasLimits WithAnswerSoon() {
  RasLimits limits = Patient();
  limits.answer_ns = 1'000 * kMs;
  return limits;
}

// Until the test ends.
void Wait(int fd) {
  pollfd wait = {fd, POLLRDHUP, 0};
  poll(&wait, 1, static_cast<int>(kLongNs / kMs));
}

struct Asked {
  absl::StatusOr<RasText> answer;
  int connections = 0;
  int64_t took_ns = 0;
};

Asked Ask(const std::function<void(int)>& serve, const RasLimits& limits = Patient()) {
  RasServer server(serve);
  Asked asked;
  const int64_t begun_ns = MonotonicNs();
  asked.answer = AskRasAt(server.end(), limits);
  asked.took_ns = MonotonicNs() - begun_ns;
  asked.connections = server.connections();
  return asked;
}

TEST(RasClientTest, ANewReleaseAnswersWithJson) {
  std::vector<std::string> heard;
  RasRelease release{true, "text\n", "{\n  \"nccl_version\": \"2.29.2\"\n}\n"};
  const Asked asked = Ask(AsNccl(release, &heard));
  ASSERT_TRUE(asked.answer.ok()) << asked.answer.status();
  EXPECT_TRUE(asked.answer->json);
  EXPECT_FALSE(asked.answer->cut);
  EXPECT_EQ(asked.answer->text, release.json);
  EXPECT_EQ(asked.connections, 1);
  EXPECT_THAT(heard,
              ElementsAre("CLIENT PROTOCOL 2", "TIMEOUT 2", "SET FORMAT json", "VERBOSE STATUS"));
}

TEST(RasClientTest, AnOlderReleaseAnswersWithText) {
  const Asked asked = Ask(AsNccl({false, "NCCL version 2.24.3 compiled\n\nJob summary\n", ""}));
  ASSERT_TRUE(asked.answer.ok()) << asked.answer.status();
  EXPECT_FALSE(asked.answer->json);
  EXPECT_EQ(asked.answer->text, "NCCL version 2.24.3 compiled\n\nJob summary\n");
}

TEST(RasClientTest, AnotherProtocolVersionIsSpokenToAllTheSame) {
  const Asked asked = Ask([](int fd) {
    LineOfClient(fd);
    Say(fd, "SERVER PROTOCOL 3\r\n");
    AsNccl({false, "later\n", ""})(fd);
  });
  ASSERT_TRUE(asked.answer.ok()) << asked.answer.status();
  EXPECT_EQ(asked.answer->text, "later\n");
}

TEST(RasClientTest, ControlCharactersOfTheAnswerAreReplaced) {
  const Asked asked = Ask(AsNccl({false,
                                  "a\x1b[2Jb\xff\n\x01"
                                  "c\n",
                                  ""}));
  ASSERT_TRUE(asked.answer.ok()) << asked.answer.status();
  EXPECT_EQ(asked.answer->text, "a?[2Jb?\n?c\n");
}

TEST(RasClientTest, AnAnswerIsCutAtTheLimit) {
  RasLimits limits = Patient();
  limits.most_bytes = 100'000;
  const Asked asked = Ask(
      [](int fd) {
        AsNccl({false, "", ""})(fd);
        while (Say(fd, std::string(5000, 'x') + "\n")) {
        }
      },
      limits);
  ASSERT_TRUE(asked.answer.ok()) << asked.answer.status();
  EXPECT_TRUE(asked.answer->cut);
  EXPECT_EQ(asked.answer->text.size(), limits.most_bytes);
}

TEST(RasClientTest, AnAnswerThatDripsIsCutInTime) {
  const Asked asked = Ask(
      [](int fd) {
        AsNccl({false, "drip", ""})(fd);
        for (pollfd wait = {fd, POLLRDHUP, 0}; poll(&wait, 1, 10) == 0;) {
          if (!Say(fd, ".")) return;
        }
      },
      WithAnswerSoon());
  ASSERT_TRUE(asked.answer.ok()) << asked.answer.status();
  EXPECT_TRUE(asked.answer->cut);
  EXPECT_THAT(asked.answer->text, HasSubstr("drip.."));
  EXPECT_LT(asked.took_ns, kLongNs / 2);
}

TEST(RasClientTest, AServerThatNeverGreetsIsTriedOnNewConnections) {
  RasLimits limits = Patient();
  limits.greeting_ns = 100 * kMs;
  limits.total_ns = 600 * kMs;
  const Asked asked = Ask(&Wait, limits);
  EXPECT_EQ(asked.answer.status().message(), "it did not answer in time");
  EXPECT_LT(asked.took_ns, kLongNs / 2);
}

// As of processes that share an address, of which one is stopped.
TEST(RasClientTest, AnotherProcessAtTheAddressMayAnswer) {
  RasLimits limits = Patient();
  limits.greeting_ns = 3'000 * kMs;
  int connection = 0;
  const Asked asked = Ask(
      [&connection](int fd) {
        if (connection++ > 0) AsNccl({false, "second\n", ""})(fd);
        if (connection == 1) Wait(fd);
      },
      limits);
  ASSERT_TRUE(asked.answer.ok()) << asked.answer.status();
  EXPECT_EQ(asked.answer->text, "second\n");
  EXPECT_EQ(asked.connections, 2);
}

TEST(RasClientTest, AServerThatNeverAnswersTheQuestionIsAskedOnce) {
  int questions = 0;
  const Asked asked = Ask(
      [&questions](int fd) {
        LineOfClient(fd);
        Say(fd, "SERVER PROTOCOL 2\n");
        LineOfClient(fd);
        Say(fd, "OK\n");
        LineOfClient(fd);
        Say(fd, "OK\n");
        if (LineOfClient(fd) == "VERBOSE STATUS") ++questions;
        Wait(fd);
      },
      WithAnswerSoon());
  EXPECT_EQ(asked.answer.status().message(), "it did not answer in time");
  EXPECT_EQ(questions, 1);
}

TEST(RasClientTest, WhoSpeaksAnotherProtocolIsNotAsked) {
  const Asked asked = Ask([](int fd) {
    LineOfClient(fd);
    Say(fd, "HTTP/1.1 400 Bad \x1b[31mRequest\r\n\r\n");
    Wait(fd);
  });
  EXPECT_EQ(asked.answer.status().message(),
            "it is not NCCL's RAS: it answered \"HTTP/1.1 400 Bad ?[31mRequest\"");
}

TEST(RasClientTest, AGreetingWithoutEndIsGivenUp) {
  const Asked asked = Ask([](int fd) {
    while (Say(fd, std::string(4096, '\x7f'))) {
    }
  });
  EXPECT_EQ(asked.answer.status().message(), "it answered with a long line");
}

TEST(RasClientTest, AClosedConnectionIsReported) {
  EXPECT_THAT(
      std::string(Ask([](int) {}).answer.status().message()),
      testing::AnyOf(HasSubstr("closed the connection"), HasSubstr("broke the connection")));
  EXPECT_EQ(Ask(AsNccl({false, "", ""})).answer.status().message(), "it closed the connection");
}

TEST(RasClientTest, NoServerListens) {
  TcpEnd end;
  {
    const RasServer server(&Wait);
    end = server.end();
  }
  EXPECT_EQ(AskRasAt(end).status().message(), "cannot connect: Connection refused");
}

}  // namespace
}  // namespace rollcall
