// SPDX-License-Identifier: Apache-2.0
// The certificates against the strict checks of the openssl program.
#include "security/certificates/certificate_authority.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "temporary_tree.h"
#include "test_certificates.h"

namespace rollcall {
namespace {

using testing::HasSubstr;

class CertificateAuthorityTest : public testing::Test {
 protected:
  CertificateAuthorityTest() { tree_.Write("ca.crt", authority_.pem()); }

  // Output of `openssl ARGUMENTS` in the folder of the files.
  std::string OpenSsl(const std::string& arguments) const {
    const std::string out = tree_.root() + "/out";
    const int status = std::system(
        absl::StrCat("cd ", tree_.root(), " && openssl ", arguments, " > out 2>&1").c_str());
    std::ostringstream text;
    text << std::ifstream(out).rdbuf() << "exit " << status;
    return text.str();
  }
  std::string Verify(const std::string& flags) const {
    return OpenSsl(
        absl::StrCat("verify -x509_strict -attime ", kNow, " -CAfile ca.crt ", flags, " leaf.crt"));
  }

  const TestAuthority authority_;
  const TemporaryTree tree_;
};

TEST_F(CertificateAuthorityTest, StrictChecksAcceptServerAndClient) {
  tree_.Write("leaf.crt", authority_.Server().certificate_pem);
  EXPECT_EQ(Verify("-purpose sslserver -verify_hostname localhost"), "leaf.crt: OK\nexit 0");
  EXPECT_EQ(Verify("-purpose sslserver -verify_ip 127.0.0.1"), "leaf.crt: OK\nexit 0");
  tree_.Write("leaf.crt", authority_.Client("spiffe://rollcall/rollcall/viewer").certificate_pem);
  EXPECT_EQ(Verify("-purpose sslclient"), "leaf.crt: OK\nexit 0");
  EXPECT_THAT(Verify("-purpose sslserver"), HasSubstr("unsuitable certificate purpose"));
}

TEST_F(CertificateAuthorityTest, IsP256WithSha256AndASignOnlyKey) {
  tree_.Write("leaf.crt", authority_.Server().certificate_pem);
  const std::string text = OpenSsl("x509 -in leaf.crt -noout -text");
  for (const char* part : {"ecdsa-with-SHA256", "NIST CURVE: P-256", "Version: 3",
                           "X509v3 Basic Constraints: critical\n                CA:FALSE",
                           "X509v3 Key Usage: critical\n                Digital Signature\n",
                           "TLS Web Server Authentication, TLS Web Client Authentication"}) {
    EXPECT_THAT(text, HasSubstr(part));
  }
  EXPECT_THAT(OpenSsl("x509 -in ca.crt -noout -text"),
              HasSubstr("X509v3 Basic Constraints: critical\n                CA:TRUE, pathlen:0"));
}

TEST_F(CertificateAuthorityTest, ACertificateCannotSignAnother) {
  const KeyAndCertificate leaf = authority_.Server();
  const KeyAndCertificate forged =
      IssueCertificate(leaf, {"forged", {}, {"localhost"}, {}, true}, {kNow, kNow + kDay}).value();
  tree_.Write("between.crt", leaf.certificate_pem);
  tree_.Write("leaf.crt", forged.certificate_pem);
  EXPECT_THAT(Verify("-untrusted between.crt"), HasSubstr("verification failed"));
}

TEST_F(CertificateAuthorityTest, ANameWithACommaStaysOneName) {
  tree_.Write("leaf.crt", authority_.Issue({"x", {}, {"a,DNS:b"}, {}, false}).certificate_pem);
  EXPECT_THAT(Verify("-verify_hostname b"), HasSubstr("hostname mismatch"));
}

TEST_F(CertificateAuthorityTest, OpenSslReadsTheRevocationList) {
  const KeyAndCertificate leaf = authority_.Server();
  tree_.Write("leaf.crt", leaf.certificate_pem);
  const std::string serial = OpenSsl("x509 -in leaf.crt -noout -serial").substr(7, 32);
  const std::string empty =
      MakeRevocationList(authority_.own(), {}, 1, {kNow - 1, kNow + kDay}).value();
  tree_.Write("ca.crl", empty);
  EXPECT_EQ(Verify("-crl_check -CRLfile ca.crl"), "leaf.crt: OK\nexit 0");
  const std::string crl =
      MakeRevocationList(authority_.own(), {{serial, kNow}}, 2, {kNow - 1, kNow + kDay}).value();
  tree_.Write("ca.crl", crl);
  EXPECT_THAT(Verify("-crl_check -CRLfile ca.crl"), HasSubstr("certificate revoked"));
}

TEST_F(CertificateAuthorityTest, RefusesAnAuthorityWithTheKeyOfAnother) {
  const KeyAndCertificate mixed = {authority_.pem(), TestAuthority().own().key_pem};
  EXPECT_THAT(std::string(IssueCertificate(mixed, {}, {kNow, kNow + 1}).status().message()),
              HasSubstr("does not belong"));
}

}  // namespace
}  // namespace rollcall
