// SPDX-License-Identifier: Apache-2.0
// rollcall acknowledge, rollcall note: what people add to an incident.
#include <CLI/CLI.hpp>
#include <iostream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cli/commands.h"
#include "cli/query.h"
#include "daemon/access/clean_message.h"
#include "daemon/report/incident_words.h"

namespace rollcall {
namespace {

void PrintAcknowledged(const v1::Incident& incident) {
  std::cout << incident.id() << ": "
            << (incident.verdicts().empty() ? incident.state() : incident.verdicts(0).summary())
            << "\n";
  if (incident.has_acknowledged()) {
    std::cout << "  acknowledged by " << incident.acknowledged().who() << ", "
              << TimeInWords(incident.acknowledged().at()) << "\n";
  }
  for (const v1::Note& note : incident.notes()) {
    std::cout << "  " << note.who() << ", " << TimeInWords(note.at()) << ": " << note.text()
              << "\n";
  }
}

int Act(const char* command, const QueryFlags& flags, const v1::IncidentActionRequest& request) {
  v1::Incident incident;
  DaemonQuery query(flags.daemon);
  const bool answered = query.AskToChange(command, [&](auto* stub, auto* context) {
    return stub->ActOnIncident(context, request, &incident);
  });
  if (!answered) return query.exit_code();
  CleanStrings(&incident);
  if (flags.format == "json") {
    PrintJson(incident);
  } else {
    PrintAcknowledged(incident);
  }
  return 0;
}

}  // namespace

int AcknowledgeCommand(const std::vector<std::string>& arguments) {
  QueryFlags flags;
  std::string id;
  bool takes_back = false;
  CLI::App app("Shows others that you take care of an incident.", "rollcall acknowledge");
  AddQueryFlags(&app, &flags);
  app.add_flag("--take-back", takes_back, "take your acknowledgement back");
  app.add_option("ID", id, "id of the incident, as rollcall incidents prints it")->required();
  int exit_code = 0;
  if (!ParseFlags(&app, arguments, &exit_code)) return exit_code;
  v1::IncidentActionRequest request;
  request.set_id(id);
  request.set_action(takes_back ? "take back" : "acknowledge");
  return Act("acknowledge", flags, request);
}

int NoteCommand(const std::vector<std::string>& arguments) {
  QueryFlags flags;
  std::string id;
  std::vector<std::string> words;
  CLI::App app("Adds a note to an incident, for all who look at it.", "rollcall note");
  AddQueryFlags(&app, &flags);
  app.add_option("ID", id, "id of the incident, as rollcall incidents prints it")->required();
  app.add_option("TEXT", words, "the note, of at most 2,000 bytes")->required();
  int exit_code = 0;
  if (!ParseFlags(&app, arguments, &exit_code)) return exit_code;
  v1::IncidentActionRequest request;
  request.set_id(id);
  request.set_action("note");
  request.set_text(absl::StrJoin(words, " "));
  return Act("note", flags, request);
}

}  // namespace rollcall
