// SPDX-License-Identifier: Apache-2.0
#include "daemon/words/process_roles.h"

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"

namespace rollcall {
namespace {

struct Role {
  const char* name;  // the first letters
  const char* words;
};

// A name after a longer one with the same first letters stands for the rest of them.
constexpr Role kRoles[] = {
    {"VLLM::Worker", "a worker of vLLM"},
    {"VLLM::EngineCor", "an engine core of vLLM"},
    {"VLLM::APIServer", "an API server of vLLM"},
    {"VLLM::", "a process of vLLM"},
    {"sglang::schedul", "a scheduler of SGLang, which runs the model"},
    {"sglang::detoken", "the detokenizer of SGLang"},
    {"sglang::", "a process of SGLang"},
    {"ray::", "a worker of Ray"},
};

}  // namespace

const char* RoleOfProcess(absl::string_view name) {
  for (const Role& role : kRoles) {
    if (absl::StartsWith(name, role.name)) return role.words;
  }
  return "";
}

const char* RoleAmong(const std::string& functions) {
  for (const absl::string_view name : absl::StrSplit(functions, ' ')) {
    const char* role = RoleOfProcess(name);
    if (role[0] != '\0') return role;
  }
  return "";
}

}  // namespace rollcall
