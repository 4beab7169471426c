// SPDX-License-Identifier: Apache-2.0
// The variables in which launchers give a process its place in the job. The library reads them with
// getenv, the agent from /proc/PID/environ.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <initializer_list>

namespace rollcall {

struct RankVariables {
  const char* rank;
  const char* world_size;
  const char* local_rank;
  const char* local_world_size;  // the number of the job's ranks on this host; may be empty
};

// The one table of them. In order: torchrun, horovodrun, PaddlePaddle, Open MPI, MVAPICH2, HPE's
// PALS, PMIx and PMI (MPICH, Intel MPI), Flux, Slurm, Kubernetes indexed jobs. The first set with a
// rank wins, and the launcher closest to the process comes first: an mpirun inside a Slurm job
// leaves Slurm's variables unchanged in all of its processes.
inline constexpr RankVariables kRankVariables[] = {
    {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"},
    {"HOROVOD_RANK", "HOROVOD_SIZE", "HOROVOD_LOCAL_RANK", "HOROVOD_LOCAL_SIZE"},
    {"PADDLE_TRAINER_ID", "PADDLE_TRAINERS_NUM", "PADDLE_LOCAL_RANK", "PADDLE_LOCAL_SIZE"},
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
     "OMPI_COMM_WORLD_LOCAL_SIZE"},
    {"MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_LOCAL_RANK",
     "MV2_COMM_WORLD_LOCAL_SIZE"},
    {"PALS_RANKID", "PMI_SIZE", "PALS_LOCAL_RANKID", "PALS_LOCAL_SIZE"},
    {"PMIX_RANK", "PMIX_SIZE", "PMIX_LOCAL_RANK", ""},
    {"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"},
    {"FLUX_TASK_RANK", "FLUX_JOB_SIZE", "FLUX_TASK_LOCAL_ID", ""},
    {"SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", ""},
    {"JOB_COMPLETION_INDEX", "JOB_COMPLETIONS", "JOB_LOCAL_RANK", ""},
};

// torchft starts each replica group with a torchrun of its own, so that the ranks of each begin at
// 0. Source: torchft/torchx.py.
inline constexpr char kReplicaVariable[] = "REPLICA_GROUP_ID";
inline constexpr char kReplicasVariable[] = "NUM_REPLICA_GROUPS";

// Launchers count restarts of a job in these. Order: the job's own word, torchrun, Slurm's requeue,
// a Kubernetes JobSet, a job of Volcano (`rollcall webhook` sets the last two).
inline constexpr const char* kAttemptVariables[] = {
    "ROLLCALL_ATTEMPT", "TORCHELASTIC_RESTART_COUNT", "SLURM_RESTART_COUNT",
    "JOBSET_RESTART_ATTEMPT", "VOLCANO_JOB_VERSION"};
inline constexpr const char* kTorchrunRestarts = kAttemptVariables[1];

inline constexpr const char* kJobVariables[] = {"ROLLCALL_JOB", "TORCHELASTIC_RUN_ID",
                                                "SLURM_JOB_ID", "PMIX_NAMESPACE", "JOB_NAME"};

// The library's path, in pods that `rollcall webhook` has changed: their processes load it by
// /etc/ld.so.preload, so LD_PRELOAD does not name it.
inline constexpr char kPreloadVariable[] = "ROLLCALL_PRELOAD";

// In such a pod, processes that sshd starts do not inherit the container's environment. They find
// what they need of it in this file, a line NAME=VALUE each, which `rollcall install-library --pod`
// writes.
inline constexpr char kPodEnvironmentFile[] = "/rollcall/lib/environment";
inline constexpr const char* kPodVariables[] = {
    "ROLLCALL_ATTEMPT", "ROLLCALL_DIR",           "ROLLCALL_JOB",        "ROLLCALL_PRELOAD",
    "ROLLCALL_TENANT",  "JOBSET_RESTART_ATTEMPT", "VOLCANO_JOB_VERSION", "NODE_NAME",
    "POD_NAME",         "POD_NAMESPACE"};
inline constexpr size_t kMostPodEnvironment = 4096;  // bytes

// The longest name of a job, without the terminating zero.
inline constexpr size_t kMostJobName = 255;
using JobNameBuffer = char[kMostJobName + 1];

// The name of a job in library, agent, daemon and command line: the first line of `name`, in
// printable ASCII. A name that is longer, or holds other bytes, ends in a hash of the whole name,
// so that two such names stay different.
inline void CopyJobName(const char* name, JobNameBuffer& out) {
  constexpr size_t kHashText = 17;     // "-" and 16 digits
  uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  size_t length = 0;
  bool changed = false;
  for (; name[length] != '\0' && name[length] != '\n'; ++length) {
    const auto byte = static_cast<unsigned char>(name[length]);
    hash = (hash ^ byte) * 0x100000001b3;
    const bool printable = byte >= ' ' && byte <= '~';
    changed = changed || !printable;
    if (length < kMostJobName) out[length] = printable ? name[length] : '?';
  }
  if (!changed && length <= kMostJobName) {
    out[length] = '\0';
    return;
  }
  size_t at = length < kMostJobName - kHashText ? length : kMostJobName - kHashText;
  out[at++] = '-';
  for (int shift = 60; shift >= 0; shift -= 4) out[at++] = "0123456789abcdef"[hash >> shift & 15];
  out[at] = '\0';
}

struct Place {
  int rank = -1;
  int world_size = -1;
  int local_rank = -1;
};

// A number of at most nine digits; -1 for anything else.
inline int ParsePlaceNumber(const char* text) {
  if (text == nullptr || *text == '\0') return -1;
  int value = 0;
  int digits = 0;
  for (; *text != '\0'; ++text) {
    if (*text < '0' || *text > '9' || ++digits > 9) return -1;
    value = value * 10 + (*text - '0');
  }
  return value;
}

// The number that the text begins with, after blanks, or 0. Not strtoull(): built with glibc 2.38
// or newer, the library would call a variant of it that neither an older glibc nor musl has, and no
// program of theirs would start with the library.
inline uint64_t LeadingNumber(const char* text) {
  while (*text == ' ') ++text;
  uint64_t value = 0;
  for (; *text >= '0' && *text <= '9'; ++text)
    value = value * 10 + static_cast<uint64_t>(*text - '0');
  return value;
}

// The place among the ranks of all replica groups of a rank that torchrun has started for one of
// them. Impossible numbers change nothing.
inline Place AmongReplicas(Place place, int replica, int replicas) {
  constexpr int kMostRanks = 1 << 30;
  const bool is_possible = replica >= 0 && replica < replicas && place.rank < place.world_size &&
                           place.world_size > 0 && replicas <= kMostRanks / place.world_size;
  if (!is_possible) return place;
  place.rank += replica * place.world_size;
  place.world_size *= replicas;
  return place;
}

// `get(name)` returns the value of a variable, or nullptr. `row` (may be nullptr): of
// kRankVariables; unchanged if none of them is set.
template <typename Get>
Place FindPlace(Get get, int* row = nullptr) {
  int at = 0;
  for (const RankVariables& names : kRankVariables) {
    const int rank = ParsePlaceNumber(get(names.rank));
    if (rank >= 0) {
      if (row != nullptr) *row = at;
      const Place place = {rank, ParsePlaceNumber(get(names.world_size)),
                           ParsePlaceNumber(get(names.local_rank))};
      if (at != 0) return place;
      return AmongReplicas(place, ParsePlaceNumber(get(kReplicaVariable)),
                           ParsePlaceNumber(get(kReplicasVariable)));
    }
    ++at;
  }
  return {};
}

// The job's name from the environment, of any length (CopyJobName() cuts it), or "".
template <typename Get>
const char* FindJob(Get get) {
  for (const char* name : kJobVariables) {
    const char* value = get(name);
    // torchrun sets "none" for every job without a rendezvous id.
    const bool none = value != nullptr && value[0] == 'n' && value[1] == 'o' && value[2] == 'n' &&
                      value[3] == 'e' && value[4] == '\0';
    if (value != nullptr && *value != '\0' && !none) return value;
  }
  return "";
}

// How the process shares its GPU with others: "MIG" (it has a slice of one), "MPS", or "" if no
// variable shows it. Sources: CUDA C++ guide, NVIDIA's MPS documentation.
template <typename GetEnv>
const char* FindGpuSharing(GetEnv get) {
  for (const char* variable : {"CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES"}) {
    const char* devices = get(variable);
    if (devices != nullptr && strncmp(devices, "MIG-", 4) == 0) return "MIG";
  }
  for (const char* variable : {"CUDA_MPS_PIPE_DIRECTORY", "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"}) {
    if (get(variable) != nullptr) return "MPS";
  }
  return "";
}

}  // namespace rollcall
