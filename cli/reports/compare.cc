// SPDX-License-Identifier: Apache-2.0
// rollcall compare: two incidents, fact by fact: reports on disk, or incidents of a daemon.
//
// Exit codes: 0 if they are alike, 3 if they differ, 2 on bad usage or if a report cannot be read.
#include <CLI/CLI.hpp>
#include <iostream>

#include "cli/commands.h"
#include "cli/reports/comparison.h"
#include "cli/reports/incident_reader.h"

namespace rollcall {
int CompareCommand(const std::vector<std::string>& arguments) {
  QueryFlags flags;
  std::string first_name, second_name;
  CLI::App app(
      "Compares two hangs, fact by fact: reports on disk, which need no daemon, or incidents of a "
      "daemon. Exits with 0 if they are alike, and with 3 if they are not.",
      "rollcall compare");
  AddQueryFlags(&app, &flags);
  app.add_option("ID|FOLDER", first_name,
                 "the id of an incident, or the folder of a report on disk")
      ->required();
  app.add_option("ID2|FOLDER2", second_name, "the other one")->required();
  int exit_code = 0;
  if (!ParseFlags(&app, arguments, &exit_code)) return exit_code;
  IncidentReader reader("compare", flags.daemon);
  v1::Incident first, second;
  if (!reader.Read(first_name, &first) || !reader.Read(second_name, &second))
    return reader.exit_code();
  const Comparison comparison = Compare(first, second);
  std::cout << (flags.format == "json" ? ComparisonToJson(comparison)
                                       : ComparisonToText(comparison, first_name, second_name));
  return comparison.is_alike ? 0 : kExitDiffers;
}

}  // namespace rollcall
