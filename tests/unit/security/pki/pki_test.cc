// SPDX-License-Identifier: Apache-2.0
#include "security/pki/pki.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <thread>

#include "absl/strings/str_cat.h"
#include "base/read_file.h"
#include "security/certificates/certificate.h"
#include "security/certificates/certificate_authority.h"
#include "security/certificates/revocation.h"
#include "temporary_tree.h"
#include "test_certificates.h"

namespace rollcall {
namespace {

using testing::HasSubstr;

class PkiTest : public testing::Test {
 protected:
  PkiTest() { EXPECT_EQ(InitPki(folder_, "rollcall", 3650, kNow).value_or(0), kNow + 3650 * kDay); }

  std::string Read(const std::string& file) const {
    return ReadFile(folder_ + "/" + file).value_or("");
  }
  mode_t Mode(const std::string& file) const {
    struct stat facts = {};
    stat((folder_ + "/" + file).c_str(), &facts);
    return facts.st_mode & 07777;
  }
  PkiEntry Agent(const std::string& host) const {
    const auto entry = IssueInPki(folder_, {"agent", {host}, {}, "", 365}, kNow);
    EXPECT_TRUE(entry.ok()) << entry.status();
    return entry.value_or(PkiEntry());
  }
  bool IsRevoked(const std::string& pem) const {
    return RevocationList::Parse(Read("ca.crl"), Read("ca.crt"))->IsRevoked(pem);
  }
  PkiState StateOf(const std::string& name, int64_t now_s = kNow) const {
    const auto list = ListPki(folder_, now_s);
    for (const PkiEntry& entry : list->entries) {
      if (entry.name == name) return entry.state;
    }
    ADD_FAILURE() << "no " << name;
    return PkiState::kValid;
  }

