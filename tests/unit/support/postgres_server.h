// SPDX-License-Identifier: Apache-2.0
// A PostgreSQL server of a test's own, in a folder of its own, on a unix socket. It ends with the
// test program, however that ends. initdb refuses root, so under root the server is that of the
// user nobody.
#pragma once

#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include "daemon/history/postgres_database.h"
#include "eventually.h"

namespace rollcall {

class PostgresServer {
 public:
  // $ROLLCALL_POSTGRES (tests/fleet/postgres_of.sh), or the newest one that Debian's packages have
  // installed. Empty if there is none.
  static std::string FindPrograms() {
    if (const char* const chosen = getenv("ROLLCALL_POSTGRES")) return chosen;
    std::string newest;
    std::error_code none;
    for (const auto& version : std::filesystem::directory_iterator("/usr/lib/postgresql", none)) {
      const std::string programs = version.path() / "bin";
      if (access((programs + "/initdb").c_str(), X_OK) == 0 && programs > newest) newest = programs;
    }
    return newest;
  }

  PostgresServer() : programs_(FindPrograms()) {
    if (programs_.empty()) {
      problem_ = "no PostgreSQL server is installed:  apt-get install postgresql";
      return;
    }
    std::string folder = "/tmp/rollcall-postgres-XXXXXX";
    if (mkdtemp(folder.data()) == nullptr) std::abort();
    folder_ = folder;
    if (geteuid() == 0 && chown(folder_.c_str(), kNobody, kNobody) != 0) {
      problem_ =
          "the test's folder cannot be given to another user, and PostgreSQL does not run "
          "as root";
      return;
    }
    const pid_t made = Run({programs_ + "/initdb", "--pgdata=" + data(), "--username=rollcall",
                            "--auth=trust", "--encoding=UTF8", "--no-locale", "--no-sync"});
    int status = 0;
    waitpid(made, &status, 0);
    if (status != 0) {
      problem_ = "initdb failed: see " + folder_ + "/log";
      return;
    }
    Start();
  }
  ~PostgresServer() {
    Stop(SIGQUIT);
    std::error_code ignored;
    if (!folder_.empty()) std::filesystem::remove_all(folder_, ignored);
  }
  PostgresServer(const PostgresServer&) = delete;
  PostgresServer& operator=(const PostgresServer&) = delete;

  const std::string& problem() const { return problem_; }  // may be empty

  // `schema`: so that each test has tables of its own.
  std::string Url(const std::string& schema, const std::string& database = "postgres") const {
    return "postgresql://rollcall@/" + database + "?host=" + folder_ + "&options=-csearch_path%3D" +
           schema;
  }

  // Returns when it takes connections. Without effect while it runs.
  void Start() {
    if (pid_ > 0 || !problem_.empty()) return;
    pid_ = Run({programs_ + "/postgres", "-D", data(), "-k", folder_, "-c",
                "listen_addresses=", "-c", "fsync=off", "-c", "shared_buffers=16MB", "-c",
                "max_connections=40", "-c", "autovacuum=off"});
    if (Eventually([this] { return PostgresDatabase::Connect(Url("public"), {}).ok(); })) return;
    problem_ = "the server does not start: see " + folder_ + "/log";
  }
  // SIGINT: as an operator stops it, without waiting for clients. SIGQUIT: at once.
  void Stop(int how = SIGINT) {
    if (pid_ <= 0) return;
    kill(pid_, how);
    waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }
  // A server that takes connections and says nothing.
  void Pause() const { SignalAll(SIGSTOP); }
  void Resume() const { SignalAll(SIGCONT); }
  // As it was, whatever a test has done to it.
  void Restore() {
    Resume();
    Start();
  }

 private:
  static constexpr uid_t kNobody = 65534;

  std::string data() const { return folder_ + "/data"; }

  void SignalAll(int signal) const {
    if (pid_ <= 0) return;
    kill(pid_, signal);
    for (const pid_t child : Children()) kill(child, signal);
  }
  std::vector<pid_t> Children() const {
    std::vector<pid_t> children;
    const std::string name =
        "/proc/" + std::to_string(pid_) + "/task/" + std::to_string(pid_) + "/children";
    if (FILE* const file = fopen(name.c_str(), "r")) {
      int pid = 0;
      while (fscanf(file, "%d", &pid) == 1) children.push_back(pid);
      fclose(file);
    }
    return children;
  }

  pid_t Run(const std::vector<std::string>& command) const {
    const pid_t parent = getpid();
    const pid_t child = fork();
    if (child != 0) return child;
    const int log = open((folder_ + "/log").c_str(), O_CREAT | O_WRONLY | O_APPEND, 0644);
    dup2(log, 1);
    dup2(log, 2);
    if (geteuid() == 0 &&
        (setgroups(0, nullptr) != 0 || setgid(kNobody) != 0 || setuid(kNobody) != 0)) {
      _exit(1);
    }
    prctl(PR_SET_PDEATHSIG, SIGQUIT);  // after setuid(), which clears it
    if (getppid() != parent) _exit(1);
    setenv("TZ", "UTC", 1);
    std::vector<char*> arguments;
    for (const std::string& argument : command)
      arguments.push_back(const_cast<char*>(argument.c_str()));
    arguments.push_back(nullptr);
    if (chdir("/") != 0) _exit(1);
    execv(arguments[0], arguments.data());
    _exit(127);
  }

  const std::string programs_;
  std::string folder_, problem_;
  pid_t pid_ = 0;
};

// One server for all tests of a program.
inline PostgresServer* TestServer() {
  static const std::unique_ptr<PostgresServer> server = std::make_unique<PostgresServer>();
  return server.get();
}

}  // namespace rollcall
