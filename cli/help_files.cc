// SPDX-License-Identifier: Apache-2.0
// rollcall completion, rollcall man: print the files for shells and for man.
#include <CLI/CLI.hpp>
#include <filesystem>
#include <fstream>
#include <iostream>

#include "absl/strings/str_cat.h"
#include "cli/commands.h"
#include "cli/describe.h"

namespace rollcall {

int CompletionCommand(const std::vector<std::string>& arguments) {
  std::string shell;
  CLI::App app("Prints the completion script of a shell:  source <(rollcall completion bash)",
               "rollcall completion");
  app.add_option("SHELL", shell, "bash, zsh or fish")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  int exit_code = 0;
  if (!ParseFlags(&app, arguments, &exit_code)) return exit_code;
  const std::vector<CommandHelp> commands = DescribeCommands();
  std::cout << (shell == "bash"  ? BashCompletion(commands)
                : shell == "zsh" ? ZshCompletion(commands)
                                 : FishCompletion(commands));
  return 0;
}

int ManCommand(const std::vector<std::string>& arguments) {
  std::string name, folder;
  CLI::App app("Prints a man page:  rollcall man run | man -l -", "rollcall man");
  app.add_option("--output-dir", folder, "write all man pages to this folder");
  app.add_option("COMMAND", name, "the command to describe (default: rollcall itself)");
  int exit_code = 0;
  if (!ParseFlags(&app, arguments, &exit_code)) return exit_code;
  const std::vector<CommandHelp> commands = DescribeCommands();
  if (!folder.empty()) {
    std::error_code failed;
    std::filesystem::create_directories(folder, failed);
    bool written =
        !!(std::ofstream(folder + "/rollcall.1") << ProgramManPage(commands, ROLLCALL_VERSION));
    for (const CommandHelp& command : commands) {
      written = written && !!(std::ofstream(absl::StrCat(folder, "/rollcall-", command.name, ".1"))
                              << CommandManPage(command, ROLLCALL_VERSION));
    }
    if (written) return 0;
    std::cerr << "rollcall man: cannot write the man pages to " << folder
              << "\n  another folder?  rollcall man --output-dir=DIR\n";
    return 1;
  }
  if (name.empty()) {
    std::cout << ProgramManPage(commands, ROLLCALL_VERSION);
    return 0;
  }
  for (const CommandHelp& command : commands) {
    if (command.name != name) continue;
    std::cout << CommandManPage(command, ROLLCALL_VERSION);
    return 0;
  }
  std::cerr << "rollcall man: no command '" << name << "'\n  usage:  rollcall --help\n";
  return kExitBadUsage;
}

}  // namespace rollcall
