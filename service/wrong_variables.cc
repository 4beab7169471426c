// SPDX-License-Identifier: Apache-2.0
#include "service/wrong_variables.h"

#include <CLI/CLI.hpp>
#include <cstdlib>

namespace rollcall {

void RefuseWrongVariables(CLI::App* app) {
  for (CLI::Option* flag : app->get_options()) {
    const std::string& variable = flag->get_envname();
    const char* const value = variable.empty() ? nullptr : getenv(variable.c_str());
    if (value == nullptr || *value == '\0' || flag->count() != 0) continue;
    flag->add_result(value);
    flag->run_callback();
  }
}

}  // namespace rollcall
