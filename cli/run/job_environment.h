// SPDX-License-Identifier: Apache-2.0
// The name and the environment of the job of `rollcall run`.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace rollcall {

// The job's name. If the launcher names the job, all hosts get the same name. Otherwise it is the
// script's name with this process's number: two runs of one script at the same time may report to
// one daemon, which would take their ranks for those of one job.
std::string NameOfJob(const std::vector<std::string>& command);

// This process's environment with `changes`, as "NAME=VALUE".
std::vector<std::string> EnvironmentWith(const std::map<std::string, std::string>& changes);

// Returns the value of the variable with one more part.
std::string Appended(const char* variable, const std::string& last, char separator);
std::string Prepended(const char* variable, const std::string& first, char separator);

}  // namespace rollcall
