// SPDX-License-Identifier: Apache-2.0
// Owners of OpenSSL's objects, and its errors as text. For the .cc files of this folder only.
#pragma once

#include <openssl/bio.h>
#include <openssl/bn.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <memory>
#include <string>
#include <string_view>

namespace rollcall {

template <auto kFree>
struct OpenSslFree {
  template <typename T>
  void operator()(T* object) const {
    kFree(object);
  }
};
template <typename T, auto kFree>
using OpenSslPointer = std::unique_ptr<T, OpenSslFree<kFree>>;

using BigNumber = OpenSslPointer<BIGNUM, &BN_free>;
using BioPointer = OpenSslPointer<BIO, &BIO_free_all>;
using CertificatePointer = OpenSslPointer<X509, &X509_free>;
using CrlPointer = OpenSslPointer<X509_CRL, &X509_CRL_free>;
using ExtensionPointer = OpenSslPointer<X509_EXTENSION, &X509_EXTENSION_free>;
using KeyPointer = OpenSslPointer<EVP_PKEY, &EVP_PKEY_free>;
using NamesPointer = OpenSslPointer<GENERAL_NAMES, &GENERAL_NAMES_free>;
using StoreContextPointer = OpenSslPointer<X509_STORE_CTX, &X509_STORE_CTX_free>;
using StorePointer = OpenSslPointer<X509_STORE, &X509_STORE_free>;
using TimePointer = OpenSslPointer<ASN1_TIME, &ASN1_TIME_free>;
using TlsContextPointer = OpenSslPointer<SSL_CTX, &SSL_CTX_free>;
using TlsPointer = OpenSslPointer<SSL, &SSL_free>;

// The reason of the last error, for example "wrong tag". Empties the thread's queue of errors.
inline std::string TakeOpenSslError() {
  const unsigned long error = ERR_peek_last_error();
  const char* reason = ERR_reason_error_string(error);
  ERR_clear_error();
  return reason != nullptr ? reason : "unknown error";
}

// Reads from `text`, which must outlive the result.
inline BioPointer ReadFrom(std::string_view text) {
  return BioPointer(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

inline std::string TextOf(BIO* memory) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(memory, &data);
  return size > 0 ? std::string(data, static_cast<size_t>(size)) : "";
}

}  // namespace rollcall
