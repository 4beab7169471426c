// SPDX-License-Identifier: Apache-2.0
// Reads the JSON of a pod that may have any shape: what is missing or of another type is empty.
// Only views and copies of short texts: a copy of a deep value would recurse.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "webhook/job_names.h"

namespace rollcall {

// Returns the member of an object, or null if `value` has no such member or is not an object.
const nlohmann::json& Member(const nlohmann::json& value, const char* name);
// The member if it is an array, else an empty one.
const nlohmann::json& ArrayMember(const nlohmann::json& value, const char* name);
// The member if it is a text, else "".
std::string Text(const nlohmann::json& value, const char* name);
// The element of the array `name` whose `key` is `text`, or nullptr.
const nlohmann::json* FindIn(const nlohmann::json& value, const char* name, const char* key,
                             const std::string& text);
PodMarks MarksOf(const nlohmann::json& pod);

}  // namespace rollcall
