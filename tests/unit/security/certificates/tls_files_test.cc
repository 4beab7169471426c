// SPDX-License-Identifier: Apache-2.0
#include "security/certificates/tls_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "base/read_file.h"
#include "temporary_tree.h"
#include "test_certificates.h"

namespace rollcall {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::string Read(const std::string& path) { return ReadFile(path).value_or(""); }

class TlsFilesTest : public testing::Test {
 protected:
  TlsFilesTest() {
    Write(pair_);
    tree_.Write("ca.crt", authority_.pem());
  }

  void Write(const KeyAndCertificate& pair) const {
    tree_.Write("tls.crt", pair.certificate_pem);
    tree_.WriteSecret("tls.key", pair.key_pem);
  }
  std::string Path(const std::string& name) const { return tree_.root() + "/" + name; }
  std::string Error(int64_t now_s = kNow) { return std::string(files_.Poll(now_s).message()); }
  // Both what readers of memory and what gRPC gets.
  std::string Used() const {
    const std::shared_ptr<const TlsContents> current = files_.Current();
    if (current == nullptr) return "";
    EXPECT_EQ(Read(files_.identity_path()), current->certificate_pem + "\n" + current->key_pem);
    EXPECT_EQ(Read(files_.authorities_path()), current->ca_pem);
    return current->certificate_pem;
  }

