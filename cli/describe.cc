// SPDX-License-Identifier: Apache-2.0
#include "cli/describe.h"

#include <CLI/CLI.hpp>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "agent/link/daemon_channel.h"
#include "daemon/model/cause_name.h"

namespace rollcall {
namespace {

// Returns the permitted values from a type like "{text,json}" or "observe|abort|exec:CMD".
std::vector<std::string> ParseChoices(std::string type) {
  type = std::string(absl::StripPrefix(type, "TEXT:"));
  const size_t open = type.find('{'), close = type.find('}');
  if (open != std::string::npos && close != std::string::npos && close > open) {
    return absl::StrSplit(type.substr(open + 1, close - open - 1), ',');
  }
  if (!absl::StrContains(type, "|")) return {};
  std::vector<std::string> choices;
  for (absl::string_view choice : absl::StrSplit(type, '|')) {
    const size_t colon = choice.find(':');
    choices.emplace_back(colon == absl::string_view::npos ? choice : choice.substr(0, colon + 1));
  }
  return choices;
}

bool NamesPath(const std::string& name) {
  for (const char* ending : {"dir", "-file", "history", "template", "junit", "trace", "-map", "-ca",
                             "-cert", "-key", "-crl", "PATH", "FILE", "DIR"}) {
    if (absl::EndsWith(name, ending)) return true;
  }
  return false;
}

struct Things {
  const char* name;  // of a flag, or how the name of a positional argument begins
  const char* things;
};

constexpr Things kThings[] = {
    {"JOB", "jobs"}, {"ID", "incidents"}, {"--job", "jobs"}, {"--end", "silences"}};

std::string NamedThings(const FlagHelp& flag) {
  for (const Things& row : kThings) {
    if (flag.positional ? absl::StartsWith(flag.name, row.name) : flag.name == row.name) {
      return row.things;
    }
  }
  return "";
}

FlagHelp DescribeFlag(const CLI::Option& option) {
  FlagHelp flag;
  flag.positional = option.get_positional();
  flag.name = flag.positional ? option.get_name(true) : "--" + option.get_lnames().front();
  flag.help = option.get_description();
  if (flag.positional || option.get_items_expected_max() > 0) {
    const std::string type = option.get_type_name();
    flag.choices = ParseChoices(type);
    // The choices describe "TEXT:{a,b}". The last word describes "TEXT:TIME".
    flag.type = std::string(absl::StripPrefix(type, "TEXT:"));
    if (!flag.choices.empty()) flag.type = absl::StrJoin(flag.choices, "|");
    if (flag.type.empty()) flag.type = "TEXT";
  }
  flag.environment = option.get_envname();
  flag.usual = option.get_default_str();
  flag.is_path = NamesPath(flag.name);
  flag.things = NamedThings(flag);
  flag.reaches_daemon = option.get_group() == kDaemonFlagGroup;
  // Too many for the name of a type.
  if (flag.type == "CAUSE") flag.choices = CauseNames();
  return flag;
}

// Escapes `text` for use inside single quotes in a shell.
std::string Quoted(const std::string& text) { return absl::StrReplaceAll(text, {{"'", "'\\''"}}); }

std::string Roff(const std::string& text) {
  std::string out = absl::StrReplaceAll(text, {{"\\", "\\e"}, {"-", "\\-"}});
  // roff takes a line that begins with one of these characters for a request.
  return absl::StartsWith(out, ".") || absl::StartsWith(out, "'") ? "\\&" + out : out;
}

void AddDescribedFlag(const FlagHelp& flag, std::string* page) {
  absl::StrAppend(page, ".TP\n.B ", Roff(flag.name));
  if (!flag.positional && !flag.type.empty()) absl::StrAppend(page, "=", Roff(flag.type));
  absl::StrAppend(page, "\n", Roff(flag.help));
  if (!flag.usual.empty()) absl::StrAppend(page, "; the default is ", Roff(flag.usual));
  *page += ".\n";
  if (flag.environment.empty()) return;
  absl::StrAppend(page, "The environment variable ", Roff(flag.environment), " sets it, too.\n");
}

// The flags of one group, below its title.
void AddDescribedFlags(const CommandHelp& command, bool reaches_daemon, const std::string& title,
                       std::string* page) {
  bool is_titled = false;
  for (const FlagHelp& flag : command.flags) {
    if (flag.reaches_daemon != reaches_daemon) continue;
    if (!is_titled) absl::StrAppend(page, ".SH ", title, "\n");
    is_titled = true;
    AddDescribedFlag(flag, page);
  }
}

void AddExamples(const CommandHelp& command, std::string* page) {
  if (command.examples.empty()) return;
  *page += ".SH EXAMPLES\n";
  for (const Example& example : command.examples) {
    absl::StrAppend(page, ".TP\n.B ", Roff(example.line), "\n", Roff(example.what), "\n");
  }
}

// What a command's words name; empty if they name nothing of the daemon.
std::string NamedThings(const CommandHelp& command) {
  for (const FlagHelp& flag : command.flags) {
    if (flag.positional && !flag.things.empty()) return flag.things;
  }
  return "";
}

// The shell command that prints these names, one on each line.
std::string NamesCommand(const std::string& things) {
  return absl::StrCat("rollcall completion --names=", things, " 2>/dev/null");
}

// The end of a line of _arguments that offers them.
std::string ZshNames(const std::string& things) {
  return absl::StrCat(things, ":{compadd -- ${(f)\"$(", NamesCommand(things), ")\"}}");
}

}  // namespace

CommandHelp Describe(const CLI::App& app) {
  CommandHelp command;
  const std::string& name = app.get_name();
  command.name = name.substr(name.rfind(' ') + 1);
  command.help = absl::StrReplaceAll(app.get_description(), {{"\n", " "}});
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_group().empty()) continue;  // of one program to another
    command.flags.push_back(DescribeFlag(*option));
  }
  command.examples = ExamplesOf(command.name);
  return command;
}

