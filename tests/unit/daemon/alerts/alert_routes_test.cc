// SPDX-License-Identifier: Apache-2.0
#include "daemon/alerts/alert_routes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace rollcall {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

constexpr char kReceivers[] = R"(receivers:
  - name: chat
    kind: slack
    file: /etc/rollcall/slack-url
  - name: on-call
    kind: opsgenie
    file: /etc/rollcall/opsgenie-key
    url: https://api.eu.opsgenie.com
  - name: team
    kind: email
    target: team@example.com
)";

v1::Incident Incident(const std::string& tenant, const std::string& job,
                      const std::string& certainty, const std::string& cause = "missing_rank") {
  v1::Incident incident;
  incident.set_tenant(tenant);
  incident.set_job(job);
  v1::Verdict* verdict = incident.add_verdicts();
  verdict->set_cause(cause);
  verdict->set_certainty(certainty);
  return incident;
}

std::string Problem(const std::string& text) {
  return std::string(ParseAlertRoutes(text).status().message());
}

class AlertRoutesTest : public testing::Test {
 protected:
  const AlertRoutes file_ = ParseAlertRoutes(absl::StrCat(kReceivers, R"(routes:
  - tenant: ml
    job: "llm-*"
    certainty: certain
    to: [on-call, chat]
  - cause: [deadlock, host_lost]
    to: chat
    continue: true
  - certainty: likely
    to: team
)"))
                                .value();
  std::vector<size_t> To(const v1::Incident& incident) const {
    return RoutedReceivers(file_.routes, incident);
  }
};

TEST_F(AlertRoutesTest, AReceiverHasItsKindAndItsTarget) {
  ASSERT_EQ(file_.receivers.size(), 3u);
  EXPECT_EQ(file_.receivers[0].where, "@/etc/rollcall/slack-url");
  EXPECT_EQ(file_.receivers[1].kind, AlertKind::kOpsgenie);
  EXPECT_EQ(file_.receivers[1].url, "https://api.eu.opsgenie.com");
  EXPECT_EQ(file_.receivers[2].where, "team@example.com");
  EXPECT_TRUE(file_.receivers[2].is_routed);
}

TEST_F(AlertRoutesTest, TheFirstRouteThatFitsDecides) {
  EXPECT_THAT(To(Incident("ml", "llm-pretrain", "certain", "deadlock")), ElementsAre(0, 1));
}

TEST_F(AlertRoutesTest, TenantAndJobArePatterns) {
  EXPECT_THAT(To(Incident("ml", "vision", "certain")), ElementsAre(2));
  EXPECT_THAT(To(Incident("ml-2", "llm-pretrain", "certain")), ElementsAre(2));
}

TEST_F(AlertRoutesTest, LessCertainIncidentsGoElsewhereOrNowhere) {
  EXPECT_THAT(To(Incident("ml", "llm-pretrain", "likely")), ElementsAre(2));
  EXPECT_THAT(To(Incident("ml", "llm-pretrain", "possible")), ElementsAre());
}

TEST_F(AlertRoutesTest, ContinueAsksTheRoutesBelowAsWell) {
  EXPECT_THAT(To(Incident("ml", "vision", "certain", "deadlock")), ElementsAre(0, 2));
  EXPECT_THAT(To(Incident("ml", "vision", "possible", "host_lost")), ElementsAre(0));
}

TEST_F(AlertRoutesTest, AnIncidentWithoutVerdictFitsNoRouteThatAsksForOne) {
  v1::Incident incident;
  incident.set_job("llm-pretrain");
  EXPECT_THAT(To(incident), ElementsAre());
}

struct WrongFile {
  const char* name;
  std::string text;
  const char* problem;  // a part of the error
};

void PrintTo(const WrongFile& wrong, std::ostream* out) { *out << wrong.name; }

class WrongRoutesTest : public testing::TestWithParam<WrongFile> {};

TEST_P(WrongRoutesTest, SaysTheLineAndWhatToWrite) {
  EXPECT_THAT(Problem(GetParam().text), HasSubstr(GetParam().problem));
}

std::string With(const char* routes) { return absl::StrCat(kReceivers, "routes:\n", routes); }

INSTANTIATE_TEST_SUITE_P(
    , WrongRoutesTest,
    testing::Values(
        WrongFile{"nothing", "", "the file has the keys receivers, routes"},
        WrongFile{"no_routes", kReceivers, "the file needs both receivers and routes"},
        WrongFile{"not_yaml", "receivers: [", "line "},
        WrongFile{"star_without_quotes", With("  - {job: *, to: chat}\n"), "line 13: not YAML"},
        WrongFile{"unknown_key", With("  - {tenants: ml, to: chat}\n"),
                  "line 13: a route has no key tenants; it has tenant, job, certainty, cause, to"},
        WrongFile{"unknown_receiver", With("  - to: [chat, pager]\n"),
                  "line 13: no receiver has the name pager; there are chat, on-call, team"},
        WrongFile{"unknown_certainty", With("  - certainty: sure\n    to: chat\n"),
                  "line 13: certainty is one of possible, likely, certain"},
        WrongFile{"unknown_cause", With("  - to: chat\n    cause: hang\n"),
                  "line 14: no incident has the cause hang; there are rank_died, "},
        WrongFile{"no_receiver", With("  - tenant: ml\n"),
                  "line 13: the route has no receiver:  to: NAME"},
        WrongFile{"dead_routes", With("  - to: [chat, team]\n  - to: on-call\n"),
                  "line 13: this route takes every incident"},
        WrongFile{"unused_receiver", With("  - to: [chat, team]\n"),
                  "line 5: no route names the receiver on-call:  - to: on-call"},
        WrongFile{"two_of_one_name",
                  "receivers:\n  - {name: a, kind: email, target: x}\n"
                  "  - {name: a, kind: email, target: y}\nroutes: [{to: a}]\n",
                  "line 3: another receiver has the name a"},
        WrongFile{"one_receiver_twice",
                  "receivers:\n  - {name: a, kind: email, target: x}\n"
                  "  - {name: b, kind: email, target: x}\nroutes: [{to: a}]\n",
                  "line 3: b is the same receiver as a"},
        WrongFile{"unknown_kind", "receivers:\n  - {name: a, kind: fax, target: x}\nroutes: []\n",
                  "line 2: unknown kind of receiver; kind is one of json (a URL), slack"},
        WrongFile{"no_target", "receivers:\n  - {name: a, kind: json}\nroutes: []\n",
                  "line 2: the receiver needs either target (a URL) or file"},
        WrongFile{"url_of_chat",
                  "receivers:\n  - {name: a, kind: teams, file: /x, url: https://x}\nroutes: []\n",
                  "line 2: url is for pagerduty, opsgenie and kubernetes"},
        WrongFile{"signed_chat",
                  "receivers:\n  - {name: a, kind: teams, file: /x, sign: /y}\nroutes: []\n",
                  "line 2: sign is for json, cloudevents and kafka"}),
    [](const testing::TestParamInfo<WrongFile>& info) { return std::string(info.param.name); });

TEST(AlertSecretTest, KeepsSecretsInFilesAndOutOfErrors) {
  const std::string problem = Problem(
      "receivers:\n  - name: chat\n    kind: slack\n    target: https://hooks/T0/secret\nroutes: "
      "[]\n");
  EXPECT_THAT(problem, HasSubstr("line 4: the target of slack"));
  EXPECT_THAT(problem, HasSubstr("file: /etc/rollcall/slack"));
  EXPECT_THAT(problem, Not(HasSubstr("T0/secret")));
}

}  // namespace
}  // namespace rollcall
