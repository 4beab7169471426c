// SPDX-License-Identifier: Apache-2.0
#include "agent/processes/trace_refused.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "agent/processes/proc_files.h"
#include "base/read_file.h"

namespace rollcall {
namespace {

constexpr const char* kInContainer =
    "\n  in a container:  docker run --cap-add=SYS_PTRACE ...  (Kubernetes: "
    "securityContext.capabilities.add: [SYS_PTRACE])";
constexpr const char* kOnHost =
    "\n  on the host:     sudo setcap cap_sys_ptrace+ep $(command -v rollcall-agent)   or   sudo "
    "sysctl kernel.yama.ptrace_scope=0";
constexpr uint64_t kSysPtrace = uint64_t{1} << 19;  // CAP_SYS_PTRACE

// Returns the number after `label` in a status file; -1 if there is no such label.
long ReadField(const std::string& status, const std::string& label) {
  const size_t at = status.find("\n" + label);
  return at == std::string::npos ? -1
                                 : std::strtol(status.c_str() + at + 1 + label.size(), nullptr, 10);
}

// Returns the set of capabilities after `label` (hexadecimal); 0 if there is no such label.
uint64_t ReadCapabilities(const std::string& status, const std::string& label) {
  const size_t at = status.find("\n" + label);
  return at == std::string::npos
             ? 0
             : std::strtoull(status.c_str() + at + 1 + label.size(), nullptr, 16);
}

std::string UserNamespace(const std::string& process) { return ReadLink(process + "/ns/user"); }

std::string ScopeInWords(const std::string& scope) {
  return absl::StrCat("this host lets ",
                      scope == "1"   ? "only a parent"
                      : scope == "2" ? "only an administrator"
                                     : "no process",
                      " trace it (kernel.yama.ptrace_scope is ", scope, ")");
}

}  // namespace

std::string TraceRefusedMessage(const std::string& proc_root, pid_t pid) {
  const std::string text = absl::StrCat("cannot take the stacks of process ", pid, ": ");
  const std::string directory = absl::StrCat(proc_root, "/", pid);
  const std::string own = absl::StrCat(proc_root, "/self");
  const std::string status = ReadProcFile(directory + "/status").value_or("");
  const long user = ReadField(status, "Uid:");
  struct stat about;
  const bool there = stat(directory.c_str(), &about) == 0;
  if (there && geteuid() != 0 && user >= 0 && static_cast<uid_t>(user) != geteuid()) {
    return absl::StrCat(text, "it belongs to user ", user,
                        "\n  run this program as that user, or as root");
  }
  if (there && geteuid() != 0 && user >= 0 && about.st_uid != geteuid()) {
    return absl::StrCat(text,
                        "it does not permit that (it was started with more privileges, or has set "
                        "PR_SET_DUMPABLE to 0)\n  run this program as root");
  }
  const std::string scope = std::string(absl::StripAsciiWhitespace(
      ReadProcFile(proc_root + "/sys/kernel/yama/ptrace_scope", 16).value_or("")));
  if (scope == "3") {
    return absl::StrCat(text, ScopeInWords(scope), "\n  only a reboot changes this setting");
  }
  if (scope == "1" || scope == "2") {
    return absl::StrCat(text, ScopeInWords(scope), kInContainer, kOnHost);
  }
  const std::string own_status = ReadProcFile(own + "/status").value_or("");
  const uint64_t own_capabilities = ReadCapabilities(own_status, "CapEff:");
  const std::string its = UserNamespace(directory), ours = UserNamespace(own);
  // CAP_SYS_PTRACE permits tracing in the program's own namespace, so the process is in another.
  const bool may_trace_here = (own_capabilities & kSysPtrace) != 0 && its.empty();
  if (!ours.empty() && its != ours && (!its.empty() || may_trace_here)) {
    return absl::StrCat(text, "it is in another user namespace (",
                        its.empty() ? "" : absl::StrCat(its, ", "), "this program in ", ours,
                        ")\n  run the agent in its container, or as root on the host");
  }
  if ((ReadCapabilities(status, "CapPrm:") & ~own_capabilities) != 0) {
    return absl::StrCat(text, "it has capabilities that this program lacks", kInContainer, kOnHost);
  }
  if (ReadField(own_status, "Seccomp:") == 2) {
    return absl::StrCat(text, "a seccomp filter forbids this program to trace",
                        "\n  in a container:  docker run --cap-add=SYS_PTRACE --security-opt "
                        "seccomp=unconfined ...  (Kubernetes: securityContext.seccompProfile.type: "
                        "Unconfined)");
  }
  return absl::StrCat(text, "the kernel did not permit it (a container without SYS_PTRACE?)",
                      kInContainer, kOnHost);
}

}  // namespace rollcall
