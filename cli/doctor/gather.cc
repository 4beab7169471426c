// SPDX-License-Identifier: Apache-2.0
#include "cli/doctor/gather.h"

#include <time.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <memory>
#include <tuple>
#include <utility>

#include "base/result_in_time.h"
#include "cli/doctor/probe_daemon.h"
#include "cli/doctor/probe_gloo.h"
#include "cli/doctor/probes.h"

namespace rollcall::doctor {
namespace {

constexpr std::chrono::seconds kPatience{5};
constexpr std::chrono::seconds kProgramPatience{12};  // Python may have to load from a file server
constexpr std::chrono::seconds kDaemonPatience{
    25};  // two calls, and a handshake that explains a failure

// One probe in a thread of its own, which owns all that it uses.
template <typename Result>
class Probing {
 public:
  Probing(std::chrono::seconds patience, std::function<Result()> probe)
      : deadline_(std::chrono::steady_clock::now() + patience), result_(std::move(probe)) {}

  // `silent`: the facts of a probe that has not ended in time.
  Result Take(Result silent) { return result_.Take(deadline_).value_or(std::move(silent)); }

 private:
  const SteadyTime deadline_;
  ResultInTime<Result> result_;
};

// What is found by the program's path and folders.
using ProgramAndLibraries = std::tuple<ProgramFacts, NcclFacts, GlooFacts>;

LibraryFacts SilentLibrary(const Questions& questions) {
  LibraryFacts facts;
  facts.path = questions.library;
  facts.elf.is_elf = true;
  facts.load = Attempt::kNoAnswer;
  return facts;
}

ProgramAndLibraries SilentProgram(const Questions& questions) {
  ProgramFacts facts;
  facts.command = questions.command;
  if (!facts.command.empty()) facts.error = "its file system does not answer";
  return {facts, {}, {}};
}

FolderFacts SilentFolder() {
  FolderFacts facts;
  facts.path = "the folder of the segments (ROLLCALL_DIR)";
  facts.state = FolderState::kNoAnswer;
  return facts;
}

DaemonFacts SilentDaemon(const Questions& questions) {
  DaemonFacts facts;
  facts.is_chosen = questions.is_daemon_chosen;
  facts.address = questions.daemon.address;
  facts.has_tls = !questions.daemon.tls_ca.empty();
  facts.answer = DaemonAnswer::kNoAnswer;
  facts.error = "no answer within 25 s";
  return facts;
}

AgentFacts SilentAgent() {
  AgentFacts facts;
  facts.looked = Attempt::kNoAnswer;
  return facts;
}

}  // namespace

Facts Gather(const Questions& questions) {
  Facts facts;
  facts.environment = ReadEnvironment();
  facts.user = geteuid();
  facts.now_s = time(nullptr);
  facts.version = questions.version;
  const HostFiles files(questions.root);
  const Environment& environment = facts.environment;

  // Forks while this process has no other thread.
  facts.tracing = ProbeTracing(files);
  Probing<DaemonFacts> daemon(kDaemonPatience, [questions] {
    return ProbeDaemon(questions.daemon, questions.is_daemon_chosen);
  });
  Probing<LibraryFacts> library(
      kPatience, [questions, environment] { return ProbeLibrary(questions.library, environment); });
  Probing<ProgramAndLibraries> program(kProgramPatience, [questions, environment, files] {
    ProgramFacts found = ProbeProgram(questions.command, environment);
    NcclFacts nccl = FindNccl(found, environment, files);
    GlooFacts gloo = FindGloo(found, environment);
    return ProgramAndLibraries(std::move(found), std::move(nccl), std::move(gloo));
  });
  Probing<FolderFacts> folder(kPatience, [environment] { return ProbeFolder(environment); });
  Probing<GpuFacts> gpu(kPatience, [environment, files] { return ProbeGpu(environment, files); });
  Probing<AgentFacts> agent(kPatience, [questions, environment] {
    return ProbeAgent(questions.daemon.address, ProbeFolder(environment).path);
  });
  Probing<std::set<std::string>> preloads(
      kPatience, [environment] { return FindMissingPreloads(environment); });

  facts.shared_memory = ProbeSharedMemory();
  facts.kernel = ProbeKernel(files);
  facts.container = ProbeContainer(environment, files);
  facts.systemd = ReadSystemd(NameOfUser(), files);
  facts.slurm = ReadSlurm(environment, files);
  facts.library = library.Take(SilentLibrary(questions));
  facts.missing_preloads = preloads.Take({});
  facts.folder = folder.Take(SilentFolder());
  facts.gpu = gpu.Take({});
  facts.agent = agent.Take(SilentAgent());
  std::tie(facts.program, facts.nccl, facts.gloo) = program.Take(SilentProgram(questions));
  facts.daemon = daemon.Take(SilentDaemon(questions));
  return facts;
}

}  // namespace rollcall::doctor
