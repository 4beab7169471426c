# SPDX-License-Identifier: Apache-2.0
# Writes the commit of the sources into a C++ file, if it has changed: cmake -DSOURCE=FOLDER -DOUTPUT=FILE
# -P write_commit.cmake. An archive that `git archive` made has the commit in service/commit.txt, and no .git.
find_program(GIT git)
set(commit "")
if(GIT AND EXISTS "${SOURCE}/.git")
  execute_process(COMMAND "${GIT}" -C "${SOURCE}" rev-parse --short=12 HEAD
                  OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  execute_process(COMMAND "${GIT}" -C "${SOURCE}" --no-optional-locks status --porcelain --untracked-files=no
                  OUTPUT_VARIABLE changes ERROR_QUIET)
  if(commit AND changes)
    string(APPEND commit "+dirty")
  endif()
else()
  file(STRINGS "${SOURCE}/service/commit.txt" archived REGEX "^[0-9a-f]+$")
  string(SUBSTRING "${archived}" 0 12 commit)
endif()
set(text "// Written by service/write_commit.cmake.
#include \"service/version.h\"

namespace rollcall {
const char kCommit[] = \"${commit}\";
}  // namespace rollcall
")
set(before "")
if(EXISTS "${OUTPUT}")
  file(READ "${OUTPUT}" before)
endif()
if(NOT before STREQUAL text)
  file(WRITE "${OUTPUT}" "${text}")
endif()
