// SPDX-License-Identifier: Apache-2.0
// The entry points of the subcommands, and the helpers that they share. To add a
// subcommand, write cli/<name>.cc, declare its function below, and add a row to
// kCommands (main.cc).
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace rollcall {

// Rollcall's own exit codes. In all other cases `run` exits with the job's exit code.
inline constexpr int kExitBadUsage = 2;
inline constexpr int kExitHangFound = 3;     // analyze, diagnose
inline constexpr int kExitProblemFound = 3;  // doctor
inline constexpr int kExitDiffers = 3;       // compare
inline constexpr int kExitHangAborted = 75;  // run --on-hang=abort

inline constexpr char kLogPattern[] = "rollcall: %v";  // of spdlog

// `arguments` follow the subcommand's name on the command line. Each function returns the exit
// code.
int RunCommand(const std::vector<std::string>& arguments);
int DiagnoseCommand(const std::vector<std::string>& arguments);
int DemoCommand(const std::vector<std::string>& arguments);
int AnalyzeCommand(const std::vector<std::string>& arguments);
int StatusCommand(const std::vector<std::string>& arguments);
int StacksCommand(const std::vector<std::string>& arguments);
int WatchCommand(const std::vector<std::string>& arguments);
int AcknowledgeCommand(const std::vector<std::string>& arguments);
int NoteCommand(const std::vector<std::string>& arguments);
int SilenceCommand(const std::vector<std::string>& arguments);
int IncidentsCommand(const std::vector<std::string>& arguments);
int ReportCommand(const std::vector<std::string>& arguments);
int CompareCommand(const std::vector<std::string>& arguments);
int DoctorCommand(const std::vector<std::string>& arguments);
int ExplainCommand(const std::vector<std::string>& arguments);
int PkiCommand(const std::vector<std::string>& arguments);
int TokenCommand(const std::vector<std::string>& arguments);
int InstallLibraryCommand(const std::vector<std::string>& arguments);
int WebhookCommand(const std::vector<std::string>& arguments);
int CompletionCommand(const std::vector<std::string>& arguments);
int ManCommand(const std::vector<std::string>& arguments);

// Runs the subcommand that the arguments of the program name. Returns the exit code.
int Main(int argc, char** argv);

struct CommandHelp;
// The flags of all subcommands, in the order of the table.
std::vector<CommandHelp> DescribeCommands();

// Parses `arguments` with `app`. Returns true if the command should go on. Otherwise this function
// has printed the help or the error, and the command must exit with `*exit_code` (0 after --help).
bool ParseFlags(CLI::App* app, const std::vector<std::string>& arguments, int* exit_code);

// A job's name as agents and daemon use it (CopyJobName() in interpose/environment.h).
std::string CanonicalJob(const std::string& name);

// The paths of librollcall.so, of the folder of simulated libraries and of the job of `rollcall
// demo`, in the build folder or the installation of this binary. "" if they do not exist.
std::string FindLibrary();
std::string FindSimulation();
std::string FindDemo();

}  // namespace rollcall