  const TestAuthority authority_;
  const KeyAndCertificate pair_ = authority_.Server();
  const KeyAndCertificate next_ = authority_.Server();
  const TemporaryTree tree_;
  TlsFiles files_{{Path("tls.crt"), Path("tls.key"), Path("ca.crt"), ""}, CertificateUse::kServer};
};

TEST_F(TlsFilesTest, TakesFilesThatAreValid) {
  EXPECT_EQ(files_.Current(), nullptr);
  EXPECT_EQ(files_.identity_path(), "");
  EXPECT_EQ(files_.Poll(kNow), absl::OkStatus());
  EXPECT_EQ(Used(), pair_.certificate_pem);
  EXPECT_EQ(files_.Current()->ca_pem, authority_.pem());
  EXPECT_EQ(files_.expires_s(), kNow + 365 * kDay);
  EXPECT_THAT(files_.TakeNews(), ElementsAre(HasSubstr("valid until 2028-01-15")));
  EXPECT_EQ(files_.Poll(kNow + 1), absl::OkStatus());
  EXPECT_THAT(files_.TakeMessages(), IsEmpty());
}

TEST_F(TlsFilesTest, ARenewalInTwoStepsIsNeverSeenInBetween) {
  ASSERT_EQ(files_.Poll(kNow), absl::OkStatus());
  tree_.Write("tls.crt", next_.certificate_pem);
  EXPECT_THAT(Error(), HasSubstr("the key does not belong to the certificate"));
  EXPECT_EQ(Used(), pair_.certificate_pem);
  tree_.Write("tls.key", next_.key_pem);
  EXPECT_EQ(Error(), "");
  EXPECT_EQ(Used(), next_.certificate_pem);
}

TEST_F(TlsFilesTest, NothingBadReplacesWhatIsGood) {
  ASSERT_EQ(files_.Poll(kNow), absl::OkStatus());
  const KeyAndCertificate bad[] = {
      {"", ""},
      {"garbage", "garbage"},
      {next_.certificate_pem.substr(0, 300), next_.key_pem},
      {next_.certificate_pem, next_.key_pem.substr(0, 100)},
      {next_.key_pem, next_.certificate_pem},
      authority_.Server({kNow - 2 * kDay, kNow - kDay}),
      authority_.Client("spiffe://rollcall/rollcall/viewer"),
  };
  for (const KeyAndCertificate& pair : bad) {
    Write(pair);
    EXPECT_THAT(Error(), HasSubstr(Path("tls.crt")));
    EXPECT_EQ(Used(), pair_.certificate_pem);
  }
  tree_.Remove("tls.crt");
  EXPECT_THAT(Error(), HasSubstr("No such file"));
  EXPECT_EQ(Used(), pair_.certificate_pem);
  Write(next_);
  EXPECT_EQ(Error(), "");
  EXPECT_EQ(Used(), next_.certificate_pem);
}

TEST_F(TlsFilesTest, ABadListOfAuthoritiesDoesNotDelayANewCertificate) {
  ASSERT_EQ(files_.Poll(kNow), absl::OkStatus());
  tree_.Write("ca.crt", "garbage");
  Write(next_);
  EXPECT_THAT(Error(), HasSubstr(Path("ca.crt")));
  EXPECT_EQ(Used(), next_.certificate_pem);
  EXPECT_EQ(files_.Current()->ca_pem, authority_.pem());
  const TestAuthority other;
  tree_.Write("ca.crt", other.pem());
  EXPECT_EQ(Error(), "");
  EXPECT_EQ(files_.Current()->ca_pem, other.pem());
}

TEST_F(TlsFilesTest, TheFirstFilesMustAllBeGood) {
  tree_.Write("ca.crt", "garbage");
  EXPECT_THAT(Error(), HasSubstr(Path("ca.crt")));
  EXPECT_EQ(files_.Current(), nullptr);
  EXPECT_THAT(files_.TakeMessages(), ElementsAre(HasSubstr("no certificate")));
  tree_.Write("ca.crt", authority_.pem());
  EXPECT_EQ(Error(), "");
  EXPECT_EQ(Used(), pair_.certificate_pem);
}

TEST_F(TlsFilesTest, ACertificateOfTomorrowIsTakenTomorrow) {
  ASSERT_EQ(files_.Poll(kNow), absl::OkStatus());
  const KeyAndCertificate later = authority_.Server({kNow + kDay, kNow + 2 * kDay});
  Write(later);
  EXPECT_THAT(Error(kNow + kDay - 1), HasSubstr("valid only from"));
  EXPECT_EQ(Used(), pair_.certificate_pem);
  EXPECT_EQ(Error(kNow + kDay), "");
  EXPECT_EQ(Used(), later.certificate_pem);
}

TEST_F(TlsFilesTest, SaysAProblemOnceAndAgainAfterAnHour) {
  ASSERT_EQ(files_.Poll(kNow), absl::OkStatus());
  files_.TakeMessages();
  tree_.Write("tls.key", "garbage");
  for (int64_t second = 0; second < 3605; ++second) {
    EXPECT_FALSE(files_.Poll(kNow + second).ok());
  }
  EXPECT_THAT(files_.TakeMessages(), ElementsAre(HasSubstr("connections use the previous files")));
  EXPECT_FALSE(files_.Poll(kNow + 3605).ok());
  EXPECT_THAT(files_.TakeMessages(), ElementsAre(HasSubstr("no private key")));
}

TEST_F(TlsFilesTest, ARenewalInTwoStepsIsNotAProblemWorthSaying) {
  ASSERT_EQ(files_.Poll(kNow), absl::OkStatus());
  files_.TakeNews();
  for (int64_t renewal = kNow; renewal < kNow + 100; renewal += 10) {
    const KeyAndCertificate pair = authority_.Server();
    tree_.Write("tls.key", pair.key_pem);
    EXPECT_FALSE(files_.Poll(renewal).ok());
    EXPECT_FALSE(files_.Poll(renewal + 4).ok());
    tree_.Write("tls.crt", pair.certificate_pem);
    EXPECT_EQ(files_.Poll(renewal + 5), absl::OkStatus());
    EXPECT_THAT(files_.TakeNews(), ElementsAre(HasSubstr("uses the certificate")));
    EXPECT_THAT(files_.TakeMessages(), IsEmpty());
  }
}

TEST_F(TlsFilesTest, SaysThatACertificateExpires) {
  ASSERT_EQ(files_.Poll(kNow), absl::OkStatus());
  files_.TakeMessages();
  const int64_t end = kNow + 365 * kDay;
  EXPECT_EQ(files_.Poll(end - 14 * kDay), absl::OkStatus());
  EXPECT_THAT(files_.TakeMessages(), IsEmpty());
  EXPECT_EQ(files_.Poll(end - 14 * kDay + 1), absl::OkStatus());
  EXPECT_THAT(files_.TakeMessages(), ElementsAre(HasSubstr("expires on 2028-01-15")));
  EXPECT_EQ(files_.Poll(end + 1), absl::OkStatus());
  EXPECT_THAT(files_.TakeMessages(), ElementsAre(HasSubstr("expired on 2028-01-15")));
}

// SPIRE's live an hour.
TEST_F(TlsFilesTest, ACertificateOfAnHourExpiresSoonNearItsEndOnly) {
  Write(authority_.Server({kNow, kNow + 3600}));
  ASSERT_EQ(files_.Poll(kNow), absl::OkStatus());
  EXPECT_EQ(files_.TakeNews().size(), 1u);
  ASSERT_EQ(files_.Poll(kNow + 2880), absl::OkStatus());
  EXPECT_THAT(files_.TakeMessages(), IsEmpty());
  ASSERT_EQ(files_.Poll(kNow + 2881), absl::OkStatus());
  EXPECT_THAT(files_.TakeMessages(), ElementsAre(HasSubstr("expires on")));
}

TEST_F(TlsFilesTest, UsesNoKeyThatOthersCanRead) {
  ASSERT_EQ(chmod(Path("tls.key").c_str(), 0644), 0);
  EXPECT_THAT(Error(), HasSubstr("chmod go-rwx " + Path("tls.key")));
  EXPECT_EQ(files_.Current(), nullptr);
  ASSERT_EQ(chmod(Path("tls.key").c_str(), 0600), 0);
  EXPECT_EQ(Error(), "");
  EXPECT_EQ(Used(), pair_.certificate_pem);
}

TEST_F(TlsFilesTest, SaysThatOthersCanReadTheKeyOfTheCertificateInUse) {
  ASSERT_EQ(files_.Poll(kNow), absl::OkStatus());
  ASSERT_EQ(chmod(Path("tls.key").c_str(), 0644), 0);
  EXPECT_THAT(Error(), HasSubstr("every user of this host can read the key"));
  EXPECT_THAT(Error(kNow + 10), HasSubstr("every user of this host can read the key"));
  EXPECT_EQ(Used(), pair_.certificate_pem);
  EXPECT_THAT(files_.TakeMessages(), ElementsAre(HasSubstr("connections use the previous files")));
}

TEST_F(TlsFilesTest, AClientNeedsAuthoritiesOnly) {
  TlsFiles client({"", "", Path("ca.crt"), ""}, CertificateUse::kClient);
  EXPECT_EQ(client.Poll(kNow), absl::OkStatus());
  EXPECT_EQ(client.identity_path(), "");
  EXPECT_EQ(Read(client.authorities_path()), authority_.pem());
  EXPECT_EQ(client.expires_s(), 0);
}

class RevokedTlsFilesTest : public TlsFilesTest {
 protected:
  void Revoke(const TestAuthority& by, const std::vector<RevokedSerial>& revoked) const {
    tree_.Write("ca.crl", MakeRevocationList(by.own(), revoked, 1, {kNow, kNow + kDay}).value());
  }
  bool IsRevoked() const { return with_list_.Current()->revocations.IsRevoked(pem_); }

