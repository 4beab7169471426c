// SPDX-License-Identifier: Apache-2.0
#include "cli/usage.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/clean_text.h"
#include "base/utf8.h"
#include "cli/commands.h"
#include "cli/describe.h"

namespace rollcall {
namespace {

// Whether the word after this flag is its value.
bool TakesNextWord(const CLI::App& app, const std::string& flag) {
  if (absl::StrContains(flag, '=')) return false;
  const CLI::Option* option = app.get_option_no_throw(flag);
  return option != nullptr && option->get_items_expected_max() > 0;
}

bool MayHoldAnyBytes(const FlagHelp& flag) { return flag.is_path || flag.name == "--on-hang"; }

}  // namespace

std::string FindNoText(const CLI::App& app) {
  const std::vector<FlagHelp> flags = Describe(app).flags;
  auto flag = flags.begin();
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_group().empty()) continue;  // Describe() leaves it out
    const FlagHelp& described = *flag++;
    if (MayHoldAnyBytes(described)) continue;
    for (const std::string& value : option->results()) {
      if (IsUtf8(value)) continue;
      return absl::StrCat(described.name, ": \"", CleanText(value), "\" is not text in UTF-8");
    }
  }
  return "";
}

bool IsTyped(const std::vector<std::string>& arguments, const std::string& flag) {
  const auto end = std::find(arguments.begin(), arguments.end(), "--");
  return std::any_of(arguments.begin(), end, [&flag](const std::string& argument) {
    return argument == flag || absl::StartsWith(argument, flag + "=");
  });
}

std::string FirstTyped(const std::vector<std::string>& arguments,
                       const std::vector<std::string>& flags) {
  const auto at = std::find_if(flags.begin(), flags.end(), [&arguments](const std::string& flag) {
    return IsTyped(arguments, flag);
  });
  return at == flags.end() ? "" : *at;
}

FlagsAndCommand SplitCommand(const CLI::App& app, const std::vector<std::string>& arguments) {
  auto at = arguments.begin();
  while (at != arguments.end() && *at != "--" && absl::StartsWith(*at, "-")) {
    const bool is_followed = at + 1 != arguments.end() && *(at + 1) != "--";
    const bool has_value = is_followed && TakesNextWord(app, *at);
    at += has_value ? 2 : 1;
  }
  const bool is_marked = at != arguments.end() && *at == "--";
  return {{arguments.begin(), at}, {at + (is_marked ? 1 : 0), arguments.end()}};
}

CLI::Option* AddCommandForHelp(CLI::App* app, const std::string& help) {
  return app
      ->add_option_function<std::vector<std::string>>(
          "COMMAND", [](const std::vector<std::string>&) {}, help)
      ->type_name("")
      ->expected(-1);
}

int RefuseUsage(const CLI::App& app, const std::string& problem) {
  std::cerr << app.get_name() << ": " << problem << "\n  usage:  " << app.get_name() << " --help\n";
  return kExitBadUsage;
}

}  // namespace rollcall
