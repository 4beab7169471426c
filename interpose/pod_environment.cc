// SPDX-License-Identifier: Apache-2.0
#include "interpose/pod_environment.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "interpose/environment.h"

namespace rollcall {
namespace {

// The file, its line ends replaced by zeros, with two zeros at its end.
char lines[kMostPodEnvironment + 2];
bool were_read = false;

void ReadLines() {
  were_read = true;
  const int fd = open(kPodEnvironmentFile, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return;
  const ssize_t length = read(fd, lines, kMostPodEnvironment);
  close(fd);
  for (ssize_t i = 0; i < length; ++i) {
    if (lines[i] == '\n') lines[i] = '\0';
  }
}

}  // namespace

const char* GetSetting(const char* name) {
  // The user that starts a setuid program, which /etc/ld.so.preload gives the library, too, chooses
  // its environment, but must not choose where it makes folders and files with its owner's rights.
  const char* value = secure_getenv(name);
  // A process of the container itself has all that its author wanted.
  if (value != nullptr || secure_getenv(kPreloadVariable) != nullptr) return value;
  if (!were_read) ReadLines();
  const size_t length = strlen(name);
  for (const char* line = lines; *line != '\0'; line += strlen(line) + 1) {
    if (strncmp(line, name, length) == 0 && line[length] == '=') return line + length + 1;
  }
  return nullptr;
}

}  // namespace rollcall