  const std::string pem_ = pair_.certificate_pem;
  const RevokedSerial serial_ = {ParseCertificate(pem_)->serial, kNow};
  TlsFiles with_list_{{Path("tls.crt"), Path("tls.key"), Path("ca.crt"), Path("ca.crl")},
                      CertificateUse::kServer};
};

TEST_F(RevokedTlsFilesTest, ANewListCountsAtOnceAndABadOneDoesNot) {
  EXPECT_THAT(std::string(with_list_.Poll(kNow).message()), HasSubstr("cannot read"));
  EXPECT_EQ(with_list_.Current(), nullptr);
  Revoke(authority_, {});
  ASSERT_EQ(with_list_.Poll(kNow), absl::OkStatus());
  EXPECT_FALSE(IsRevoked());
  Revoke(authority_, {serial_});
  ASSERT_EQ(with_list_.Poll(kNow), absl::OkStatus());
  EXPECT_TRUE(IsRevoked());
  Revoke(TestAuthority(), {});
  EXPECT_FALSE(with_list_.Poll(kNow).ok());
  EXPECT_TRUE(IsRevoked());
  tree_.Remove("ca.crl");
  EXPECT_FALSE(with_list_.Poll(kNow).ok());
  EXPECT_TRUE(IsRevoked());
}

// While this object lives, no write makes a file of this process longer, also not a file in memory.
class NoFileGrows {
 public:
  NoFileGrows() {
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit none = {0, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &none);
  }
  ~NoFileGrows() {
    setrlimit(RLIMIT_FSIZE, &before_);
    signal(SIGXFSZ, handler_);
  }

