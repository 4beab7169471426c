// SPDX-License-Identifier: Apache-2.0
// The files by which the Flight Recorders of a job are asked: a pipe for each rank, by which it
// gets the request, and the dump that it writes.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace rollcall {

// The variables by which PyTorch learns the names, where the job's environment has none. PyTorch
// ends a rank that cannot make its pipe, so `prefix` must be in a folder where each rank can write.
// A variable of the user's own stays. Empty if there is nothing to set.
std::map<std::string, std::string> RecorderVariables(
    const std::function<const char*(const char*)>& getenv, const std::string& prefix);

// A prefix for the dumps of one run, in /tmp: "/tmp/rollcall-9f3a...-rank_"; empty if no program
// can write there. Every user sees the names of the pipes, and must not learn from them where the
// dumps will be: those of RecorderPipes() do not show them.
std::string MakeRecorderPrefix();
std::string RecorderPipes(const std::string& prefix);

// Whether a command may start its ranks on other hosts or in a container, where the folders are
// unknown. It looks at all words in front of Python or a Python script, whose arguments start
// nothing, and at the commands of a text for a shell.
bool MayStartElsewhere(const std::vector<std::string>& command);

// What a rank's environment sets for its recorder.
struct RecorderFiles {
  std::string pipe, dump;  // paths as the rank sees them; empty if it cannot be asked
};
RecorderFiles FindRecorderFiles(const std::string& environ, int rank);

// Whether the process has the pipe open that is at this path, as the process sees it. The ranks of
// two jobs in one run have the same names, and the later one replaces the pipe of the other.
bool HasPipeOpen(const std::string& proc_root, int32_t pid, const std::string& pipe);

// Removes the pipes of a run that has ended, and its dumps too if `with_dumps`. Returns a dump that
// stays, for people, or empty.
std::string RemoveRecorderFiles(const std::string& prefix, bool with_dumps);

}  // namespace rollcall
