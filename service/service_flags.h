// SPDX-License-Identifier: Apache-2.0
// The flags of a program that runs as a service: from the command line, else from the environment
// (ROLLCALL_<FLAG>), else from a file (settings_file.h), else the default.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace CLI {
class App;
}

namespace rollcall {

struct ServiceFlags {
  std::string config;          // a file, or "none"; empty means `default_config` if it exists
  bool check_config = false;   // report whether the flags are usable, and end
  std::string default_config;  // set by AddServiceFlags()
};

// Exit code of a program whose settings are wrong: to start it again does not help.
inline constexpr int kWrongSettings = 2;

// Adds --config and --check-config. `*flags` must outlive the parsing.
void AddServiceFlags(CLI::App* app, const std::string& default_config, ServiceFlags* flags);

// The file that counts, or empty.
std::string ConfigFile(const ServiceFlags& flags);

// Gives `app`, which has parsed command line and environment, the values in `text` for flags that
// neither has set. An error has a line for each thing that is wrong; flags may be set then.
absl::Status ApplySettings(const std::string& text, const std::string& file, CLI::App* app);

// Parses command line and environment and reads the file. nullopt means go on. Otherwise the
// program's exit code, after --help, --version, or an error that this function has printed.
std::optional<int> ParseServiceFlags(int argc, const char* const* argv, CLI::App* app,
                                     const ServiceFlags& flags);

// Parses them again while the program runs, and prints nothing.
absl::Status ParseServiceFlagsAgain(int argc, const char* const* argv, CLI::App* app,
                                    const ServiceFlags& flags);

// The values that were set, by the name of the flag without dashes, except those of this file.
using FlagValues = std::map<std::string, std::vector<std::string>>;
FlagValues ValuesOf(const CLI::App& app);
// The names whose values differ, in order.
std::vector<std::string> ChangedFlags(const FlagValues& before, const FlagValues& after);

// Logs which of the changed flags count from now on (`live`), and which only after a restart.
void LogReloaded(const std::vector<std::string>& changed, const std::vector<std::string>& live);

// What --check-config prints if all is well.
std::string SayUsable(const std::string& program, const ServiceFlags& flags);

// A file of settings with all flags of `app`, each commented out, with its meaning and its default.
// `heading`: sentences for its begin. `remarks`: by the name of a flag, a sentence to add.
std::string ExampleSettings(const CLI::App& app, const std::string& heading,
                            const std::map<std::string, std::string>& remarks);

}  // namespace rollcall
