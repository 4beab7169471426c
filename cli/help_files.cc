// SPDX-License-Identifier: Apache-2.0
// rollcall completion, rollcall man: print the files for shells and for man.
#include <CLI/CLI.hpp>
#include <filesystem>
#include <iostream>

#include "absl/strings/str_cat.h"
#include "base/clean_text.h"
#include "cli/commands.h"
#include "cli/describe.h"
#include "cli/output_file.h"
#include "cli/query.h"
#include "cli/usage.h"

namespace rollcall {
namespace {

constexpr int kMostOffered = 100;  // incidents

// The names that a completion script offers. A script runs at each press of a key, so no errors.
bool PrintNames(const std::string& things, const DaemonAddress& daemon) {
  DaemonQuery query(daemon);
  std::vector<std::string> names;
  grpc::Status status;
  if (things == "jobs") {
    v1::StatusRequest request;
    request.set_without_communicators(true);
    v1::StatusResponse response;
    status = query.Try(
        [&](auto* stub, auto* context) { return stub->GetStatus(context, request, &response); });
    for (const v1::JobStatus& job : response.jobs()) names.push_back(job.name());
  } else if (things == "silences") {
    v1::ListSilencesResponse response;
    status = query.Try([&](auto* stub, auto* context) {
      return stub->ListSilences(context, v1::ListSilencesRequest(), &response);
    });
    for (const v1::Silence& silence : response.silences()) names.push_back(silence.id());
  } else {
    v1::ListIncidentsRequest request;
    request.set_limit(kMostOffered);
    v1::ListIncidentsResponse response;
    status = query.Try([&](auto* stub, auto* context) {
      return stub->ListIncidents(context, request, &response);
    });
    for (const v1::Incident& incident : response.incidents()) names.push_back(incident.id());
  }
  for (const std::string& name : names) std::cout << CleanText(name) << "\n";
  return status.ok();
}

}  // namespace

int CompletionCommand(const std::vector<std::string>& arguments) {
  std::string shell, names;
  DaemonAddress daemon;
  CLI::App app("Prints the completion script of a shell:  source <(rollcall completion bash)",
               "rollcall completion");
  AddDaemonFlags(&app, &daemon);
  auto* wanted_names =
      app.add_option("--names", names,
                     "print the names of the daemon's jobs, incidents or silences instead")
          ->check(CLI::IsMember({"jobs", "incidents", "silences"}));
  auto* wanted_shell = app.add_option("SHELL", shell, "bash, zsh or fish")
                           ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  wanted_names->excludes(wanted_shell);
  int exit_code = 0;
  if (!ParseFlags(&app, arguments, &exit_code)) return exit_code;
  if (!names.empty()) return PrintNames(names, daemon) ? 0 : 1;
  if (shell.empty()) {
    std::cerr << "rollcall completion: SHELL is required\n  usage:  rollcall completion bash\n";
    return kExitBadUsage;
  }
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
  if (!folder.empty() && !name.empty()) {
    return RefuseUsage(app, "--output-dir writes the pages of all commands: leave out COMMAND");
  }
  const std::vector<CommandHelp> commands = DescribeCommands();
  if (!folder.empty()) {
    std::error_code failed;
    std::filesystem::create_directories(folder, failed);
    absl::Status written = WriteOutputFile(absl::StrCat(folder, "/rollcall.1"),
                                           ProgramManPage(commands, ROLLCALL_VERSION));
    for (const CommandHelp& command : commands) {
      if (!written.ok()) break;
      written = WriteOutputFile(absl::StrCat(folder, "/rollcall-", command.name, ".1"),
                                CommandManPage(command, ROLLCALL_VERSION));
    }
    if (written.ok()) return 0;
    std::cerr << "rollcall man: " << written.message()
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
