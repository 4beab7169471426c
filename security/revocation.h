// SPDX-License-Identifier: Apache-2.0
// Which certificates their authority has revoked. A value: thread-safe, cheap to copy. Remembers its
// answers.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "absl/status/statusor.h"

namespace rollcall {

class RevocationList {
 public:
  // Nothing is revoked.
  RevocationList() = default;

  // One or more lists in PEM. An authority in `ca_pem` must have signed each.
  static absl::StatusOr<RevocationList> Parse(std::string_view crl_pem, std::string_view ca_pem);

  // Of the first certificate in the text. True for what is no certificate. An expired list still
  // counts: what it revokes stays revoked.
  bool IsRevoked(std::string_view certificate_pem) const;

  // Whether an authority made a list of these before one of `other`.
  bool IsOlderThan(const RevocationList& other) const;

  // When the authority promised the next list, at the latest: Unix time; 0: it did not.
  int64_t expires_s() const { return expires_s_; }

 private:
  struct Lists;

  std::shared_ptr<const Lists> lists_;
  int64_t expires_s_ = 0;  // of the list that expires first
};

}  // namespace rollcall
