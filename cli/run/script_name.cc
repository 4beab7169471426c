// SPDX-License-Identifier: Apache-2.0
#include "cli/run/script_name.h"

#include <algorithm>
#include <cstddef>
#include <iterator>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "base/base_name.h"

namespace rollcall {
namespace {

// Programs that take a module after -m. srun's -m distributes ranks.
constexpr absl::string_view kTakeModules[] = {"python", "pypy", "torchrun", "accelerate",
                                              "deepspeed"};

// Modules that start the script which their arguments name.
constexpr absl::string_view kLaunchers[] = {"torch.distributed.run", "torch.distributed.launch",
                                            "accelerate.commands.launch",
                                            "deepspeed.launcher.runner", "mpi4py"};

constexpr absl::string_view kEndings[] = {".py", ".sh"};

bool TakesModules(absl::string_view program) {
  return std::any_of(std::begin(kTakeModules), std::end(kTakeModules),
                     [program](absl::string_view name) { return absl::StartsWith(program, name); });
}

bool IsLauncher(absl::string_view module) {
  return std::find(std::begin(kLaunchers), std::end(kLaunchers), module) != std::end(kLaunchers);
}

// "train" of "/x/train.py"; "" for a word that does not name a script.
absl::string_view WithoutEnding(absl::string_view word) {
  // The text for a shell, or a variable: it may hold secrets.
  if (word.find_first_of(" \t\n=") != absl::string_view::npos) return "";
  const absl::string_view file = BaseName(word);
  for (const absl::string_view ending : kEndings) {
    if (absl::EndsWith(file, ending)) return absl::StripSuffix(file, ending);
  }
  return "";
}

}  // namespace

std::string ScriptName(const std::vector<std::string>& command) {
  bool takes_modules = false;
  for (size_t i = 0; i < command.size(); ++i) {
    const bool is_module_flag = command[i] == "-m" || command[i] == "--module";
    if (is_module_flag && takes_modules && i + 1 < command.size()) {
      if (!IsLauncher(command[i + 1])) return command[i + 1];
      ++i;
      continue;
    }
    if (absl::StartsWith(command[i], "-")) continue;
    const absl::string_view script = WithoutEnding(command[i]);
    if (!script.empty()) return std::string(script);
    takes_modules = takes_modules || TakesModules(BaseName(command[i]));
  }
  return command.empty() ? "" : std::string(BaseName(command.front()));
}

}  // namespace rollcall