std::string BashCompletion(const std::vector<CommandHelp>& commands) {
  std::string names, cases, values;
  for (const CommandHelp& command : commands) {
    absl::StrAppend(&names, names.empty() ? "" : " ", command.name);
    std::string flags;
    for (const FlagHelp& flag : command.flags) {
      if (flag.positional) continue;
      absl::StrAppend(&flags, flags.empty() ? "" : " ", flag.name, flag.type.empty() ? "" : "=");
      if (!flag.choices.empty()) {
        absl::StrAppend(&values, "    ", command.name, ":", flag.name,
                        ") COMPREPLY=($(compgen -W '", absl::StrJoin(flag.choices, " "),
                        "' -- \"$value\")) ;;\n");
      } else if (flag.is_path) {
        absl::StrAppend(&values, "    ", command.name, ":", flag.name,
                        ") COMPREPLY=($(compgen -f -- \"$value\")) ;;\n");
      } else if (!flag.things.empty()) {
        absl::StrAppend(&values, "    ", command.name, ":", flag.name, ") things='", flag.things,
                        "' ;;\n");
      }
    }
    absl::StrAppend(&cases, "    ", command.name, ") flags='", flags, "' things='",
                    NamedThings(command), "' ;;\n");
  }
  return absl::StrCat(
      "# bash completion for rollcall:  source <(rollcall completion bash)\n"
      "_rollcall() {\n"
      "  local line=${COMP_LINE:0:COMP_POINT} command flags= value= flag= things= name\n"
      "  local words=($line)\n"
      "  local word=${COMP_WORDS[COMP_CWORD]}\n"
      "  COMPREPLY=()\n"
      "  if ((COMP_CWORD == 1)); then\n"
      "    COMPREPLY=($(compgen -W '",
      names,
      "' -- \"$word\"))\n"
      "    return\n"
      "  fi\n"
      "  command=${words[1]}\n"
      "  # The words after -- belong to another program.\n"
      "  case $line in\n"
      "    *' -- '*)\n"
      "      COMPREPLY=($(compgen -c -f -- \"$word\"))\n"
      "      return ;;\n"
      "  esac\n"
      "  # bash splits --flag=value into three words.\n"
      "  if [[ $word == = ]]; then\n"
      "    flag=${COMP_WORDS[COMP_CWORD-1]}\n"
      "  elif [[ ${COMP_WORDS[COMP_CWORD-1]} == = ]]; then\n"
      "    flag=${COMP_WORDS[COMP_CWORD-2]} value=$word\n"
      "  fi\n"
      "  case $command:$flag in\n",
      values,
      "  esac\n"
      "  if [[ -n $flag ]]; then\n"
      "    [[ -n $things ]] || return\n"
      "    word=$value\n"
      "  else\n"
      "    case $command in\n",
      cases,
      "    esac\n"
      "    # A word that is not a flag begins another program's command line.\n"
      "    if [[ ( $command == run || $command == doctor ) && -n $word && $word != -* ]]; then\n"
      "      COMPREPLY=($(compgen -c -f -- \"$word\"))\n"
      "      return\n"
      "    fi\n"
      "    COMPREPLY=($(compgen -W \"$flags\" -- \"$word\"))\n"
      "  fi\n"
      "  # compgen -W would expand names as code of the shell.\n"
      "  if [[ -n $things && $word != -* ]]; then\n"
      "    while IFS= read -r name; do\n"
      "      [[ $name != \"$word\"* ]] || COMPREPLY+=(\"$name\")\n"
      "    done < <(" +
          NamesCommand("$things") +
          ")\n"
          "  fi\n"
          "  [[ ${#COMPREPLY[@]} != 1 || ${COMPREPLY[0]} != *= ]] || compopt -o nospace\n"
          "}\n"
          "complete -F _rollcall rollcall\n");
}

