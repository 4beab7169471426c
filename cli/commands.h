// SPDX-License-Identifier: Apache-2.0
// The table of subcommands, and what they share. To add one: write
// cli/<name>.cc with a function below, and a row in kCommands (main.cc).
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace rollcall {

// Exit codes of our own; `run` else passes the job's through.
inline constexpr int kExitBadUsage = 2;
inline constexpr int kExitHangFound = 3;     // analyze
inline constexpr int kExitHangAborted = 75;  // run --on-hang=abort

// `arguments` are those after the subcommand's name; returns the exit code.
int RunCommand(const std::vector<std::string>& arguments);
int AnalyzeCommand(const std::vector<std::string>& arguments);
int StatusCommand(const std::vector<std::string>& arguments);
int StacksCommand(const std::vector<std::string>& arguments);
int WatchCommand(const std::vector<std::string>& arguments);
int IncidentsCommand(const std::vector<std::string>& arguments);
int ReportCommand(const std::vector<std::string>& arguments);
int CompletionCommand(const std::vector<std::string>& arguments);
int ManCommand(const std::vector<std::string>& arguments);

struct CommandHelp;
// What all of them take, in the order of the table.
std::vector<CommandHelp> DescribeCommands();

// Parses flags into `app`. True: go on; else `*exit_code` is what to exit with
// (0 after --help), and what there is to say has been said.
bool ParseFlags(CLI::App* app, const std::vector<std::string>& arguments, int* exit_code);

// A job's name as agents and daemon know it (CopyJobName() in interpose/environment.h).
std::string CanonicalJob(const std::string& name);

// Where librollcall.so and the simulated libraries lie, seen from this binary: in
// a build folder or installed. "" when they are not there.
std::string FindLibrary();
std::string FindSimulation();

}  // namespace rollcall
