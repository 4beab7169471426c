// SPDX-License-Identifier: Apache-2.0
// The files /etc/rollcall/*.yaml of the packages list every flag of the programs: they are made
// from the programs' tables of flags.
//
//   ROLLCALL_WRITE_DOCS=1 build/release/tests/service_test     writes them anew
#include <gtest/gtest.h>
#include <stdlib.h>

#include <CLI/CLI.hpp>
#include <fstream>

#include "agent/agent_flags.h"
#include "base/read_file.h"
#include "daemon/flags.h"
#include "service/service_flags.h"

namespace rollcall {
namespace {

constexpr char kPrecedence[] =
    "One flag a line, without its dashes. The command line and the environment (ROLLCALL_<FLAG>) "
    "count more than this file. Each flag is commented out and shows its default.";

std::string Heading(const std::string& program, const std::string& name,
                    const std::string& reload) {
  return "The flags of " + program + ". " + kPrecedence + "\nCheck this file:  " + program +
         " --check-config --config=/etc/rollcall/" + name + ".yaml\n" + reload;
}

void ExpectFile(const std::string& name, const std::string& text) {
  const std::string path = std::string(ROLLCALL_SOURCE) + "/deploy/systemd/" + name;
  if (getenv("ROLLCALL_WRITE_DOCS") != nullptr) std::ofstream(path) << text;
  EXPECT_EQ(ReadFile(path).value_or(""), text) << "ROLLCALL_WRITE_DOCS=1 writes it anew";
}

TEST(ExampleSettingsTest, DaemonYamlHasEveryFlag) {
  DaemonFlags flags;
  const auto app = MakeDaemonApp(&flags);
  ExpectFile(
      "daemon.yaml",
      ExampleSettings(
          *app,
          Heading("rollcalld", "daemon",
                  "Apply:  systemctl reload rollcalld. The log lists flags that need a restart; a "
                  "restart loses no job and no incident."),
          {{"report-dir", "The unit starts in /var/lib/rollcall and may write only there."},
           {"tls-key", "The unit's user must be able to read it: docs/install.md, As services."}}));
}

TEST(ExampleSettingsTest, AgentYamlHasEveryFlag) {
  AgentFlags flags;
  flags.options.collector.directory = "/dev/shm/rollcall-<uid>";
  const auto app = MakeAgentApp(&flags);
  ExpectFile(
      "agent.yaml",
      ExampleSettings(
          *app, Heading("rollcall-agent", "agent", "Apply:  systemctl restart rollcall-agent"),
          {{"dir", "The unit gives /run/rollcall-agent on its command line."}}));
}

}  // namespace
}  // namespace rollcall