std::string ZshCompletion(const std::vector<CommandHelp>& commands) {
  std::string names, cases;
  for (const CommandHelp& command : commands) {
    absl::StrAppend(&names, "    '", command.name, ":", Quoted(command.help), "'\n");
    absl::StrAppend(&cases, "    ", command.name, ") _arguments");
    for (const FlagHelp& flag : command.flags) {
      if (flag.positional) continue;
      const std::string help =
          absl::StrReplaceAll(Quoted(flag.help), {{"[", "("}, {"]", ")"}, {":", ";"}});
      absl::StrAppend(&cases, " \\\n      '", flag.name, flag.type.empty() ? "" : "=", "[", help,
                      "]");
      if (!flag.choices.empty()) {
        absl::StrAppend(&cases, ":value:(", Quoted(absl::StrJoin(flag.choices, " ")), ")");
      } else if (flag.is_path) {
        absl::StrAppend(&cases, ":path:_files");
      } else if (!flag.things.empty()) {
        absl::StrAppend(&cases, ":", ZshNames(flag.things));
      } else if (!flag.type.empty()) {
        absl::StrAppend(&cases, ":value:");
      }
      absl::StrAppend(&cases, "'");
    }
    const std::string things = NamedThings(command);
    const std::string words = things.empty() ? "command:_normal" : ZshNames(things);
    absl::StrAppend(&cases, " \\\n      '*", things.empty() ? ":::" : ":", words, "' ;;\n");
  }
  return absl::StrCat(
      "#compdef rollcall\n"
      "# zsh completion for rollcall:  rollcall completion zsh > \"${fpath[1]}/_rollcall\"\n"
      "_rollcall() {\n"
      "  local -a commands=(\n",
      names,
      "  )\n"
      "  if ((CURRENT == 2)); then\n"
      "    _describe command commands\n"
      "    return\n"
      "  fi\n"
      "  local command=$words[2]\n"
      "  shift words\n"
      "  ((CURRENT--))\n"
      "  case $command in\n",
      cases,
      "  esac\n"
      "}\n"
      "if [[ $funcstack[1] == _rollcall ]]; then _rollcall \"$@\"; "
      "else compdef _rollcall rollcall; fi\n");
}

std::string FishCompletion(const std::vector<CommandHelp>& commands) {
  std::string text =
      "# fish completion for rollcall:  rollcall completion fish | source\n"
      "complete -c rollcall -f\n";
  for (const CommandHelp& command : commands) {
    absl::StrAppend(&text, "complete -c rollcall -n __fish_use_subcommand -a ", command.name,
                    " -d '", Quoted(command.help), "'\n");
    const std::string things = NamedThings(command);
    if (!things.empty()) {
      absl::StrAppend(&text, "complete -c rollcall -n '__fish_seen_subcommand_from ", command.name,
                      "' -a '(", NamesCommand(things), ")'\n");
    }
    for (const FlagHelp& flag : command.flags) {
      if (flag.positional) continue;
      absl::StrAppend(&text, "complete -c rollcall -n '__fish_seen_subcommand_from ", command.name,
                      "' -l ", flag.name.substr(2), " -d '", Quoted(flag.help), "'");
      if (!flag.type.empty()) text += flag.is_path ? " -r -F" : " -x";
      if (!flag.choices.empty()) {
        absl::StrAppend(&text, " -a '", Quoted(absl::StrJoin(flag.choices, " ")), "'");
      } else if (!flag.things.empty()) {
        absl::StrAppend(&text, " -a '(", NamesCommand(flag.things), ")'");
      }
      text += "\n";
    }
  }
  return text;
}

std::string ProgramManPage(const std::vector<CommandHelp>& commands, const std::string& version) {
  std::string page = absl::StrCat(
      ".TH ROLLCALL 1 \"\" \"rollcall ", version,
      "\"\n.SH NAME\nrollcall \\- finds out why a "
      "distributed training job hangs\n.SH SYNOPSIS\n.B rollcall run\n[\\fIflags\\fR] "
      "\\fICOMMAND\\fR...\n.br\n.B rollcall\n\\fICOMMAND\\fR [\\fIflags\\fR]\n.SH COMMANDS\n");
  for (const CommandHelp& command : commands) {
    absl::StrAppend(&page, ".TP\n.B ", command.name, "\n", Roff(command.help), "\n");
  }
  return page + ".SH SEE ALSO\nrollcall\\-\\fICOMMAND\\fR(1) of each command\n";
}

std::string CommandManPage(const CommandHelp& command, const std::string& version) {
  std::string page =
      absl::StrCat(".TH ROLLCALL\\-", command.name, " 1 \"\" \"rollcall ", version,
                   "\"\n.SH NAME\nrollcall\\-", command.name, " \\- ", Roff(command.help),
                   "\n.SH SYNOPSIS\n.B rollcall ", command.name, "\n[\\fIflags\\fR]");
  for (const FlagHelp& flag : command.flags) {
    if (flag.positional) absl::StrAppend(&page, " \\fI", Roff(flag.name), "\\fR");
  }
  if (command.name == "run") page += "...";
  page += "\n";
  AddDescribedFlags(command, /*reaches_daemon=*/false, "OPTIONS", &page);
  AddDescribedFlags(command, /*reaches_daemon=*/true, "TO REACH A DAEMON", &page);
  AddExamples(command, &page);
  return page + ".SH SEE ALSO\nrollcall(1)\n";
}

}  // namespace rollcall
