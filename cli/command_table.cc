// SPDX-License-Identifier: Apache-2.0
// The table of subcommands.
#include <limits.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>

#include "absl/strings/str_format.h"
#include "base/clean_stream.h"
#include "base/clean_text.h"
#include "base/read_file.h"
#include "cli/commands.h"
#include "cli/describe.h"
#include "cli/usage.h"
#include "interpose/environment.h"
#include "security/grpc/quiet_log.h"
#include "service/suggest.h"
#include "service/version.h"
#include "service/wrong_variables.h"

namespace rollcall {
namespace {

struct Command {
  const char* name;
  const char* help;
  int (*run)(const std::vector<std::string>&);
};

constexpr Command kCommands[] = {
    {"diagnose", "find out why a job hangs now that runs without Rollcall", &DiagnoseCommand},
    {"run", "run a job and report the rank at fault when it hangs", &RunCommand},
    {"demo", "run a job that hangs, without a GPU, and show the verdict", &DemoCommand},
    {"analyze", "find out from files why a job hung, without a daemon", &AnalyzeCommand},
    {"status", "print the state of a daemon's jobs", &StatusCommand},
    {"watch", "show the state of a daemon's jobs live on the full screen", &WatchCommand},
    {"stacks", "print the stacks of a running job or process", &StacksCommand},
    {"incidents", "list incidents, newest first", &IncidentsCommand},
    {"acknowledge", "show others that you take care of an incident", &AcknowledgeCommand},
    {"note", "add a note to an incident", &NoteCommand},
    {"silence", "hold back alerts for a time", &SilenceCommand},
    {"report", "print one incident or write its report to a folder", &ReportCommand},
    {"compare", "compare two incidents or reports, fact by fact", &CompareCommand},
    {"doctor", "check this host, container or program, and print what to type", &DoctorCommand},
    {"explain", "explain a line of a job's log, and what to run next", &ExplainCommand},
    {"pki", "make certificates for daemons, agents and people", &PkiCommand},
    {"token", "make, list and revoke tokens of a token file", &TokenCommand},
    {"install-library", "copy the preloaded library into a folder", &InstallLibraryCommand},
    {"webhook", "put the library into pods of Kubernetes", &WebhookCommand},
    {"completion", "print the completion script for bash, zsh or fish", &CompletionCommand},
    {"man", "print a man page", &ManCommand},
};

void PrintHelp(std::ostream& out) {
  out << "Finds out why a distributed training job hangs.\n\n"
         "It hangs now, and nothing was prepared?  rollcall diagnose\n\nUsage:\n"
         "  rollcall run [flags] COMMAND...\n  rollcall SUBCOMMAND [flags]\n\nCommands:\n";
  for (const Command& command : kCommands) {
    out << absl::StreamFormat("  %-17s%s\n", command.name, command.help);
  }
  out << "\n`rollcall SUBCOMMAND --help` prints its flags and examples. A flag can come from the\n"
         "environment: ROLLCALL_HANG_AFTER=90s sets --hang-after=90s.\n";
}

std::string OwnDirectory() {
  const std::string self = ReadLink("/proc/self/exe");
  return self.empty() ? "." : self.substr(0, self.rfind('/'));
}

std::string FirstThatExists(const std::vector<std::string>& candidates) {
  for (const std::string& candidate : candidates) {
    char resolved[PATH_MAX];
    if (realpath(candidate.c_str(), resolved) != nullptr) return resolved;
  }
  return "";
}

}  // namespace

namespace {

// "\n  did you mean --hang-after?" for the first unknown flag that is near a known one; else "".
std::string SuggestFlag(const CLI::App& app, const std::vector<std::string>& arguments) {
  std::vector<std::string> known = {"--help"};
  for (const FlagHelp& flag : Describe(app).flags) known.push_back(flag.name);
  for (const std::string& argument : arguments) {
    if (argument == "--") break;
    const std::string name = argument.substr(0, argument.find('='));
    if (name.rfind("--", 0) != 0 || std::count(known.begin(), known.end(), name) != 0) continue;
    const std::string nearest = Nearest(name, known);
    if (!nearest.empty()) return "\n  did you mean " + nearest + "?";
  }
  return "";
}

const Command* FindCommand(const std::string& name) {
  const auto at = std::find_if(std::begin(kCommands), std::end(kCommands),
                               [&](const Command& command) { return name == command.name; });
  return at == std::end(kCommands) ? nullptr : at;
}

int ReportUnknownCommand(const std::string& name) {
  std::vector<std::string> known;
  for (const Command& command : kCommands) known.push_back(command.name);
  const std::string nearest = Nearest(name, known);
  std::cerr << "rollcall: "
            << (name.empty() ? "no command given" : "no command '" + CleanText(name) + "'")
            << (nearest.empty() ? "" : "\n  did you mean " + nearest + "?")
            << "\n  usage:  rollcall --help\n";
  return kExitBadUsage;
}

}  // namespace

// While this is set, ParseFlags() only describes the flags that a command has defined, and the
// command does not run.
CommandHelp* described = nullptr;

std::vector<CommandHelp> DescribeCommands() {
  std::vector<CommandHelp> all;
  for (const Command& command : kCommands) {
    described = &all.emplace_back();
    command.run({});
    described->help = command.help;
  }
  described = nullptr;
  return all;
}

bool ParseFlags(CLI::App* app, const std::vector<std::string>& arguments, int* exit_code) {
  if (described != nullptr) {
    *described = Describe(*app);
    return false;
  }
  app->footer(ExamplesText(Describe(*app).examples));
  try {
    std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());
    app->parse(reversed);
    RefuseWrongVariables(app);
    const std::string problem = FindNoText(*app);
    if (problem.empty()) return true;
    *exit_code = RefuseUsage(*app, problem);
    return false;
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) {
      *exit_code = app->exit(error);
      return false;
    }
    std::cerr << app->get_name() << ": " << CleanText(error.what()) << SuggestFlag(*app, arguments)
              << "\n  usage:  " << app->get_name() << " --help\n";
    *exit_code = kExitBadUsage;
    return false;
  }
}

