// SPDX-License-Identifier: Apache-2.0
#include "agent/collector/job_marks.h"

#include <algorithm>
#include <cstddef>
#include <iterator>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "agent/processes/rank_environment.h"
#include "base/base_name.h"
#include "base/clean_text.h"
#include "base/cut_text.h"

namespace rollcall {
namespace {

constexpr size_t kLongestMark = 255;

// A variable that all processes of one start share. Where several are set, the first is the most
// specific. `and_variable`: is a part of the value, and must be set, too.
struct MarkVariable {
  absl::string_view kind, variable, and_variable = "";
};
// The namespace before the step: mpirun starts the ranks of its own node without a step of Slurm,
// and those of the other nodes in one.
constexpr MarkVariable kMarkVariables[] = {
    {"pmix", "PMIX_NAMESPACE"},
    {"pmi", "PMI_JOBID"},
    {"pals", "PALS_APID"},
    {"flux", "FLUX_JOB_ID"},
    {"slurm", "SLURM_JOB_ID", "SLURM_STEP_ID"},
    {"ray", "RAY_JOB_ID"},
    {"torchelastic", "TORCHELASTIC_RUN_ID"},
    {"jobset", "JOBSET_NAME"},
    {"named", "ROLLCALL_JOB"},
};

// Where the ranks of a job meet. `port` is empty if the address has its port.
struct AddressVariables {
  absl::string_view address, port;
};
constexpr AddressVariables kAddresses[] = {
    {"MASTER_ADDR", "MASTER_PORT"},
    {"HOROVOD_GLOO_RENDEZVOUS_ADDR", "HOROVOD_GLOO_RENDEZVOUS_PORT"},
    {"PADDLE_MASTER", ""},
    {"JAX_COORDINATOR_ADDRESS", ""},
};

// Matches the beginning of a file's name. An NCCL plugin has the same beginning and is not NCCL.
struct Library {
  absl::string_view file, name;
};
constexpr Library kLibraries[] = {
    {"libnccl.so", "nccl"},      {"librccl.so", "nccl"},       {"libmpi.so", "mpi"},
    {"libmpich.so", "mpi"},      {"libtorch_cpu.so", "torch"}, {"libtorch_cuda.so", "torch"},
    {"libjax_common.so", "jax"}, {"xla_extension.", "jax"},    {"libnvshmem_host.so", "nvshmem"},
    {"libucc.so", "ucc"},        {"libhccl.so", "hccl"},       {"libccl.so", "oneccl"},
    {"libgloo.so", "gloo"},      {"_raylet.so", "ray"},
};

constexpr absl::string_view kThreadsOfRanks[] = {"pt_nccl_", "NCCL ", "pt_gloo_", "gloo_tcp_"};

constexpr absl::string_view kHelpers[] = {"multiprocessing.resource_tracker",
                                          "multiprocessing.forkserver",
                                          "torch._inductor.compile_worker"};

std::string Value(absl::string_view environ, absl::string_view name) {
  return CutText(CleanText(std::string(FindInEnviron(environ, name))), kLongestMark);
}

// Empty if the variable gives no name. torchrun sets "none" for every job without a rendezvous id.
std::string MarkValue(absl::string_view environ, const MarkVariable& mark) {
  const std::string value = Value(environ, mark.variable);
  if (value == "none") return "";
  if (mark.and_variable.empty()) return value;
  const std::string more = Value(environ, mark.and_variable);
  return value.empty() || more.empty() ? "" : absl::StrCat(value, ".", more);
}

bool IsLoopbackName(absl::string_view address) {
  return address == "localhost" || address == "::1" || address == "[::1]" ||
         absl::StartsWith(address, "127.");
}

// Returns the address with its port; empty if it is not set.
std::string AddressIn(absl::string_view environ, const AddressVariables& variables) {
  const std::string address = Value(environ, variables.address);
  if (variables.port.empty()) return address;
  const std::string port = Value(environ, variables.port);
  return address.empty() || port.empty() ? "" : absl::StrCat(address, ":", port);
}

}  // namespace

std::vector<Mark> FindMarks(absl::string_view environ, const std::string& host) {
  std::vector<Mark> marks;
  for (const AddressVariables& variables : kAddresses) {
    const std::string address = AddressIn(environ, variables);
    if (address.empty()) continue;
    const bool is_here = IsLoopbackName(address.substr(0, address.rfind(':')));
    marks.push_back(
        {"rendezvous", absl::StrCat(address, is_here ? absl::StrCat(" on ", host) : ""), is_here});
  }
  for (const MarkVariable& mark : kMarkVariables) {
    const std::string value = MarkValue(environ, mark);
    if (!value.empty()) marks.push_back({std::string(mark.kind), value});
  }
  return marks;
}

int32_t LocalWorldSize(absl::string_view environ) {
  for (const RankVariables& names : kRankVariables) {
    if (absl::string_view(names.local_world_size).empty()) continue;
    const absl::string_view value = FindInEnviron(environ, names.local_world_size);
    const int size = ParsePlaceNumber(std::string(value).c_str());
    if (size > 0) return size;
  }
  return 0;
}

absl::string_view LibraryOf(absl::string_view path) {
  const absl::string_view file = path.substr(path.rfind('/') + 1);
  const auto* const found =
      std::find_if(std::begin(kLibraries), std::end(kLibraries),
                   [file](const Library& l) { return absl::StartsWith(file, l.file); });
  return found == std::end(kLibraries) ? absl::string_view() : found->name;
}

bool IsThreadOfRank(absl::string_view name) {
  return std::any_of(std::begin(kThreadsOfRanks), std::end(kThreadsOfRanks),
                     [name](absl::string_view begin) { return absl::StartsWith(name, begin); });
}

bool IsRuntimeHelper(absl::string_view command) {
  return std::any_of(std::begin(kHelpers), std::end(kHelpers), [command](absl::string_view part) {
    return absl::StrContains(command, part);
  });
}

std::string ScriptOf(absl::string_view command) {
  const std::vector<std::string> arguments = absl::StrSplit(command, '\0', absl::SkipEmpty());
  for (size_t i = 1; i < arguments.size(); ++i) {
    if (arguments[i] == "-m" && i + 1 < arguments.size()) return CleanText(arguments[i + 1]);
    if (absl::StartsWith(arguments[i], "-")) continue;
    const std::string file(BaseName(arguments[i]));
    if (absl::EndsWith(file, ".py") || absl::EndsWith(file, ".sh")) return CleanText(file);
  }
  return arguments.empty() ? "" : CleanText(std::string(BaseName(arguments[0])));
}

}  // namespace rollcall
