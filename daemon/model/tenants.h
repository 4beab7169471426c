// SPDX-License-Identifier: Apache-2.0
// The tenants whose jobs a caller may see. Pure.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rollcall {

class Tenants {
 public:
  static Tenants All() { return Tenants(); }
  static Tenants Only(std::vector<std::string> names) {
    Tenants tenants;
    tenants.names_ = std::move(names);
    return tenants;
  }

  bool Has(std::string_view tenant) const {
    return AreAll() || std::find(names_->begin(), names_->end(), tenant) != names_->end();
  }
  bool AreAll() const { return !names_.has_value(); }
  // Must not be called for all tenants.
  const std::vector<std::string>& names() const { return *names_; }

 private:
  Tenants() = default;
  std::optional<std::vector<std::string>> names_;  // nullopt means all tenants
};

}  // namespace rollcall
