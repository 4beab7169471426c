// SPDX-License-Identifier: Apache-2.0
// The files by which the Flight Recorders of a job are asked: a pipe for each rank, by which it
// gets the request, and the dump that it writes.
#pragma once

#include <functional>
#include <map>
#include <string>

namespace rollcall {

// The variables by which PyTorch learns the names, where the job's environment has none. PyTorch
// ends a rank that cannot make its pipe, so `prefix` must be in a folder that every host has. A
// variable of the user's own stays. Empty: there is nothing to set.
std::map<std::string, std::string> RecorderVariables(
    const std::function<const char*(const char*)>& getenv, const std::string& prefix);

// A prefix for one run, in /tmp: "/tmp/rollcall-9f3a...-rank_"; "": nobody can write there.
std::string MakeRecorderPrefix();

// What a rank's environment says about its recorder.
struct RecorderFiles {
  std::string pipe, dump;  // paths as the rank sees them; "": it cannot be asked
};
RecorderFiles FindRecorderFiles(const std::string& environ, int rank);

// Removes the pipes of a run that has ended. Returns one of its dumps, for people; "": none.
std::string RemoveRecorderPipes(const std::string& prefix);

}  // namespace rollcall
