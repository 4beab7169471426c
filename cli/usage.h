// SPDX-License-Identifier: Apache-2.0
// What may be wrong with the words of a command line, beyond what CLI11 checks.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace rollcall {

// "--comment: \"rack ?4\" is not text in UTF-8" of the first value that is not; empty if all are.
// Paths and commands of a shell may hold any bytes; all else goes to a daemon, into a file or onto
// a screen as text.
std::string FindNoText(const CLI::App& app);

// Whether the command line itself has the flag, which may also come from the environment.
bool IsTyped(const std::vector<std::string>& arguments, const std::string& flag);
// The first of the flags that the command line has, or empty.
std::string FirstTyped(const std::vector<std::string>& arguments,
                       const std::vector<std::string>& flags);

// The words of `rollcall run [flags] [--] COMMAND...`.
struct FlagsAndCommand {
  std::vector<std::string> flags, command;
};

// The command begins behind the first "--", or else with the first word that is neither a flag of
// `app` nor the value of one.
FlagsAndCommand SplitCommand(const CLI::App& app, const std::vector<std::string>& arguments);

// Shows COMMAND in the usage and the help of `app`. The option never gets a value: SplitCommand()
// has taken the command away.
CLI::Option* AddCommandForHelp(CLI::App* app, const std::string& help);

// Prints what is wrong and how to get help. Returns the exit code.
int RefuseUsage(const CLI::App& app, const std::string& problem);

}  // namespace rollcall
