// SPDX-License-Identifier: Apache-2.0
#include "cli/remote/remote_commands.h"

#include "absl/strings/str_cat.h"
#include "cli/remote/remote_script.h"

namespace rollcall {

Command SshCommand(const std::string& host, const std::string& line) {
  return {"ssh", "-T", "-o", "BatchMode=yes", "-o", "ConnectTimeout=5", "-o",
          "ServerAliveInterval=5", "-o", "ServerAliveCountMax=2", "-o", "ClearAllForwardings=yes",
          "-o", "LogLevel=ERROR", "--", host,
          // The login shell, which may be any, takes one string.
          absl::StrCat("exec /bin/sh -c ", ShellQuoted(line))};
}

Command SrunCommand(const std::string& job, const std::string& node, const std::string& line) {
  return {"srun",
          absl::StrCat("--jobid=", job),
          absl::StrCat("--nodelist=", node),
          "--overlap",
          "--nodes=1",
          "--ntasks=1",
          "--quiet",
          "--mpi=none",
          "--chdir=/",
          "--",
          "/bin/sh",
          "-c",
          line};
}

Command KubectlCommand(const PodPlace& place, const std::string& line) {
  return {"kubectl",
          "exec",
          "--stdin",
          absl::StrCat("--namespace=", place.name_space),
          absl::StrCat("--container=", place.container),
          place.pod,
          "--",
          "/bin/sh",
          "-c",
          line};
}

}  // namespace rollcall
