// SPDX-License-Identifier: Apache-2.0
#include "service/service_flags.h"

#include <spdlog/spdlog.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "service/settings_file.h"
#include "service/suggest.h"
#include "service/wrong_variables.h"

namespace rollcall {
namespace {

constexpr size_t kLineLength = 98;

// Where the settings come from, and what ends the program: no settings themselves.
const std::set<std::string> kNoSettings = {"config", "check-config", "help", "version",
                                           "import-history"};

// The flags that a file may set.
std::vector<const CLI::Option*> SettableFlags(const CLI::App& app) {
  std::vector<const CLI::Option*> flags;
  for (const CLI::Option* flag : app.get_options()) {
    const std::vector<std::string>& names = flag->get_lnames();
    if (!names.empty() && kNoSettings.count(names[0]) == 0) flags.push_back(flag);
  }
  return flags;
}

bool IsSwitch(const CLI::Option& flag) { return flag.get_items_expected_max() == 0; }

bool TakesMany(const CLI::Option& flag) {
  return flag.get_items_expected_max() > 1 ||
         flag.get_multi_option_policy() == CLI::MultiOptionPolicy::TakeAll;
}

bool IsNumber(const CLI::Option& flag) {
  const std::string type = flag.get_type_name();
  return absl::StrContains(type, "INT") || absl::StrContains(type, "FLOAT");
}

std::string ExplainUnknown(const std::string& name, const CLI::App& app) {
  if (kNoSettings.count(name) != 0) {
    return absl::StrCat("--", name, " belongs on the command line and not into this file");
  }
  std::vector<std::string> names;
  for (const CLI::Option* flag : SettableFlags(app)) names.push_back(flag->get_lnames()[0]);
  const std::string nearest = Nearest(name, names);
  return absl::StrCat("unknown flag \"", name, "\"",
                      nearest.empty() ? absl::StrCat("; type  ", app.get_name(), " --help")
                                      : absl::StrCat("; did you mean \"", nearest, "\"?"));
}

// CLI11's message, without the dashes, which no line of the file has.
std::string ExplainRefused(const Setting& setting, const CLI::Option& flag,
                           const CLI::Error& error) {
  if (dynamic_cast<const CLI::ConversionError*>(&error) != nullptr && IsNumber(flag)) {
    return absl::StrCat(setting.name, ": \"", absl::StrJoin(setting.values, ", "),
                        "\" is not a number");
  }
  const std::string text = error.what();
  const std::string dashes = absl::StrCat("--", setting.name, ":");
  return absl::StartsWith(text, dashes) ? text.substr(2) : absl::StrCat(setting.name, ": ", text);
}

// What is wrong, or empty.
std::string CheckShape(const Setting& setting, const CLI::Option& flag) {
  if (setting.is_list && !TakesMany(flag)) {
    return absl::StrCat(setting.name, " takes one value, and this is a list");
  }
  if (!IsSwitch(flag)) return "";
  const std::string& value = setting.values[0];
  if (value == "true" || value == "false") return "";
  return absl::StrCat(setting.name, " is true or false, and not \"", value, "\"");
}

std::string ApplyOne(const Setting& setting, CLI::App* app) {
  const bool is_setting = kNoSettings.count(setting.name) == 0;
  CLI::Option* flag = is_setting ? app->get_option_no_throw("--" + setting.name) : nullptr;
  if (flag == nullptr) return ExplainUnknown(setting.name, *app);
  const std::string wrong = CheckShape(setting, *flag);
  if (!wrong.empty()) return wrong;
  if (flag->count() != 0 || setting.values.empty()) return "";
  if (IsSwitch(*flag) && setting.values[0] == "false") return "";
  try {
    for (const std::string& value : setting.values) flag->add_result(value);
    flag->run_callback();
  } catch (const CLI::Error& error) {
    return ExplainRefused(setting, *flag, error);
  }
  return "";
}

absl::Status ReadFile(CLI::App* app, const ServiceFlags& flags) {
  const std::string file = ConfigFile(flags);
  if (file.empty()) return absl::OkStatus();
  const absl::StatusOr<std::string> text = ReadSettingsText(file);
  if (text.ok()) return ApplySettings(*text, file, app);
  return absl::Status(text.status().code(),
                      absl::StrCat(text.status().message(), "\n  to start without it:  ",
                                   app->get_name(), " --config=none"));
}

// "# " and at most kLineLength characters a line.
void AddComment(const std::string& text, std::string* out) {
  std::string line = "#";
  for (absl::string_view word : absl::StrSplit(text, ' ', absl::SkipEmpty())) {
    if (line.size() + 1 + word.size() > kLineLength) {
      absl::StrAppend(out, line, "\n");
      line = "#";
    }
    absl::StrAppend(&line, " ", word);
  }
  absl::StrAppend(out, line, "\n");
}

// A value as YAML takes it for a word.
std::string Quoted(const std::string& value) {
  const bool is_plain = !value.empty() &&
                        value.find_first_of("#\"'{}[]&*!|>%@` ") == std::string::npos &&
                        !absl::StrContains(value, ": ");
  return is_plain ? value : absl::StrCat("\"", value, "\"");
}

std::string ExampleValue(const CLI::Option& flag) {
  if (IsSwitch(flag)) return "false";
  return Quoted(flag.get_default_str());
}

}  // namespace

void AddServiceFlags(CLI::App* app, const std::string& default_config, ServiceFlags* flags) {
  flags->default_config = default_config;
  app->add_option("--config", flags->config,
                  absl::StrCat("file with flags, one a line; command line and environment count "
                               "more; none: no file (default: ",
                               default_config, " if it is there)"))
      ->envname("ROLLCALL_CONFIG");
  app->add_flag("--check-config", flags->check_config,
                "check the flags and exit: 0 if they are usable, else 2 with the reason");
}

std::string ConfigFile(const ServiceFlags& flags) {
  if (flags.config == "none") return "";
  if (!flags.config.empty()) return flags.config;
  return access(flags.default_config.c_str(), F_OK) == 0 ? flags.default_config : "";
}

absl::Status ApplySettings(const std::string& text, const std::string& file, CLI::App* app) {
  const absl::StatusOr<std::vector<Setting>> settings = ParseSettings(text, file);
  if (!settings.ok()) return settings.status();
  std::vector<std::string> errors;
  for (const Setting& setting : *settings) {
    const std::string wrong = ApplyOne(setting, app);
    if (!wrong.empty()) errors.push_back(AtLine(file, setting.line, wrong));
  }
  if (errors.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrJoin(errors, "\n"));
}

std::optional<int> ParseServiceFlags(int argc, const char* const* argv, CLI::App* app,
                                     const ServiceFlags& flags) {
  try {
    app->parse(argc, argv);
    RefuseWrongVariables(app);
  } catch (const CLI::ParseError& error) {
    return app->exit(error);
  }
  const absl::Status status = ReadFile(app, flags);
  if (status.ok()) return std::nullopt;
  std::cerr << app->get_name() << ": " << status.message() << "\n";
  return kWrongSettings;
}

absl::Status ParseServiceFlagsAgain(int argc, const char* const* argv, CLI::App* app,
                                    const ServiceFlags& flags) {
  try {
    app->parse(argc, argv);
    RefuseWrongVariables(app);
  } catch (const CLI::ParseError& error) {
    return absl::InvalidArgumentError(error.what());
  }
  return ReadFile(app, flags);
}

FlagValues ValuesOf(const CLI::App& app) {
  FlagValues values;
  for (const CLI::Option* flag : SettableFlags(app)) {
    values[flag->get_lnames()[0]] =
        flag->count() != 0 ? flag->results() : std::vector<std::string>{flag->get_default_str()};
  }
  return values;
}

std::vector<std::string> ChangedFlags(const FlagValues& before, const FlagValues& after) {
  std::vector<std::string> changed;
  for (const auto& [name, values] : after) {
    const auto earlier = before.find(name);
    if (earlier == before.end() || earlier->second != values) changed.push_back(name);
  }
  return changed;
}

void LogReloaded(const std::vector<std::string>& changed, const std::vector<std::string>& live) {
  std::vector<std::string> now, later;
  for (const std::string& name : changed) {
    (std::find(live.begin(), live.end(), name) != live.end() ? now : later).push_back(name);
  }
  if (changed.empty()) spdlog::info("reloaded: no flag has changed");
  if (!now.empty()) spdlog::info("reloaded: {}", absl::StrJoin(now, ", "));
  if (!later.empty()) {
    spdlog::warn("these count only after a restart: {}", absl::StrJoin(later, ", "));
  }
}

std::string SayUsable(const std::string& program, const ServiceFlags& flags) {
  const std::string file = ConfigFile(flags);
  return absl::StrCat(program, ": the flags are usable",
                      file.empty() ? "; no file of flags exists" : absl::StrCat(", with ", file));
}

std::string ExampleSettings(const CLI::App& app, const std::string& heading,
                            const std::map<std::string, std::string>& remarks) {
  std::string out;
  for (absl::string_view part : absl::StrSplit(heading, '\n')) AddComment(std::string(part), &out);
  for (const CLI::Option* flag : SettableFlags(app)) {
    const std::string& name = flag->get_lnames()[0];
    absl::StrAppend(&out, "\n");
    AddComment(flag->get_description(), &out);
    const auto remark = remarks.find(name);
    if (remark != remarks.end()) AddComment(remark->second, &out);
    if (TakesMany(*flag)) AddComment("One value, or a list.", &out);
    absl::StrAppend(&out, "#", name, ": ", ExampleValue(*flag), "\n");
  }
  return out;
}

}  // namespace rollcall
