// SPDX-License-Identifier: Apache-2.0
#include "base/json/strict_json.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"

namespace rollcall {
namespace {

using nlohmann::json;

constexpr size_t kDeepest = 8;

// Sees each piece of the text before a tree is built. `false` ends the parser.
class ShapeCheck : public nlohmann::json_sax<json> {
 public:
  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t& text) override {
    return std::none_of(text.begin(), text.end(), absl::ascii_iscntrl);
  }
  bool binary(binary_t&) override { return false; }
  bool start_object(std::size_t) override {
    names_.emplace_back();
    return names_.size() <= kDeepest;
  }
  bool key(string_t& name) override { return string(name) && names_.back().insert(name).second; }
  bool end_object() override {
    names_.pop_back();
    return true;
  }
  bool start_array(std::size_t) override {
    names_.emplace_back();
    return names_.size() <= kDeepest;
  }
  bool end_array() override {
    names_.pop_back();
    return true;
  }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) override {
    return false;
  }

 private:
  std::vector<std::set<std::string>> names_;  // of the objects that are open
};

}  // namespace

absl::StatusOr<json> ParseStrictObject(absl::string_view text) {
  ShapeCheck check;
  if (!json::sax_parse(text.begin(), text.end(), &check)) {
    return absl::InvalidArgumentError(
        "it is not JSON, or has a duplicate name, control characters or too many levels");
  }
  json value = json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
  if (!value.is_object()) return absl::InvalidArgumentError("it is not a JSON object");
  return value;
}

std::string TextMember(const json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

}  // namespace rollcall