  const TemporaryTree tree_;
  const std::string folder_ = tree_.root() + "/pki";
};

TEST_F(PkiTest, TheFirstCommandMakesTheFoldersAboveToo) {
  const std::string folder = tree_.root() + "/etc/rollcall/pki";
  EXPECT_TRUE(InitPki(folder, "rollcall", 3650, kNow).ok());
  EXPECT_EQ(std::filesystem::status(folder).permissions(), std::filesystem::perms::owner_all);
  tree_.Write("file", "");
  const auto blocked = InitPki(tree_.root() + "/file/pki", "rollcall", 3650, kNow);
  EXPECT_THAT(std::string(blocked.status().message()), HasSubstr("cannot make the folder"));
}

TEST_F(PkiTest, TwoCommandsMakeAPairThatTlsTakes) {
  const PkiEntry daemon =
      IssueInPki(folder_, {"daemon", {"node-1", "10.0.0.1"}, {}, "", 365}, kNow).value();
  EXPECT_EQ(daemon.name, "daemon");
  EXPECT_EQ(CheckPair(Read("daemon.crt"), Read("daemon.key"), Read("ca.crt"),
                      CertificateUse::kServer, kNow),
            absl::OkStatus());
  EXPECT_EQ(CheckAuthorities(Read("ca.crt"), kNow), absl::OkStatus());
  EXPECT_TRUE(RevocationList::Parse(Read("ca.crl"), Read("ca.crt")).ok());
  Agent("node-17");
  EXPECT_EQ(CheckPair(Read("node-17.crt"), Read("node-17.key"), Read("ca.crt"),
                      CertificateUse::kClient, kNow),
            absl::OkStatus());
  EXPECT_FALSE(CheckPair(Read("node-17.crt"), Read("node-17.key"), Read("ca.crt"),
                         CertificateUse::kServer, kNow)
                   .ok());
}

TEST_F(PkiTest, OpenSslAcceptsTheFilesStrictly) {
  IssueInPki(folder_, {"daemon", {"node-1", "10.0.0.1"}, {}, "", 365}, kNow).value();
  const std::string command =
      absl::StrCat("cd ", folder_, " && openssl verify -x509_strict -attime ", kNow,
                   " -purpose sslserver -verify_ip 10.0.0.1 -crl_check -CRLfile ca.crl -CAfile "
                   "ca.crt daemon.crt "
                   "> out 2>&1");
  EXPECT_EQ(std::system(command.c_str()), 0) << Read("out");
}

TEST_F(PkiTest, KeysAreForTheOwnerOnly) {
  Agent("node-17");
  EXPECT_EQ(Mode(""), 0700u);
  EXPECT_EQ(Mode("ca.key"), 0600u);
  EXPECT_EQ(Mode("node-17.key"), 0600u);
  EXPECT_EQ(Mode("node-17.crt"), 0644u);
}

TEST_F(PkiTest, NothingIsOverwrittenUnasked) {
  EXPECT_THAT(std::string(InitPki(folder_, "rollcall", 1, kNow).status().message()),
              HasSubstr("has an authority already"));
  Agent("node-17");
  const std::string key = Read("node-17.key");
  const auto again = IssueInPki(folder_, {"agent", {"node-17"}, {}, "", 365}, kNow);
  EXPECT_THAT(std::string(again.status().message()), HasSubstr("rollcall pki renew"));
  EXPECT_EQ(Read("node-17.key"), key);
}

TEST_F(PkiTest, ARenewedCertificateKeepsItsNamesAndGetsANewKey) {
  const PkiEntry before = Agent("node-17");
  const std::string key = Read("node-17.key");
  const PkiEntry after = RenewInPki(folder_, "node-17", 0, kNow + 100 * kDay).value();
  EXPECT_EQ(after.uri, before.uri);
  EXPECT_EQ(after.hosts, before.hosts);
  EXPECT_EQ(after.expires_s, kNow + 465 * kDay);
  EXPECT_NE(Read("node-17.key"), key);
  EXPECT_EQ(CheckPair(Read("node-17.crt"), Read("node-17.key"), Read("ca.crt"),
                      CertificateUse::kClient, kNow + 100 * kDay),
            absl::OkStatus());
  EXPECT_EQ(RenewInPki(folder_, "node-17", 10, kNow)->expires_s, kNow + 10 * kDay);
}

TEST_F(PkiTest, ADaemonStaysADaemonWhenRenewed) {
  IssueInPki(folder_, {"daemon", {"node-1"}, {}, "", 365}, kNow).value();
  ASSERT_TRUE(RenewInPki(folder_, "daemon", 0, kNow).ok());
  EXPECT_EQ(CheckPair(Read("daemon.crt"), Read("daemon.key"), Read("ca.crt"),
                      CertificateUse::kServer, kNow),
            absl::OkStatus());
}

TEST_F(PkiTest, RevokingANameRevokesItsOlderCertificatesToo) {
  Agent("node-17");
  Agent("node-18");
  const std::string old = Read("node-17.crt");
  ASSERT_TRUE(RenewInPki(folder_, "node-17", 0, kNow).ok());
  const std::string renewed = Read("node-17.crt");
  EXPECT_EQ(RevokeInPki(folder_, "node-17", kNow).value_or(-1), 2);
  EXPECT_TRUE(IsRevoked(old));
  EXPECT_TRUE(IsRevoked(renewed));
  EXPECT_FALSE(IsRevoked(Read("node-18.crt")));
  EXPECT_EQ(StateOf("node-17"), PkiState::kRevoked);
  EXPECT_EQ(StateOf("node-18"), PkiState::kValid);
  EXPECT_EQ(RevokeInPki(folder_, "node-17", kNow).value_or(-1), 0);
}

TEST_F(PkiTest, TheListKeepsWhatItHadAndItsNumberGrows) {
  Agent("node-17");
  Agent("node-18");
  ASSERT_TRUE(RevokeInPki(folder_, "node-17", kNow).ok());
  ASSERT_TRUE(RevokeInPki(folder_, "node-18", kNow + 5).ok());
  const RevocationFacts facts = ParseRevocationList(Read("ca.crl")).value();
  EXPECT_EQ(facts.number, 3);
  ASSERT_EQ(facts.revoked.size(), 2u);
  EXPECT_EQ(facts.revoked[0].revoked_s + facts.revoked[1].revoked_s, 2 * kNow + 5);
}

TEST_F(PkiTest, ARevokedNameIsIssuedAnewAndNotRenewed) {
  Agent("node-17");
  ASSERT_TRUE(RevokeInPki(folder_, "node-17", kNow).ok());
  EXPECT_THAT(std::string(RenewInPki(folder_, "node-17", 0, kNow).status().message()),
              HasSubstr("is revoked"));
  Agent("node-17");
  EXPECT_EQ(StateOf("node-17"), PkiState::kValid);
}

TEST_F(PkiTest, ACertificateEndsWithItsAuthority) {
  const auto entry =
      IssueInPki(folder_, {"viewer", {}, {}, "ann", 365}, kNow + 3649 * kDay).value();
  EXPECT_EQ(entry.expires_s, kNow + 3650 * kDay);
  EXPECT_THAT(std::string(IssueInPki(folder_, {"viewer", {}, {}, "bob", 365}, kNow + 3650 * kDay)
                              .status()
                              .message()),
              HasSubstr("expired on"));
  EXPECT_EQ(StateOf("ann", kNow + 3651 * kDay), PkiState::kExpired);
}

TEST_F(PkiTest, SaysWhatToTypeWhereSomethingIsMissing) {
  EXPECT_THAT(std::string(ListPki(tree_.root() + "/no", kNow).status().message()),
              HasSubstr("rollcall pki init"));
  EXPECT_THAT(std::string(RenewInPki(folder_, "nobody", 0, kNow).status().message()),
              HasSubstr("rollcall pki list"));
  EXPECT_THAT(std::string(RevokeInPki(folder_, "../x", kNow).status().message()),
              HasSubstr("--name="));
  std::filesystem::remove(folder_ + "/ca.key");
  EXPECT_THAT(
      std::string(IssueInPki(folder_, {"viewer", {}, {}, "", 365}, kNow).status().message()),
      HasSubstr("ca.key"));
}

TEST_F(PkiTest, WithoutAReadableListOfRevocationsNothingCountsAsValid) {
  Agent("node-1");
  ASSERT_EQ(RevokeInPki(folder_, "node-1", kNow).value_or(0), 1);
  const std::string list = Read("ca.crl");
  const auto check = [this] {
    for (const absl::Status& status :
         {ListPki(folder_, kNow).status(), RenewInPki(folder_, "node-1", 0, kNow).status(),
          RevokeInPki(folder_, "node-1", kNow).status(),
          IssueInPki(folder_, {"agent", {"node-1"}, {}, "", 365}, kNow).status()}) {
      EXPECT_THAT(std::string(status.message()), HasSubstr("put the last good copy there"));
    }
  };
  std::filesystem::remove(folder_ + "/ca.crl");
  check();
  tree_.Write("pki/ca.crl", "garbage");
  check();
  tree_.Write("pki/ca.crl", list);
  EXPECT_EQ(StateOf("node-1"), PkiState::kRevoked);
}

TEST_F(PkiTest, AForeignFileIsReportedAndHidesNoCertificate) {
  Agent("node-1");
  tree_.Write("pki/foreign.crt", "garbage");
  const auto list = ListPki(folder_, kNow);
  ASSERT_TRUE(list.ok()) << list.status();
  ASSERT_EQ(list->entries.size(), 1u);
  EXPECT_EQ(list->entries[0].name, "node-1");
  ASSERT_EQ(list->problems.size(), 1u);
  EXPECT_THAT(list->problems[0], HasSubstr("foreign.crt"));
}

// Somebody may put back the key of an authority before its certificate.
TEST_F(PkiTest, NoKeyOfAnAuthorityIsReplaced) {
  const std::string key = Read("ca.key");
  std::filesystem::remove(folder_ + "/ca.crt");
  const absl::Status again = InitPki(folder_, "rollcall", 3650, kNow).status();
  EXPECT_EQ(again.code(), absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(std::string(again.message()), HasSubstr("put ca.crt back"));
  EXPECT_EQ(Read("ca.key"), key);
}

TEST_F(PkiTest, AnInterruptedInitIsMadeAgain) {
  for (const char* name : {"ca.crt", "ca.key"}) std::filesystem::remove(folder_ + "/" + name);
  EXPECT_TRUE(InitPki(folder_, "rollcall", 3650, kNow).ok());
  Agent("node-1");
  EXPECT_EQ(StateOf("node-1"), PkiState::kValid);
}

TEST_F(PkiTest, TwoAtOnceWaitForEachOther) {
  constexpr int kThreads = 8;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([this, i] {
      const std::string host = absl::StrCat("node-", i);
      Agent(host);
      EXPECT_EQ(RevokeInPki(folder_, host, kNow).value_or(-1), 1);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(ParseRevocationList(Read("ca.crl"))->revoked.size(), size_t{kThreads});
}

}  // namespace
}  // namespace rollcall
