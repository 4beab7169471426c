// SPDX-License-Identifier: Apache-2.0
// The flags of a command as data. The command defines its flags once; --help, shell completion and
// man pages come from this definition.
#pragma once

#include <string>
#include <vector>

#include "cli/examples.h"

namespace CLI {
class App;
}

namespace rollcall {

struct FlagHelp {
  std::string name;  // "--hang-after"; of a positional argument, "JOB"
  std::string help;
  std::string type;                  // "TIME"; "" if the flag takes no value
  std::string environment;           // may be empty
  std::string usual;                 // the default; may be empty
  std::vector<std::string> choices;  // the permitted values; empty if any value is
  bool positional = false;
  bool reaches_daemon = false;  // of the group that --help prints last
  bool is_path = false;
  // What of the daemon its values name: "jobs", "incidents", "silences", or empty.
  std::string things;
};

struct CommandHelp {
  std::string name;  // "run"
  std::string help;
  std::vector<FlagHelp> flags;
  std::vector<Example> examples;
};

CommandHelp Describe(const CLI::App& app);

// Returns the texts of the completion scripts. Pure.
std::string BashCompletion(const std::vector<CommandHelp>& commands);
std::string ZshCompletion(const std::vector<CommandHelp>& commands);
std::string FishCompletion(const std::vector<CommandHelp>& commands);
// Returns the man pages of the program and of one command. Pure.
std::string ProgramManPage(const std::vector<CommandHelp>& commands, const std::string& version);
std::string CommandManPage(const CommandHelp& command, const std::string& version);

}  // namespace rollcall