 private:
  rlimit before_ = {};
  const sighandler_t handler_ = signal(SIGXFSZ, SIG_IGN);
};

TEST_F(RevokedTlsFilesTest, AListThatCouldNotBePutToUseIsTakenAgain) {
  Revoke(authority_, {});
  ASSERT_EQ(with_list_.Poll(kNow), absl::OkStatus());
  Revoke(authority_, {serial_});
  absl::Status failed;
  {
    const NoFileGrows limit;
    failed = with_list_.Poll(kNow);
  }
  EXPECT_THAT(std::string(failed.message()), HasSubstr("cannot make a file in memory"));
  ASSERT_EQ(with_list_.Poll(kNow), absl::OkStatus());
  EXPECT_TRUE(IsRevoked());
}

TEST_F(RevokedTlsFilesTest, AFileThatLacksTheListOfAnAuthorityForgetsNothing) {
  const TestAuthority other({kNow - kDay, kNow + kDay}, "Another");
  tree_.Write("ca.crt", authority_.pem() + other.pem());
  const auto list = [](const TestAuthority& by, const std::vector<RevokedSerial>& revoked) {
    return MakeRevocationList(by.own(), revoked, 1, {kNow, kNow + kDay}).value();
  };
  tree_.Write("ca.crl", list(authority_, {serial_}));
  ASSERT_EQ(with_list_.Poll(kNow), absl::OkStatus());
  EXPECT_THAT(with_list_.TakeNews(), testing::Contains(HasSubstr("no list of CN=Another")));
  tree_.Write("ca.crl", list(other, {}));
  EXPECT_THAT(std::string(with_list_.Poll(kNow).message()), HasSubstr("it would forget"));
  EXPECT_TRUE(IsRevoked());
  tree_.Write("ca.crl", list(other, {}) + list(authority_, {serial_}));
  EXPECT_EQ(with_list_.Poll(kNow), absl::OkStatus());
  EXPECT_TRUE(IsRevoked());
}

TEST_F(RevokedTlsFilesTest, AnExpiredListStillCountsAndIsReported) {
  Revoke(authority_, {serial_});
  ASSERT_EQ(with_list_.Poll(kNow), absl::OkStatus());
  with_list_.TakeMessages();
  ASSERT_EQ(with_list_.Poll(kNow + kDay + 1), absl::OkStatus());
  EXPECT_TRUE(IsRevoked());
  EXPECT_THAT(with_list_.TakeMessages(), ElementsAre(HasSubstr("what it revokes stays revoked")));
}

}  // namespace
}  // namespace rollcall
