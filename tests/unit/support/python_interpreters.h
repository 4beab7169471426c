// SPDX-License-Identifier: Apache-2.0
// The Python interpreters of this machine: pyenv's, and those of the system.
#pragma once

#include <glob.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

namespace rollcall {

// The distribution's interpreter: stripped, and with other optimisations than a hand-built one.
constexpr int kSystemPython = 0;

// The path of python3.<minor>; "" if this machine has none.
inline std::string FindInterpreter(int minor) {
  if (minor == kSystemPython)
    return access("/usr/bin/python3", X_OK) == 0 ? "/usr/bin/python3" : "";
  const std::string name = "python3." + std::to_string(minor);
  const char* home = getenv("HOME");
  for (const std::string& pattern :
       {std::string(home != nullptr ? home : "") + "/.pyenv/versions/3." + std::to_string(minor) +
            ".*/bin/" + name,
        "/usr/local/bin/" + name, "/usr/bin/" + name}) {
    glob_t found = {};
    std::string path;
    if (glob(pattern.c_str(), 0, nullptr, &found) == 0) path = found.gl_pathv[0];
    globfree(&found);
    if (!path.empty()) return path;
  }
  return "";
}

}  // namespace rollcall
