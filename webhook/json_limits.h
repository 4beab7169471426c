// SPDX-License-Identifier: Apache-2.0
// Whether a JSON is small enough to be read into memory. Pure.
#pragma once

#include <string>
#include <string_view>

namespace rollcall {

constexpr int kDeepestJson = 64;
constexpr int kMostJsonElements = 200'000;  // values, with arrays and objects

struct JsonSize {
  bool is_json = false;
  std::string excess;       // what is too much, for people, or empty
  std::string request_uid;  // request.uid of the object, if it comes before the excess
};
// Reads up to the excess; needs memory for the longest text alone.
JsonSize MeasureJson(std::string_view text);

}  // namespace rollcall
