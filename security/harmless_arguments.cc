// SPDX-License-Identifier: Apache-2.0
#include "security/harmless_arguments.h"

#include <re2/re2.h>

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/base_name.h"
#include "security/harmless_flags.h"
#include "security/secret_names.h"

namespace rollcall {
namespace {

bool Matches(absl::string_view text, const RE2& pattern) {
  return RE2::FullMatch(re2::StringPiece(text.data(), text.size()), pattern);
}

bool Fits(absl::string_view value, ValueForm form) {
  static const RE2& number = *new RE2(
      "-?[0-9][0-9.,:x]{0,9}(?:[eE][+-]?[0-9]{1,3})?|(?i:auto|all|gpu|cpu|cuda(?::[0-9]+)?|true|false|yes|no|none)");
  static const RE2& word =
      *new RE2("[a-z0-9]{1,12}(?:[-_:.][a-z0-9]{1,12}){0,2}|[A-Z][A-Z0-9_]{0,19}");
  static const RE2& endpoint =
      *new RE2(R"((?:\[[0-9a-fA-F:]{2,45}\]|[A-Za-z0-9][A-Za-z0-9.-]{0,62})(?::[0-9]{1,5})?)");
  switch (form) {
    case ValueForm::kNumber:
      return Matches(value, number);
    case ValueForm::kWord:
      return Matches(value, word);
    case ValueForm::kEndpoint:
      return Matches(value, endpoint);
  }
  return false;
}

// nullptr if the table has no such flag.
const HarmlessFlag* FindFlag(absl::string_view name) {
  const std::string dashed = absl::StrReplaceAll(name, {{"_", "-"}});
  const auto at = std::find_if(std::begin(kHarmlessFlags), std::end(kHarmlessFlags),
                               [&](const HarmlessFlag& flag) { return dashed == flag.name; });
  return at == std::end(kHarmlessFlags) ? nullptr : at;
}

// Whether it reads like the name of a flag: words, not a secret that begins with dashes.
bool IsFlagName(absl::string_view name) {
  static const RE2& words = *new RE2(
      "[a-z]{1,20}(?:[A-Z][a-z]{2,19})*[0-9]{0,3}"
      "(?:[-_.](?:[a-z]{1,20}(?:[A-Z][a-z]{2,19})*[0-9]{0,3}|[0-9]{1,3}))*");
  return FindFlag(name) != nullptr || (name.size() <= 64 && Matches(name, words));
}

bool IsIn(absl::string_view word, absl::string_view list) {
  const std::vector<absl::string_view> words = absl::StrSplit(list, ' ', absl::SkipEmpty());
  return std::find(words.begin(), words.end(), word) != words.end();
}

bool IsVersion(absl::string_view text) {
  return text.find_first_not_of("0123456789.") == absl::string_view::npos;
}

// nullptr if the program starts nothing in the table. "python3.11" is "python", and
// "mpirun.openmpi" is "mpirun".
const Starter* FindStarter(absl::string_view program) {
  const absl::string_view name = BaseName(program);
  const auto at =
      std::find_if(std::begin(kStarters), std::end(kStarters), [&](const Starter& starter) {
        absl::string_view rest = name;
        if (!absl::ConsumePrefix(&rest, starter.name)) return false;
        return IsVersion(rest) ||
               (absl::StartsWith(starter.name, "mpi") && absl::StartsWith(rest, "."));
      });
  return at == std::end(kStarters) ? nullptr : at;
}

std::string LengthOf(absl::string_view text) {
  return absl::StrCat("[", text.size(), text.size() == 1 ? " character]" : " characters]");
}

bool IsFlag(absl::string_view argument) { return argument.size() > 1 && argument[0] == '-'; }

// "name" of "--name=value".
absl::string_view NameIn(absl::string_view argument) {
  absl::ConsumePrefix(&argument, "-");
  absl::ConsumePrefix(&argument, "-");
  return argument.substr(0, argument.find('='));
}

// Code of a shell is more than a word.
bool IsOneWord(absl::string_view argument) {
  return argument.find_first_of(" \t\n;|&<>$`'\"(){}*?") == absl::string_view::npos;
}

// Whether nothing but a program or a script looks so.
bool LooksLikeAProgram(absl::string_view argument) {
  if (!IsOneWord(argument)) return false;
  return absl::EndsWith(argument, ".py") || absl::EndsWith(argument, ".sh") ||
         absl::StartsWith(argument, "./") || FindStarter(argument) != nullptr;
}

// "-ec" of a shell and "-uc" of Python: the next argument is code.
bool HasCode(absl::string_view argument, const Starter& starter) {
  return *starter.code != '\0' && argument.size() > 1 && argument[0] == '-' && argument[1] != '-' &&
         argument.find('c') != absl::string_view::npos;
}

// "-s" of a shell: the script comes by its input.
bool ReadsItsInput(absl::string_view argument, const Starter& starter) {
  return *starter.code != '\0' && !IsIn(argument, starter.switches) &&
         (argument == "-s" || argument == "-");
}

bool HasValue(absl::string_view argument) { return absl::StrContains(argument, '='); }

class CommandLine {
 public:
  CommandLine(const std::vector<absl::string_view>& arguments, const Redactor& redactor)
      : arguments_(arguments), redactor_(redactor) {}

