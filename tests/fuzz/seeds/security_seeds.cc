// SPDX-License-Identifier: Apache-2.0
#include "absl/strings/escaping.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/digest/digest.h"
#include "fuzz_input.h"
#include "security/certificates/certificate_authority.h"
#include "seeds.h"
#include "tests/unit/support/test_keys.h"

namespace rollcall {
namespace fuzz {
namespace {

constexpr int64_t kNow = 1'800'000'000;
constexpr Validity kValidity = {kNow - 86'400, kNow + 86'400};

// The lines between the first and the last one of a PEM text with one object.
std::string ToDer(const std::string& pem) {
  const std::vector<std::string> lines = absl::StrSplit(pem, '\n', absl::SkipEmpty());
  std::string der;
  absl::Base64Unescape(absl::StrJoin(lines.begin() + 1, lines.end() - 1, ""), &der);
  return der;
}

// All as PEM, and all as DER.
void Add(const std::vector<std::string>& pems, std::vector<std::string>* seeds) {
  std::string text(1, '\0'), der(1, '\x0f');
  for (const std::string& pem : pems) {
    text += Part(pem);
    der += Part(pem.empty() ? "" : ToDer(pem));
  }
  seeds->push_back(text);
  seeds->push_back(der);
}

void AddCertificates(std::vector<std::string>* seeds) {
  const KeyAndCertificate authority = MakeAuthority("Rollcall test", kValidity).value();
  const CertificateRequest agent = {
      "agent", {"spiffe://c/rollcall/agent/host/node-17"}, {"node-17"}, {}, false};
  const CertificateRequest daemon = {
      "daemon", {"spiffe://c/rollcall/daemon"}, {"localhost"}, {"127.0.0.1", "fd00::1"}, true};
  const std::string list =
      MakeRevocationList(authority, {{"0A1B", kNow}, {"0A1C", kNow}}, 7, kValidity).value();
  for (const CertificateRequest& request : {agent, daemon}) {
    const KeyAndCertificate issued = IssueCertificate(authority, request, kValidity).value();
    Add({issued.certificate_pem, issued.key_pem, authority.certificate_pem, list}, seeds);
  }
  Add({authority.certificate_pem, authority.key_pem, authority.certificate_pem, ""}, seeds);
}

// Frames that a client of gRPC sends first: its settings, a call, a ping.
std::string StartOfHttp2() {
  const auto frame = [](int type, int flags, const std::string& content) {
    std::string out(2, '\0');
    for (const int byte : {static_cast<int>(content.size()), type, flags, 0, 0, 0, 1}) {
      out += static_cast<char>(byte);
    }
    return out + content;
  };
  return "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, "") + frame(4, 1, "") +
         frame(1, 4, "\x83\x86\x44\x04/r/s\x7f\x02\x01v") + frame(8, 0, "1234") +
         frame(0, 1, "data") + frame(6, 0, "12345678") + frame(3, 0, "1234");
}

void AddTokensOfKubernetes(Seeds* seeds) {
  const TestKey rsa = TestKey::Rsa("r"), ec = TestKey::Ec("key-1");
  (*seeds)["jwks"] = {KeySetText({ec.Json(R"(,"use":"sig","alg":"ES256")")}),
                      KeySetText({ec.Json(), rsa.Json()}), KeySetText({})};
  const std::string header = R"({"alg":"ES256","kid":"k","typ":"JWT"})";
  const std::string claims =
      R"({"aud":["rollcall"],"exp":1800000600,"nbf":1799999000,"iss":"https://k8s",)"
      R"("sub":"system:serviceaccount:prod:agent","kubernetes.io":{"namespace":"prod",)"
      R"("node":{"name":"node-17"}}})";
  (*seeds)["jwt"] = {"\1" + header + "\n" + claims, "\2" + ToBase64Url(header) + "." +
                                                        ToBase64Url(claims) + "." +
                                                        ToBase64Url(std::string(64, '\5'))};
}

}  // namespace

void AddSecuritySeeds(Seeds* seeds) {
  (*seeds)["http2"] = {"\x01\x07\x30\x02" + StartOfHttp2()};
  AddCertificates(&(*seeds)["certificates"]);
  AddTokensOfKubernetes(seeds);
}

}  // namespace fuzz
}  // namespace rollcall
