// SPDX-License-Identifier: Apache-2.0
// The flags of a command as data: --help, shell completion and man pages come from one table,
// the flags that the command itself defines.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace rollcall {

struct FlagHelp {
  std::string name;  // "--hang-after"; of a positional argument, "JOB"
  std::string help;
  std::string type;                  // "TIME"; "" where it takes no value
  std::string environment;           // "" for none
  std::string usual;                 // its default; "" for none
  std::vector<std::string> choices;  // of its value, where there are few
  bool positional = false;
  bool is_path = false;
};

struct CommandHelp {
  std::string name;  // "run"
  std::string help;
  std::vector<FlagHelp> flags;
};

CommandHelp Describe(const CLI::App& app);

// Pure: the texts of the files that shells and man read.
std::string BashCompletion(const std::vector<CommandHelp>& commands);
std::string ZshCompletion(const std::vector<CommandHelp>& commands);
std::string FishCompletion(const std::vector<CommandHelp>& commands);
// Of the program itself, or of one of its commands.
std::string ProgramManPage(const std::vector<CommandHelp>& commands, const std::string& version);
std::string CommandManPage(const CommandHelp& command, const std::string& version);

}  // namespace rollcall
