// SPDX-License-Identifier: Apache-2.0
#include "security/certificates/pem.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace rollcall {
namespace {

bool Contains(std::string_view text, const char* part) {
  return absl::StrContains(absl::string_view(text.data(), text.size()), part);
}

// OpenSSL calls this where a key has a passphrase. Without it, OpenSSL asks on the terminal.
int RefusePassphrase(char* /*buffer*/, int /*size*/, int /*for_writing*/, void* asked) {
  *static_cast<bool*>(asked) = true;
  return -1;
}

// The end of the text is not an error.
bool IsEndOfText() {
  const unsigned long error = ERR_peek_last_error();
  return ERR_GET_LIB(error) == ERR_LIB_PEM && ERR_GET_REASON(error) == PEM_R_NO_START_LINE;
}

// All objects that `read` finds. `what` names one.
template <typename Pointer, typename Read>
absl::StatusOr<std::vector<Pointer>> ReadAll(std::string_view pem, const char* what,
                                             const Read& read) {
  ERR_clear_error();
  const BioPointer text = ReadFrom(pem);
  std::vector<Pointer> all;
  while (Pointer one = Pointer(read(text.get()))) all.push_back(std::move(one));
  if (!IsEndOfText()) {
    return absl::InvalidArgumentError(
        absl::StrCat(what, " number ", all.size() + 1, " is damaged: ", TakeOpenSslError()));
  }
  ERR_clear_error();
  return all;
}

template <typename Write>
std::string WriteText(const Write& write) {
  const BioPointer text(BIO_new(BIO_s_mem()));
  return write(text.get()) == 1 ? TextOf(text.get()) : "";
}

}  // namespace

absl::StatusOr<std::vector<CertificatePointer>> ReadCertificates(std::string_view pem) {
  auto all = ReadAll<CertificatePointer>(pem, "certificate", [](BIO* text) {
    return PEM_read_bio_X509(text, nullptr, nullptr, nullptr);
  });
  if (!all.ok() || !all->empty()) return all;
  if (Contains(pem, "PRIVATE KEY-----")) {
    return absl::InvalidArgumentError(
        "a private key instead of a certificate; are the two files exchanged?");
  }
  return absl::InvalidArgumentError(
      "no certificate (the text \"-----BEGIN CERTIFICATE-----\" is missing); convert another "
      "format "
      "with `openssl x509 -inform der -in FILE -out FILE.crt`");
}

absl::StatusOr<KeyPointer> ReadKey(std::string_view pem) {
  ERR_clear_error();
  const BioPointer text = ReadFrom(pem);
  bool asked = false;
  KeyPointer key(PEM_read_bio_PrivateKey(text.get(), nullptr, &RefusePassphrase, &asked));
  if (key != nullptr) return key;
  if (asked) {
    ERR_clear_error();
    return absl::InvalidArgumentError(
        "the key has a passphrase, which cannot be typed after a restart; remove it with `openssl "
        "pkey -in KEY -out NEW`, and keep the file at mode 0600");
  }
  const std::string reason = TakeOpenSslError();
  if (Contains(pem, "PRIVATE KEY-----")) {
    return absl::InvalidArgumentError(absl::StrCat("the key is damaged: ", reason));
  }
  if (Contains(pem, "-----BEGIN CERTIFICATE-----")) {
    return absl::InvalidArgumentError(
        "a certificate instead of a private key; are the two files exchanged?");
  }
  return absl::InvalidArgumentError(
      "no private key (the text \"-----BEGIN PRIVATE KEY-----\" is missing)");
}

absl::StatusOr<std::vector<CrlPointer>> ReadCrls(std::string_view pem) {
  auto all = ReadAll<CrlPointer>(pem, "revocation list", [](BIO* text) {
    return PEM_read_bio_X509_CRL(text, nullptr, nullptr, nullptr);
  });
  if (!all.ok() || !all->empty()) return all;
  return absl::InvalidArgumentError(
      "no revocation list (the text \"-----BEGIN X509 CRL-----\" is missing); convert another "
      "format "
      "with `openssl crl -inform der -in FILE -out FILE.crl`");
}

std::string WritePem(X509* certificate) {
  return WriteText([&](BIO* text) { return PEM_write_bio_X509(text, certificate); });
}

std::string WritePem(EVP_PKEY* key) {
  return WriteText([&](BIO* text) {
    return PEM_write_bio_PKCS8PrivateKey(text, key, nullptr, nullptr, 0, nullptr, nullptr);
  });
}

std::string WritePem(X509_CRL* crl) {
  return WriteText([&](BIO* text) { return PEM_write_bio_X509_CRL(text, crl); });
}

}  // namespace rollcall
