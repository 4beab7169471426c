// SPDX-License-Identifier: Apache-2.0
// What a process of an inference engine or a launcher is for, by the name that it gives itself.
// Pure.
#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace rollcall {

// `name`: of the main thread, at most 15 letters. "a worker of vLLM" for "VLLM::Worker_TP"; empty
// if unknown.
const char* RoleOfProcess(absl::string_view name);

// The same for a list of functions (StackPlace) that has the name, too.
const char* RoleAmong(const std::string& functions);

}  // namespace rollcall
