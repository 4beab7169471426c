// SPDX-License-Identifier: Apache-2.0
#include "cli/run/job_environment.h"

#include <stdlib.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "cli/commands.h"
#include "cli/run/script_name.h"
#include "interpose/environment.h"

extern char** environ;

namespace rollcall {

std::string NameOfJob(const std::vector<std::string>& command) {
  const std::string named = FindJob(&getenv);
  if (!named.empty()) return CanonicalJob(named);
  return CanonicalJob(absl::StrCat(ScriptName(command), "-", getpid()));
}

std::vector<std::string> EnvironmentWith(const std::map<std::string, std::string>& changes) {
  std::vector<std::string> out;
  for (char** at = environ; *at != nullptr; ++at) {
    const std::string name = std::string(*at).substr(0, std::string(*at).find('='));
    if (changes.count(name) == 0) out.emplace_back(*at);
  }
  for (const auto& [name, value] : changes) out.push_back(absl::StrCat(name, "=", value));
  return out;
}

std::string Appended(const char* variable, const std::string& last, char separator) {
  const char* value = getenv(variable);
  if (value == nullptr || *value == '\0') return last;
  return absl::StrCat(value, std::string(1, separator), last);
}

std::string Prepended(const char* variable, const std::string& first, char separator) {
  const char* value = getenv(variable);
  if (value == nullptr || *value == '\0') return first;
  return absl::StrCat(first, std::string(1, separator), value);
}

}  // namespace rollcall
