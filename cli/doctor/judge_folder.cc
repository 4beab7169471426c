// SPDX-License-Identifier: Apache-2.0
// The folder of segments: whether the library may write there, how much, and who removes it.
#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "cli/doctor/checks.h"
#include "interpose/segment.h"

namespace rollcall::doctor {
namespace {

constexpr char kSharedMemory[] = "/dev/shm/";
constexpr uid_t kFirstOrdinaryUser = 1000;  // SYS_UID_MAX + 1: logind leaves system users alone
constexpr int kCommunicators = 8;           // that a rank of a large model has: dp, tp, pp, ...
constexpr char kMoreRoom[] =
    "docker run --shm-size=1g ...   or, in Kubernetes, an emptyDir with medium: Memory   or   "
    "export "
    "ROLLCALL_DIR=FOLDER";

uint64_t MiB(uint64_t bytes) { return bytes >> 20; }

std::string OwnFolder(const Facts& facts) { return absl::StrCat("/dev/shm/rollcall-", facts.user); }

std::string ChooseAnother(const Facts& facts) {
  return facts.folder.is_chosen ? "unset ROLLCALL_DIR   or   export ROLLCALL_DIR=FOLDER"
                                : "export ROLLCALL_DIR=FOLDER   (of this user's, on this host)";
}

// What ranks with several communicators take, with whole histories.
uint64_t NeededBytes(int ranks) {
  return static_cast<uint64_t>(ranks) *
         (segment::kHeaderBytes + kCommunicators * segment::kCommBlockBytes);
}

int RanksOf(const Facts& facts) { return std::max(facts.gpu.devices, 1); }

std::string CountRanks(int ranks) { return absl::StrCat(ranks, ranks == 1 ? " rank" : " ranks"); }

}  // namespace

Judgement JudgeFolder(const Facts& facts) {
  const FolderFacts& folder = facts.folder;
  switch (folder.state) {
    case FolderState::kUsable:
      break;
    case FolderState::kNoAnswer:
      return {State::kProblem, absl::StrCat(folder.path, " does not answer (a file server?)"),
              ChooseAnother(facts)};
    case FolderState::kNotMade:
      return {State::kProblem, absl::StrCat("cannot make ", folder.path, ": ", folder.error),
              ChooseAnother(facts)};
    case FolderState::kNoFolder:
      return {
          State::kProblem,
          absl::StrCat(folder.path, " is a link or no folder: the library does not write there"),
          ChooseAnother(facts)};
    case FolderState::kOtherUser:
      return {State::kProblem,
              absl::StrCat(folder.path, " belongs to user ", folder.owner,
                           ": the library writes only to a folder of its own user"),
              ChooseAnother(facts)};
    case FolderState::kNotWritable:
      return {State::kProblem, absl::StrCat("cannot write to ", folder.path, ": ", folder.error),
              ChooseAnother(facts)};
  }
  if (!folder.server.empty()) {
    return {State::kWarning,
            absl::StrCat(folder.path, " is on a file server (", folder.server,
                         "): a job stands still while the server does not answer"),
            ChooseAnother(facts)};
  }
  if (folder.is_taken) {
    return {State::kWarning,
            absl::StrCat(OwnFolder(facts), " belongs to another user: this user's segments are in ",
                         folder.path),
            absl::StrCat("as root:  rm -rf ", OwnFolder(facts), "   or   ", ChooseAnother(facts))};
  }
  return {State::kOk, absl::StrCat("this user may write to ", folder.path), ""};
}

Judgement JudgeRoom(const Facts& facts) {
  const FolderFacts& folder = facts.folder;
  if (folder.state != FolderState::kUsable) {
    return {State::kNotApplicable, absl::StrCat("no usable folder: see the line of the folder"),
            ""};
  }
  if (folder.room.unlimited) {
    return {State::kOk, absl::StrCat(folder.path, " has no limit of size"), ""};
  }
  const std::string free =
      absl::StrCat(folder.path, " has ", MiB(folder.room.free_bytes), " MiB free");
  const int ranks = RanksOf(facts);
  const uint64_t least = segment::kHeaderBytes + segment::kRingOffset;
  if (!HasRoom(folder.room, least, RoomFor::kProcess)) {
    return {State::kProblem, absl::StrCat(free, ": the library records nothing"), kMoreRoom};
  }
  const std::string job = absl::StrCat(CountRanks(ranks), " with ", kCommunicators,
                                       " communicators need ", MiB(NeededBytes(ranks)) + 1, " MiB");
  if (!HasRoom(folder.room, NeededBytes(ranks), RoomFor::kLongHistories)) {
    return {State::kWarning,
            absl::StrCat(free, ", of which the library takes an eighth: ", job,
                         " for whole histories, so verdicts have fewer calls"),
            kMoreRoom};
  }
  return {State::kOk, absl::StrCat(free, "; ", job), ""};
}

Judgement JudgeSharedMemory(const Facts& facts) {
  const SharedMemoryFacts& memory = facts.shared_memory;
  if (!memory.exists) {
    return {State::kProblem, "/dev/shm is missing: NCCL cannot create a communicator within a host",
            "mount -t tmpfs tmpfs /dev/shm"};
  }
  if (memory.total_bytes == 0) return {State::kOk, "/dev/shm has no limit of size", ""};
  const int ranks = RanksOf(facts);
  const uint64_t needed = kNcclBytes * static_cast<uint64_t>(ranks);
  const std::string size = absl::StrCat("/dev/shm has ", MiB(memory.total_bytes), " MiB, ",
                                        MiB(memory.free_bytes), " free");
  const std::string takes = absl::StrCat("NCCL takes about ", MiB(kNcclBytes),
                                         " MiB for the proxy of each rank's communicator");
  if (memory.free_bytes < kNcclBytes) {
    return {State::kProblem, absl::StrCat(size, ": ", takes, ", and cannot create one"),
            "docker run --shm-size=1g ...   or, in Kubernetes, an emptyDir with medium: Memory at "
            "/dev/shm"};
  }
  if (memory.free_bytes < 2 * needed) {
    return {State::kWarning,
            absl::StrCat(size, ": ", takes, ", which is little for ", CountRanks(ranks),
                         " with several communicators"),
            "docker run --shm-size=1g ...   or, in Kubernetes, an emptyDir with medium: Memory at "
            "/dev/shm"};
  }
  return {State::kOk, size, ""};
}

Judgement JudgeRemoveIpc(const Facts& facts) {
  const SystemdFacts& systemd = facts.systemd;
  if (!absl::StartsWith(absl::StrCat(facts.folder.path, "/"), kSharedMemory)) {
    return {State::kNotApplicable, "the segments are not in /dev/shm", ""};
  }
  if (!systemd.is_running) {
    return {State::kNotApplicable, "systemd does not run here (a container?)", ""};
  }
  if (!systemd.removes_ipc) {
    return {State::kOk,
            absl::StrCat("logind leaves /dev/shm alone (RemoveIPC=no",
                         systemd.source.empty() ? ", the default here" : "",
                         systemd.source.empty() ? "" : absl::StrCat(" in ", systemd.source), ")"),
            ""};
  }
  if (facts.user < kFirstOrdinaryUser) {
    return {State::kOk, "logind leaves the files of system users alone (RemoveIPC)", ""};
  }
  if (systemd.lingers) {
    return {State::kOk, "this user lingers: logind removes nothing of the user's at a logout", ""};
  }
  return {
      State::kWarning,
      absl::StrCat("logind removes ", OwnFolder(facts),
                   " when this user's last session ends, also while a job runs (RemoveIPC=yes)"),
      "loginctl enable-linger   or RemoveIPC=no in /etc/systemd/logind.conf   or   export "
      "ROLLCALL_DIR=FOLDER outside of /dev/shm"};
}

}  // namespace rollcall::doctor
