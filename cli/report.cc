// SPDX-License-Identifier: Apache-2.0
// rollcall report: one incident, from a daemon, as its report says it.
#include <CLI/CLI.hpp>
#include <iostream>

#include "cli/commands.h"
#include "cli/query.h"
#include "daemon/report/html.h"
#include "daemon/report/json.h"
#include "daemon/report/stacks_text.h"
#include "daemon/report/text.h"
#include "daemon/report/writer.h"
#include "daemon/server/clean_message.h"

namespace rollcall {

int ReportCommand(const std::vector<std::string>& arguments) {
  QueryFlags flags;
  std::string id, folder;
  CLI::App app("Prints the report of one incident, or writes it to a folder.",
               "rollcall report");
  app.add_option("--daemon", flags.daemon, "address of the daemon, HOST:PORT")
      ->envname("ROLLCALL_DAEMON")
      ->capture_default_str();
  app.add_option("--format", flags.format, "output format: text, stacks, json or html")
      ->envname("ROLLCALL_FORMAT")
      ->capture_default_str()
      ->check(CLI::IsMember({"text", "stacks", "json", "html"}));
  app.add_option("--report-dir", folder, "write the whole report to a new folder in this folder");
  app.add_option("ID", id, "the id of the incident, from `rollcall incidents`")->required();
  int exit_code = 0;
  if (!ParseFlags(&app, arguments, &exit_code)) return exit_code;
  v1::IncidentRequest request;
  request.set_id(id);
  v1::Incident incident;
  const bool answered = DaemonQuery(flags.daemon).Ask("report", [&](auto* stub, auto* context) {
    return stub->GetIncident(context, request, &incident);
  });
  if (!answered) return 1;
  CleanStrings(&incident);
  if (!folder.empty()) {
    const auto written = CreateReport(folder, incident);
    if (!written.ok()) {
      std::cerr << "rollcall: cannot write the report: " << written.status().message() << "\n";
      return 1;
    }
    std::cout << *written << "\n";
    return 0;
  }
  if (flags.format == "json") {
    std::cout << ToJson(incident).value_or("{}") << "\n";
  } else if (flags.format == "html") {
    std::cout << ToHtml(incident);
  } else if (flags.format == "stacks") {
    std::cout << StacksToText(incident);
  } else {
    std::cout << ToText(incident);
  }
  return 0;
}

}  // namespace rollcall