  std::vector<std::string> Send() {
    if (IsAtEnd()) return {};
    const Starter* starter = SendProgram();
    while (starter != nullptr) starter = SendStarted(*starter);
    while (!IsAtEnd()) SendArgument();
    return std::move(sent_);
  }

 private:
  bool IsAtEnd() const { return at_ >= arguments_.size(); }

  void Show() { sent_.push_back(redactor_.Redact(arguments_[at_++])); }
  void Hide() {
    if (!IsAtEnd()) sent_.push_back(LengthOf(arguments_[at_++]));
  }

  const Starter* SendProgram() {
    const absl::string_view program = arguments_[at_];
    Show();
    return FindStarter(program);
  }

  // What a starter starts, with its own flags in front of it. Returns that program's own row.
  const Starter* SendStarted(const Starter& starter) {
    bool has_command = *starter.commands == '\0', is_known = true;
    while (!IsAtEnd()) {
      const absl::string_view argument = arguments_[at_];
      if (ReadsItsInput(argument, starter)) {
        Show();
        return nullptr;  // what follows are arguments
      }
      if (argument == "--" || IsIn(argument, starter.switches)) {
        Show();
      } else if (!has_command && IsIn(argument, starter.commands)) {
        Show();
        has_command = true;
        if (!starter.starts_program) return nullptr;
      } else if (HasCode(argument, starter)) {
        SendFlag();
        Hide();
        return nullptr;
      } else if (IsIn(argument, starter.module)) {
        Show();
        if (!IsAtEnd() && !IsFlag(arguments_[at_])) return SendProgram();
      } else if (IsIn(argument, starter.two_values)) {
        Show();
        Hide();
        Hide();
      } else if (IsIn(argument, starter.numbers)) {
        Show();
        if (!IsAtEnd()) SendValue(ValueForm::kNumber);
      } else if (IsFlag(argument)) {
        is_known = SendFlagOfStarter(starter) && is_known;
      } else if (HasValue(argument)) {
        Hide();  // a variable for `env`, not a program
      } else if (!has_command || !IsOneWord(argument) ||
                 (!is_known && !LooksLikeAProgram(argument))) {
        return nullptr;  // an argument
      } else {
        return SendProgram();
      }
    }
    return nullptr;
  }

  // An unknown flag may have a value: what follows may be that, and not the program. False if
  // unknown.
  bool SendFlagOfStarter(const Starter& starter) {
    const absl::string_view argument = arguments_[at_];
    const size_t before = at_;
    started_by_ = &starter;
    SendFlag();
    started_by_ = nullptr;
    if (at_ > before + 1) return FindFlag(NameIn(argument)) != nullptr;
    if (HasValue(argument) || IsAtEnd() || IsFlag(arguments_[at_])) return true;
    Hide();
    return false;
  }

  void SendValue(ValueForm form) {
    if (Fits(arguments_[at_], form)) {
      Show();
    } else {
      Hide();
    }
  }

