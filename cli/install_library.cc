// SPDX-License-Identifier: Apache-2.0
// rollcall install-library: puts librollcall.so into a folder, for init containers, whose image has
// no shell. With --pod, also what makes the processes of the pod load it and know their job.
#include <sys/types.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <optional>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/atomic_file.h"
#include "base/read_file.h"
#include "cli/commands.h"
#include "interpose/environment.h"

namespace rollcall {
namespace {

constexpr char kName[] = "librollcall.so";
constexpr mode_t kMode = 0755;
constexpr mode_t kPodFileMode = 0644;

// Readers of `target` find the old file or the whole new one; processes that have mapped the old
// one keep it. The mode does not depend on the umask: jobs of other users load the file.
absl::Status ReplaceWithCopy(const std::string& source, const std::string& target) {
  const std::optional<std::string> content = ReadFile(source);
  if (!content.has_value()) {
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot read ", source));
  }
  return WriteAtomically(target, *content, kMode);
}

// What of this container's environment the pod's other processes need.
std::string PodEnvironment(const std::string& library) {
  std::string lines = absl::StrCat(kPreloadVariable, "=", library, "\n");
  for (const char* name : kPodVariables) {
    const char* value = getenv(name);
    const bool is_line = value != nullptr && strchr(value, '\n') == nullptr;
    if (is_line && strcmp(name, kPreloadVariable) != 0)
      absl::StrAppend(&lines, name, "=", value, "\n");
  }
  return lines;
}

// The loader reads the first file as /etc/ld.so.preload. It is there in any case: Kubernetes would
// mount a folder in the place of a file that is missing.
// A link of such a name, which another container of the pod may have left, is not followed.
absl::Status WritePodFiles(const std::string& folder, const std::string& library,
                           bool has_library) {
  const absl::Status preload = WriteAtomically(absl::StrCat(folder, "/ld.so.preload"),
                                               has_library ? library + "\n" : "", kPodFileMode);
  if (!preload.ok() || !has_library) return preload;
  return WriteAtomically(absl::StrCat(folder, "/environment"), PodEnvironment(library),
                         kPodFileMode);
}

}  // namespace

int InstallLibraryCommand(const std::vector<std::string>& arguments) {
  std::string folder;
  bool for_pod = false;
  CLI::App app("Copies librollcall.so into a folder, for jobs whose image has no Rollcall",
               "rollcall install-library");
  app.add_option("DIR", folder, "the folder; made if it is missing")->required();
  app.add_flag(
      "--pod", for_pod,
      "also write ld.so.preload, for /etc of a pod's containers, and environment, from which "
      "processes without the container's environment learn their job; always exit with 0");
  int exit_code = 0;
  if (!ParseFlags(&app, arguments, &exit_code)) return exit_code;
  // A pod must start, with the library or without.
  const int failure = for_pod ? 0 : 1;
  const std::string library = FindLibrary();
  if (library.empty()) {
    std::cerr << "rollcall install-library: librollcall.so is not beside this program\n"
                 "  install the whole package or image, not the program alone\n";
    if (for_pod) WritePodFiles(folder, "", /*has_library=*/false).IgnoreError();
    return failure;
  }
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  const std::string target = absl::StrCat(folder, "/", kName);
  absl::Status written = failed ? absl::ErrnoToStatus(failed.value(), "cannot make " + folder)
                                : ReplaceWithCopy(library, target);
  if (for_pod) written.Update(WritePodFiles(folder, target, written.ok()));
  if (!written.ok()) {
    std::cerr << "rollcall install-library: " << written.message()
              << "\n  another folder?  rollcall install-library DIR\n";
    return failure;
  }
  std::cout << target << "\n";
  return 0;
}

}  // namespace rollcall
