// SPDX-License-Identifier: Apache-2.0
#include "webhook/json_limits.h"

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"

namespace rollcall {
namespace {

using nlohmann::json;

// Each member returns false to end the reading.
class Meter {
 public:
  bool null() { return Count(); }
  bool boolean(bool) { return Count(); }
  bool number_integer(json::number_integer_t) { return Count(); }
  bool number_unsigned(json::number_unsigned_t) { return Count(); }
  bool number_float(json::number_float_t, const std::string&) { return Count(); }
  bool binary(json::binary_t&) { return Count(); }
  bool string(std::string& text) {
    if (is_uid_) size_.request_uid = text;
    return Count();
  }
  bool key(std::string& name) {
    if (depth_ == 1) is_in_request_ = name == "request";
    is_uid_ = depth_ == 2 && is_in_request_ && name == "uid";
    return true;
  }
  bool start_object(std::size_t) { return Open(); }
  bool start_array(std::size_t) { return Open(); }
  bool end_object() { return Close(); }
  bool end_array() { return Close(); }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) {
    return false;
  }
  JsonSize Take(bool is_json) {
    size_.is_json = is_json || !size_.excess.empty();
    return size_;
  }

 private:
  bool Count() {
    is_uid_ = false;
    if (++elements_ <= kMostJsonElements) return true;
    size_.excess = absl::StrCat("it has more than ", kMostJsonElements, " elements");
    return false;
  }
  bool Open() {
    if (++depth_ <= kDeepestJson) return Count();
    size_.excess = absl::StrCat("it is nested deeper than ", kDeepestJson, " levels");
    return false;
  }
  bool Close() {
    --depth_;
    return true;
  }

  JsonSize size_;
  int depth_ = 0, elements_ = 0;
  bool is_in_request_ = false, is_uid_ = false;
};

}  // namespace

JsonSize MeasureJson(std::string_view text) {
  Meter meter;
  const bool is_json = json::sax_parse(text.begin(), text.end(), &meter);
  return meter.Take(is_json);
}

}  // namespace rollcall
