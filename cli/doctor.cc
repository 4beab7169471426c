// SPDX-License-Identifier: Apache-2.0
// rollcall doctor: what works on this host, in this container or for this program, and what will
// not.
#include <CLI/CLI.hpp>
#include <iostream>

#include "agent/processes/this_host.h"
#include "cli/commands.h"
#include "cli/doctor/gather.h"
#include "cli/doctor_lines.h"
#include "cli/query.h"
#include "cli/terminal.h"
#include "cli/usage.h"

namespace rollcall {

int DoctorCommand(const std::vector<std::string>& arguments) {
  QueryFlags flags;
  doctor::Questions questions;
  CLI::App app(
      "Checks this host, container or program, and prints what to type where something is wrong.",
      "rollcall doctor");
  AddQueryFlags(&app, &flags);
  const auto& [words, command] = SplitCommand(app, arguments);
  AddCommandForHelp(&app, "the program of a job, to examine it, too; it does not start");
  int exit_code = 0;
  if (!ParseFlags(&app, words, &exit_code)) return exit_code;
  questions.command = command;
  questions.library = FindLibrary();
  questions.daemon = flags.daemon;
  questions.is_daemon_chosen = app.get_option("--daemon")->count() > 0;
  questions.version = ROLLCALL_VERSION;
  const std::vector<doctor::Finding> findings = doctor::Examine(doctor::Gather(questions));
  if (flags.format == "json") {
    std::cout << DoctorJson(findings, ROLLCALL_VERSION, HostName()) << "\n";
  } else {
    PrintLines(DoctorLines(findings));
  }
  return doctor::HasProblem(findings) ? kExitProblemFound : 0;
}

}  // namespace rollcall
