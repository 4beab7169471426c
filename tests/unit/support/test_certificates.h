// SPDX-License-Identifier: Apache-2.0
// An authority and certificates for tests. kNow is the time at which they are made.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "security/certificates/certificate_authority.h"

namespace rollcall {

inline constexpr int64_t kNow = 1'800'000'000;  // 2027-01-15 08:00:00 UTC
inline constexpr int64_t kDay = 86'400;

class TestAuthority {
 public:
  explicit TestAuthority(Validity validity = {kNow - kDay, kNow + 3650 * kDay},
                         const std::string& name = "Rollcall test")
      : own_(MakeAuthority(name, validity).value()) {}

  const std::string& pem() const { return own_.certificate_pem; }
  const KeyAndCertificate& own() const { return own_; }

  KeyAndCertificate Issue(const CertificateRequest& request,
                          Validity validity = {kNow - kDay, kNow + 365 * kDay}) const {
    return IssueCertificate(own_, request, validity).value();
  }
  // For rollcalld on this host.
  KeyAndCertificate Server(Validity validity = {kNow - kDay, kNow + 365 * kDay}) const {
    return Issue({"daemon",
                  {"spiffe://rollcall/rollcall/daemon"},
                  {"localhost"},
                  {"127.0.0.1"},
                  /*is_server=*/true},
                 validity);
  }
  KeyAndCertificate Client(const std::string& uri,
                           Validity validity = {kNow - kDay, kNow + 365 * kDay}) const {
    return Issue({"client", {uri}, {}, {}, /*is_server=*/false}, validity);
  }

 private:
  const KeyAndCertificate own_;
};

}  // namespace rollcall