  void SendArgument() {
    const absl::string_view argument = arguments_[at_];
    if (argument == "-" || argument == "--") {
      Show();
    } else if (IsFlag(argument)) {
      SendFlag();
    } else if (HasValue(argument) && FindFlag(NameIn(argument)) != nullptr) {
      SendAssigned("");
    } else {
      Hide();
    }
  }

  // "name=value" behind `dashes`.
  void SendAssigned(absl::string_view dashes) {
    const absl::string_view argument = arguments_[at_++];
    const absl::string_view name = NameIn(argument);
    const absl::string_view value = argument.substr(argument.find('=') + 1);
    const HarmlessFlag* flag = FindFlag(name);
    const bool is_harmless = flag != nullptr && Fits(value, flag->form);
    sent_.push_back(
        absl::StrCat(dashes, name, "=", is_harmless ? redactor_.Redact(value) : LengthOf(value)));
  }

  void SendFlag() {
    const absl::string_view argument = arguments_[at_];
    const absl::string_view name = NameIn(argument);
    const absl::string_view dashes = absl::StartsWith(argument, "--") ? "--" : "-";
    // "-pSECRET": behind one dash, only names of the table and single letters are names.
    const bool is_name = dashes == "--" ? IsFlagName(name) : FindFlag(name) != nullptr;
    if (!is_name) return SendUnknown(argument);
    if (HasValue(argument)) return SendAssigned(dashes);
    Show();
    if (IsAtEnd()) return;
    if (const HarmlessFlag* flag = FindFlag(name);
        flag != nullptr && Fits(arguments_[at_], flag->form)) {
      Show();
    } else if (SuggestsSecret(name) && !IsCodeNext()) {
      Hide();  // also if it begins with a dash
    }
  }

  // "--login -c CODE": the flag does not belong to a login.
  bool IsCodeNext() const {
    return started_by_ != nullptr && HasCode(arguments_[at_], *started_by_);
  }

  // Of "-pSECRET" it sends "-p".
  void SendUnknown(absl::string_view argument) {
    const bool is_letter = absl::ascii_isalpha(static_cast<unsigned char>(argument[1]));
    if (argument.size() == 2 && is_letter) return Show();
    const size_t shown = absl::StartsWith(argument, "--") || is_letter ? 2 : 0;
    sent_.push_back(absl::StrCat(argument.substr(0, shown), LengthOf(argument.substr(shown))));
    ++at_;
  }

  const std::vector<absl::string_view>& arguments_;
  const Redactor& redactor_;
  const Starter* started_by_ = nullptr;  // while its own flags are sent
  size_t at_ = 0;
  std::vector<std::string> sent_;
};

// As a shell reads it, so that the patterns of a Redactor see where a value ends.
std::string Quote(absl::string_view argument) {
  if (argument.find_first_of(" \t\"'\\;&|<>(){}$`*?#~!") == absl::string_view::npos) {
    return std::string(argument);
  }
  return absl::StrCat("'", absl::StrReplaceAll(argument, {{"'", "'\\''"}}), "'");
}

// All arguments, but what follows a name that suggests a secret: a pattern may not see its end.
std::string AllArguments(const std::vector<absl::string_view>& arguments,
                         const Redactor& redactor) {
  std::vector<std::string> sent;
  bool is_secret = false;
  for (const absl::string_view argument : arguments) {
    if (std::exchange(is_secret, false)) {
      sent.push_back(kRedacted);
      continue;
    }
    const absl::string_view name = NameIn(argument);
    const bool suggests = IsFlag(argument) && SuggestsSecret(name);
    is_secret = suggests && !HasValue(argument);
    sent.push_back(suggests && !is_secret
                       ? absl::StrCat(argument.substr(0, argument.find('=') + 1), kRedacted)
                       : Quote(argument));
  }
  return redactor.Redact(absl::StrJoin(sent, " "));
}

}  // namespace

std::string CommandToSend(absl::string_view command, SendArguments send, const Redactor& redactor) {
  if (command.empty()) return "";
  const char separator = absl::StrContains(command, '\n') ? '\n' : ' ';
  const std::vector<absl::string_view> arguments = absl::StrSplit(command, separator);
  if (send == SendArguments::kAll) return AllArguments(arguments, redactor);
  return absl::StrJoin(CommandLine(arguments, redactor).Send(), " ");
}

}  // namespace rollcall