std::string CanonicalJob(const std::string& name) {
  JobNameBuffer job;
  CopyJobName(name.c_str(), job);
  return job;
}

std::string FindLibrary() {
  const std::string own = OwnDirectory();
  return FirstThatExists({own + "/../lib/librollcall.so",
                          own + "/../" ROLLCALL_INSTALL_LIBDIR "/rollcall/librollcall.so"});
}

std::string FindSimulation() {
  const std::string own = OwnDirectory();
  return FirstThatExists({own + "/../sim", own + "/../" ROLLCALL_INSTALL_LIBDIR "/rollcall/sim"});
}

std::string FindDemo() {
  const std::string own = OwnDirectory();
  return FirstThatExists({own + "/../lib/demo/train.py",
                          own + "/../" ROLLCALL_INSTALL_LIBDIR "/rollcall/demo/train.py"});
}

int Main(int argc, char** argv) {
  CleanErrors();
  spdlog::set_default_logger(spdlog::stderr_logger_mt("rollcall"));
  spdlog::set_pattern(kLogPattern);
  SilenceGrpc();
  const std::string name = argc > 1 ? argv[1] : "";
  if (name == "--version" || name == "-V" || name == "version") {
    std::cout << VersionLine("rollcall") << "\n";
    return 0;
  }
  const bool is_help = name == "--help" || name == "-h" || name == "help";
  if (is_help && argc <= 2) {
    PrintHelp(std::cout);
    return 0;
  }
  // `rollcall help run` is `rollcall run --help`.
  const std::string wanted = is_help ? argv[2] : name;
  const Command* command = FindCommand(wanted);
  if (command == nullptr) return ReportUnknownCommand(wanted);
  if (is_help) return command->run({"--help"});
  return command->run({argv + 2, argv + argc});
}

}  // namespace rollcall
